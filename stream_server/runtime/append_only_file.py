"""The append-only file of Redis: find a damaged end, and cut it off.

After a power cut a file system may show zeros, or anything else, behind the last bytes that were on the disk. Redis
drops a command that the end of the file cuts, but it does not start with bytes there that are no command.

A manifest lists the parts of the file in their order: a snapshot (``….base.rdb``), and the commands since
(``….incr.aof``). A command is an array of strings in the protocol of Redis (RESP). Commands between ``MULTI`` and
``EXEC`` count together, and without their ``EXEC`` not at all.
"""

import mmap
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from stream_server.config.data_folder import sync_folder

PARTS_FOLDER = "appendonlydir"
"""Folder of the append-only file: a manifest and the parts that it lists."""

MANIFEST = "appendonly.aof.manifest"

LINE_END = b"\r\n"

RDB_END_BYTES = 9
"""A snapshot ends with the byte 255 and a checksum of 8 bytes, so never with as many zeros."""

_MANIFEST_LINE = re.compile(r'file "?(?P<name>[^/"\n]+?)"? seq (?P<number>\d+) type (?P<kind>[bi])\b')
_COUNT = re.compile(rb"\*(\d{1,10})\r\n")
_LENGTH = re.compile(rb"\r\n\$(\d{1,10})\r\n")
_CUT_HEAD = re.compile(rb"(?:\r?|\r\n)(?:[*$](?:\d{0,10}|\d{1,10}\r))?\Z")
"""What may stand at the end of a file that is cut between two strings or within the length of one."""
_COMMAND = re.compile(rb"\*\d{1,10}\r\n\$\d{1,10}\r\n")


class Damage(NamedTuple):
    """The damaged end of a part of the append-only file.

    Attributes:
        part: The file.
        keeps: Number of bytes before the damage: whole commands and transactions.
        size: Number of bytes of the file.
        zeros: Number of zeros at its end.
        later: Whole commands behind the damage, at least. If there are some, the damage is no end.
        is_cut: Whether the file only ends within a command or a transaction. Redis drops that by itself.
    """

    part: Path
    keeps: int
    size: int
    zeros: int
    later: int = 0
    is_cut: bool = False

    def describe(self) -> str:
        """Return one sentence, without a full stop: the file, the bytes in question, and what they are."""
        if self.later:
            behind = f"{self.later:,} whole commands or more stand behind bytes that Redis cannot read"
            return f"{self.part} is damaged in the middle: after {self.keeps:,} good bytes, {behind}"
        lost = self.size - self.keeps
        rest = lost - self.zeros
        parts = [
            f"{rest:,} bytes of an unfinished command or transaction" if rest and self.is_cut else
            f"{rest:,} bytes that are no whole command" if rest else "",
            f"{self.zeros:,} zeros" if self.zeros else "",
        ]  # fmt: skip
        what = " and ".join(filter(None, parts))
        good = f"{self.part} has {self.keeps:,} good bytes"
        return f"{good} and {lost:,} bytes behind them that Redis cannot read: {what}"


def find_damage(folder: Path, *, reads_all: bool = False) -> Damage | None:
    """Return the first damage of the append-only file in the data folder, or None if each part ends as it should.

    Unless ``reads_all``, a part that ends with the end of a line is not read, so this takes microseconds if nothing is
    damaged. Otherwise it takes some ten seconds for 100 MB. Of snapshots only the end is read. Raises OSError if a part
    cannot be read.
    """
    parts = list_parts(folder)
    for at, part in enumerate(parts):
        damage = _find_in_part(part, reads_all=reads_all)
        if damage is not None:
            later = damage.later + sum(map(_count_commands, parts[at + 1 :]))
            return damage._replace(later=later, is_cut=damage.is_cut and not later)
    return None


def list_parts(folder: Path) -> list[Path]:
    """Return the parts that the manifest in a data folder lists, in their order. None without a manifest."""
    parts = folder / PARTS_FOLDER
    try:
        lines = (parts / MANIFEST).read_text(errors="replace").splitlines()
    except FileNotFoundError:
        return []
    found = filter(None, map(_MANIFEST_LINE.match, lines))
    ordered = sorted(found, key=lambda line: (line["kind"] == "i", int(line["number"])))
    return [parts / line["name"] for line in ordered if (parts / line["name"]).exists()]


def cut(damage: Damage, copy: Path) -> None:
    """Write the damaged end into the new file ``copy``, and cut it off. Both are on the disk when this returns.

    Raises OSError, and FileExistsError if ``copy`` is there. No copy stays if it cannot be written, as on a full disk.
    """
    with damage.part.open("r+b") as part:
        descriptor = os.open(copy, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(descriptor, "wb") as kept:
                part.seek(damage.keeps)
                while piece := part.read(1 << 20):
                    kept.write(piece)
                kept.flush()
                os.fsync(descriptor)
            sync_folder(copy.parent)
        except OSError:
            copy.unlink()
            raise
        part.truncate(damage.keeps)
        os.fsync(part.fileno())


def undo_cut(damage: Damage, copy: Path) -> None:
    """Give the damaged file back the end that :func:`cut` has cut off. Then remove ``copy``, which has this end.

    The caller holds the lock of the folder. Raises OSError.
    """
    with damage.part.open("r+b") as part:
        part.truncate(damage.keeps)
        part.seek(damage.keeps)
        part.write(copy.read_bytes())
        part.flush()
        os.fsync(part.fileno())
    copy.unlink()


@contextmanager
def _content(part: Path) -> Iterator[bytes | mmap.mmap]:
    with part.open("rb") as file:
        if not part.stat().st_size:  # which cannot be mapped
            yield b""
            return
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            yield content


def _find_in_part(part: Path, *, reads_all: bool) -> Damage | None:
    with _content(part) as content:
        size = len(content)
        if part.suffix == ".rdb":
            return _find_in_snapshot(part, content)
        if not size or (content[-len(LINE_END) :] == LINE_END and not reads_all):
            return None
        keeps, fails_at, is_cut = _read_commands(content)
        if keeps == size:
            return None
        zeros = size - max(_filled_bytes(content), keeps)
        return Damage(part, keeps, size, zeros, _count_after(content, fails_at), is_cut)


def _filled_bytes(content: bytes | mmap.mmap) -> int:
    """Return the number of bytes before the zeros at the end."""
    end = len(content)
    while end:
        piece = content[max(0, end - (1 << 20)) : end].rstrip(b"\0")
        start = max(0, end - (1 << 20))
        if piece:
            return start + len(piece)
        end = start
    return 0


def _find_in_snapshot(part: Path, content: bytes | mmap.mmap) -> Damage | None:
    """Return the damage of a snapshot with more zeros than its checksum can have. Redis checks the checksum."""
    filled = _filled_bytes(content)
    zeros = len(content) - filled
    if zeros < RDB_END_BYTES:
        return None
    ends = range(filled, filled + RDB_END_BYTES)
    keeps = next((end for end in ends if end >= RDB_END_BYTES and content[end - RDB_END_BYTES] == 255), 0)
    return Damage(part, keeps, len(content), len(content) - max(filled, keeps))


def _read_commands(content: bytes | mmap.mmap) -> tuple[int, int, bool]:
    """Return where the last whole command or transaction ends, where reading failed, and whether all is only cut."""
    at = good = 0
    in_transaction = False
    while at < len(content):
        if content[at : at + 1] == b"#":  # a note of the time
            end = content.find(b"\n", at) + 1
            name = b""
        else:
            end, name = _command_end(content, at)
        if end <= 0:
            return good, at, end == CUT
        at = end
        in_transaction = name != b"EXEC" and (in_transaction or name == b"MULTI")
        good = good if in_transaction else at
    return good, at, in_transaction


CUT, WRONG = 0, -1
"""In the place of the end of a command: the content ends before it, or has something else there."""


def _command_end(content: bytes | mmap.mmap, at: int) -> tuple[int, bytes]:
    """Return the end of the command that begins at ``at``, or `CUT` or `WRONG`; and its name in upper case."""
    head, name = _COUNT.match(content, at), b""
    if head is None or not int(head[1]):
        return _kind_of_failure(content, at), name
    end = head.end() - len(LINE_END)
    for number in range(int(head[1])):
        length = _LENGTH.match(content, end)
        if length is None:
            return _kind_of_failure(content, end), name
        start, end = length.end(), length.end() + int(length[1])
        if not number:
            name = content[start:end].upper()
    if content[end : end + len(LINE_END)] != LINE_END:
        return _kind_of_failure(content, end), name
    return end + len(LINE_END), name


def _kind_of_failure(content: bytes | mmap.mmap, at: int) -> int:
    rest = content[at : at + 16]
    return CUT if at + len(rest) >= len(content) and _CUT_HEAD.match(rest) else WRONG


def _count_after(content: bytes | mmap.mmap, at: int) -> int:
    """Return how many whole commands stand one behind another somewhere after ``at``; 0 if there is none."""
    for found in _COMMAND.finditer(content, at + 1):
        end, _ = _command_end(content, found.start())
        count = 0
        while end > 0:
            count += 1
            end, _ = _command_end(content, end) if end < len(content) else (CUT, b"")
        if count:
            return count
    return 0


def _count_commands(part: Path) -> int:
    with _content(part) as content:
        return _count_after(content, -1)
