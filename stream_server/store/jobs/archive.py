"""The archive of old statuses: a compressed file for each day, to which lines are added.

Each addition is a gzip member with its length in the header, so a torn end of a file is found and cut off.
"""

import errno
import fcntl
import os
import struct
import zlib
from pathlib import Path
from typing import BinaryIO

_HEADER = struct.Struct("<4sIBBHccHI")
"""Of RFC 1952: magic, method and flags; time; extra flags; system; length of the extra field; and the extra field: two
letters, its length, the length of the whole member in bytes."""

_TRAILER = struct.Struct("<II")
"""CRC-32 and length of the uncompressed data."""

_MAGIC = b"\x1f\x8b\x08\x04"
"""Two bytes of any gzip member, the method, and the flag of a member with an extra field."""

_UNKNOWN_SYSTEM = 255


class ArchiveFailure(Exception):
    """The archive could not be written. The message is one sentence for an operator."""


class StatusArchive:
    """Appends lines to the file of a day, in one folder. Only one process at a time can write to a file.

    The methods block. Call them in a thread, one at a time.
    """

    def __init__(self, folder: str) -> None:
        self.folder = Path(folder)
        self._day = ""
        self._file: BinaryIO | None = None
        self._end = 0

    def append(self, day: str, lines: bytes) -> None:
        """Add lines to the file of ``day`` (``2026-12-31``), and return when they are on the disk.

        Raises `ArchiveFailure`. The file then ends as before.
        """
        try:
            file = self._open(day)
            self._append_member(file, _member(lines))
        except (OSError, zlib.error) as error:
            self.close()
            reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            message = f"the archive of statuses in {self.folder} cannot be written: {reason}"
            raise ArchiveFailure(message) from error

    def close(self) -> None:
        """Close the archive's file, if one is open. The next :meth:`append` opens it again."""
        if self._file is not None:
            self._file.close()
        self._file, self._day = None, ""

    def _append_member(self, file: BinaryIO, member: bytes) -> None:
        left = memoryview(member)
        try:
            while left:  # a disk with room for a part of it takes this part, and fails at the next call only
                left = left[file.write(left) :]
            os.fsync(file.fileno())
        except OSError:
            file.truncate(self._end)
            raise
        self._end += len(member)

    def _open(self, day: str) -> BinaryIO:
        if self._file is not None and day == self._day:
            return self._file
        self.close()
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = self.folder / f"statuses-{day}.ndjson.gz"
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)  # protected statuses are in it, too
        file = os.fdopen(descriptor, "r+b", buffering=0)
        self._file, self._day = file, day
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self._end = _end_of_last_member(file)
        file.truncate(self._end)
        file.seek(self._end)
        _sync_folder(self.folder)
        return file


def _member(lines: bytes) -> bytes:
    """Return the lines as one gzip member (RFC 1952) with its length in the header."""
    compressor = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    data = compressor.compress(lines) + compressor.flush()
    length = _HEADER.size + len(data) + _TRAILER.size
    header = _HEADER.pack(_MAGIC, 0, 0, _UNKNOWN_SYSTEM, 8, b"S", b"S", 4, length)
    return header + data + _TRAILER.pack(zlib.crc32(lines), len(lines) & 0xFFFFFFFF)


def _end_of_last_member(file: BinaryIO) -> int:
    """Return the offset at which the last complete member of a file ends.

    Raises OSError if a member of another program is behind it, which must not be cut off.
    """
    size, start, end = os.fstat(file.fileno()).st_size, 0, 0
    while (length := _member_length(file, end)) and end + length <= size:
        start, end = end, end + length
    file.seek(end)
    rest = file.read(len(_MAGIC))
    if rest[:2] == _MAGIC[:2] and not _MAGIC.startswith(rest):
        raise OSError(errno.EINVAL, "another program has written into the file of this day: move the file away")
    return end if _is_intact(file, start, end) else start


def _member_length(file: BinaryIO, offset: int) -> int:
    """Return the length of the member at ``offset`` as its header has it, 0 if there is no complete header."""
    file.seek(offset)
    header = file.read(_HEADER.size)
    if len(header) < _HEADER.size:
        return 0
    magic, *_, length = _HEADER.unpack(header)
    return int(length) if magic == _MAGIC else 0


def _is_intact(file: BinaryIO, start: int, end: int) -> bool:
    """Return whether the member can be read. After a power cut the last one may have its length and wrong bytes."""
    file.seek(start)
    try:
        zlib.decompress(file.read(end - start), wbits=16 + zlib.MAX_WBITS)
    except zlib.error:
        return start == end
    return True


def _sync_folder(folder: Path) -> None:
    """Write the names in the folder to the disk. Without this, a power cut may take away a new file."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
