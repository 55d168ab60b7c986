"""The expiry loop: statuses beyond the maximum age go to the archive and leave, in one process of all at a time.

The order is always the same: read, archive, remove. So a crash at any moment leaves at most a line twice in the
archive, and never a status in neither. A status that has changed between read and removal is read again.

`StatusArchive` writes the files of the archive.
"""

import asyncio
import errno
import fcntl
import logging
import os
import random
import secrets
import struct
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from stream_server.config.settings import Config
from stream_server.errors import ApiError
from stream_server.events.one_line import keep_on_one_line
from stream_server.events.position import format_iso_time
from stream_server.store import keys
from stream_server.store.jobs.expiry import ExpiryLease, ExpiryRange, OldComment, OldStatus, StatusExpiry

logger = logging.getLogger(__name__)

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
        self.folder = Path(folder).expanduser()
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


LEASE_SECONDS = 60.0
"""Time after which another process continues if this one died."""

LEASE_POLL_SECONDS = 30.0
"""Longest interval in seconds between two attempts to take the lease."""

ROUND_INTERVAL_SECONDS = 3600.0
"""Pause in seconds between two rounds, and after a failure of the archive."""

PAGE_PAUSE_SECONDS = 0.05
"""Pause in seconds after each page of keys, so that a round takes a small part of Redis' time."""

STATUSES_PER_ADDITION = 128
"""Most statuses of one addition to the archive."""

MAX_ADDITION_BYTES = 2**20
"""Bytes of lines in memory from which they are written to the archive."""

MAX_READS = 3
"""Times that a status which changes meanwhile is read and archived in one round. The next round tries again."""

NO_ARCHIVE = "none"
"""Value of the setting ``status_archive_dir`` that deletes old statuses without an archive."""


class ExpiryLoop:
    """Removes statuses that are older than ``max_days`` days, after it has archived them.

    Attributes:
        left: Number of statuses that this process removed.
        archive_failures: Number of times that the archive could not be written.
        page_pause_seconds: Pause after each page of keys.
    """

    def __init__(
        self, expiry: StatusExpiry, max_days: float, archive: StatusArchive | None, random_source: random.Random
    ) -> None:
        """``archive`` is None to delete without an archive."""
        self.left = 0
        self.archive_failures = 0
        self.page_pause_seconds = PAGE_PAUSE_SECONDS
        self._expiry = expiry
        self._max_days = max_days
        self._archive = archive
        self._random = random_source
        self._process = secrets.token_hex(8)
        self._told_failure = ""

    async def run(self) -> None:
        """Run rounds until cancelled. Without a maximum age, only wait."""
        if not self._max_days:
            await asyncio.Event().wait()
        try:
            while True:
                await self._run_round_or_log()
                await asyncio.sleep(LEASE_POLL_SECONDS * self._random.uniform(0.5, 1))
        finally:
            if self._archive is not None:
                self._archive.close()

    async def run_round(self, now_ms: int | None = None) -> bool:
        """Run one round if no other process does. Return whether this process ran it to its end.

        ``now_ms`` replaces Redis' time in milliseconds. Raises `Unavailable` if Redis does not answer. A failure of the
        archive ends the round, and nothing more leaves.
        """
        lease = await self._expiry.hold_lease(self._process, LEASE_SECONDS)
        if lease is None:
            return False
        try:
            return await self._scan(lease, lease.now_ms if now_ms is None else now_ms)
        except ArchiveFailure as failure:
            await self._tell(str(failure))
            return False

    async def _run_round_or_log(self) -> None:
        try:
            await self.run_round()
        except ApiError as error:
            logger.debug("the expiry of statuses is postponed: %s", error.message)

    async def _scan(self, lease: ExpiryLease, now_ms: int) -> bool:
        which = await self._expiry.find_range(now_ms, self._max_days)
        await self._expiry.forget_expired_ids(which.floor)
        cursor, is_whole, day = lease.cursor, lease.cursor == "0", format_iso_time(now_ms)
        while True:
            cursor, ids = await self._expiry.scan(cursor)
            is_whole &= await self._expire([i for i in ids["status"] if int(i) < which.below], which, day)
            await self._forget(ids, lease.done_below)
            if cursor == "0":
                break
            if await self._expiry.hold_lease(self._process, LEASE_SECONDS, cursor=cursor) is None:
                return False
            await asyncio.sleep(self.page_pause_seconds)
        # Timelines forget only what surely has left, so a round that began in another process does not count.
        done = {"done": max(which.below, lease.done_below)} if is_whole else {}
        await self._wait_an_interval(cursor=0, failure="", **done)
        self._told_failure = ""
        return True

    async def _forget(self, ids: dict[str, list[str]], below: int) -> None:
        """Remove from timelines and favorites the ids that left in an earlier round."""
        if not below:
            return
        homes = [keys.home_timeline(uid) for uid in ids["user"]]
        await self._expiry.forget(homes + [keys.list_timeline(each) for each in ids["list"]], below)
        for uid in ids["favorites"]:
            await self._expiry.prune_favorites(uid, below)

    async def _expire(self, ids: Sequence[str], which: ExpiryRange, day: str) -> bool:
        """Archive and remove statuses. Return whether all have left."""
        for _ in range(MAX_READS):
            stayed = list[str]()
            for at in range(0, len(ids), STATUSES_PER_ADDITION):
                stayed += await self._expire_some(ids[at : at + STATUSES_PER_ADDITION], which, day)
            if not stayed:
                return True
            ids = stayed
        return False

    async def _expire_some(self, ids: Sequence[str], which: ExpiryRange, day: str) -> list[str]:
        """Archive and remove a few statuses. Return the ids of those that have changed meanwhile, and stay."""
        statuses = await self._expiry.read(ids)
        if self._archive is not None and statuses:
            await self._write_archive(self._archive, statuses, day)
        words = await self._expiry.remove(which, statuses)
        self.left += sum(word == "left" for word in words.values())
        return [status_id.decode() for status_id, word in words.items() if word == "changed"]

    async def _write_archive(self, archive: StatusArchive, statuses: Sequence[OldStatus], at: str) -> None:
        """Write statuses, each behind its comments, in additions of bounded size."""
        waiting = bytearray()
        for status in statuses:
            after = b""
            while status.newest_comment and (page := await self._expiry.read_comments(status.id, after)):
                waiting += b"".join(_line(at, b"comment", comment) for comment in page)
                after = page[-1].id
                await self._write_full(archive, waiting, at, MAX_ADDITION_BYTES)
            waiting += _line(at, b"status", status)
            await self._write_full(archive, waiting, at, MAX_ADDITION_BYTES)
        await self._write_full(archive, waiting, at, 1)

    async def _write_full(self, archive: StatusArchive, waiting: bytearray, at: str, least_bytes: int) -> None:
        if len(waiting) < least_bytes:
            return
        try:
            await asyncio.to_thread(archive.append, at[:10], bytes(waiting))
        except ArchiveFailure:
            self.archive_failures += 1
            raise
        waiting.clear()

    async def _tell(self, failure: str) -> None:
        """Log a new failure, store it in Redis for ``doctor``, and keep all processes from trying again for an hour."""
        if failure != self._told_failure:
            logger.error("no status leaves because of its age: %s", failure)
        self._told_failure = failure
        await self._wait_an_interval(failure=failure)

    async def _wait_an_interval(self, **kept: str | int) -> None:
        """Hold the lease for an interval, so that neither another process nor this one begins a round."""
        await self._expiry.hold_lease(self._process, ROUND_INTERVAL_SECONDS, holder="", **kept)


def make_expiry_loop(expiry: StatusExpiry, config: Config, random_source: random.Random) -> ExpiryLoop:
    """Return the expiry loop for these settings."""
    folder = config.status_archive_dir
    archive = StatusArchive(folder) if folder not in ("", NO_ARCHIVE) else None
    return ExpiryLoop(expiry, config.status_max_days, archive, random_source)


def _line(at: str, noun: bytes, item: OldStatus | OldComment) -> bytes:
    """Return the line of the archive for a status or a comment (``noun``) that left at the time ``at`` (ISO 8601).

    Nothing is escaped: the server itself made the JSON and the audience.
    """
    json = keep_on_one_line(item.json)
    return b'{"left":"%b","audience":"%b","%b":%b}\n' % (at.encode(), item.audience, noun, json)
