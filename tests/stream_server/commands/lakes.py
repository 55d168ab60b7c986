"""A log in memory for the tests of lakes: its events, its pages, and what the files of a lake hold."""

import json
import os
import shutil
import sys
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq  # type: ignore[import-untyped]  # it has no types

from stream_server.commands.export_pages import ExportSummary, Page
from stream_server.commands.lake import LakeWriter, follow_pages
from stream_server.commands.lake_files import Lake, open_lake
from stream_server.events.position import Position

NOON_MS = 1_764_331_200_000
"""2025-11-28T12:00:00Z."""

PARAMETERS = {"firehose": "true"}

Message = dict[str, Any]


def iso(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def entry(number: int, seconds: float, kind: str = "post", **members: Any) -> Message:
    """Return the message of the log's entry ``number``, so many seconds after noon: a post, or what ``members`` say."""
    ms = NOON_MS + round(seconds * 1000)
    shown = members or {"status": {"id": str(number), "uid": "7", "login": "ann", "message": f"text {number}"}}
    return {"kind": kind, "cursor": Position(ms, 0, number).cursor, "at": iso(ms), **shown}


def gap(to: Message, count: int = 3) -> Message:
    """Return the gap that ends at a message."""
    return {
        "kind": "gap", "cursor": to["cursor"], "at": to["at"], "from": "0-0.0", "to": to["cursor"],
        "reason": "trimmed", "count": count,
    }  # fmt: skip


def place(cursor: str) -> tuple[int, ...]:
    """Return the numbers of a cursor, which sort as the log does."""
    return tuple(map(int, cursor.replace("-", ".").split(".")))


async def pages_behind(log: list[Message], cursor: str, size: int) -> AsyncGenerator[Page, None]:
    """Yield what is behind a cursor, as the server would answer polls, to the end of the log."""
    later = [message for message in log if place(message["cursor"]) > place(cursor)]
    for start in range(0, len(later), size):
        page = later[start : start + size]
        sys.audit(_PAGE)
        yield Page(page, page[-1]["cursor"])


class Follower:
    """Writes a lake from a log in memory. ``now`` is its clock, in seconds."""

    def __init__(self, lake: Lake, every: int = 600) -> None:
        self.now = 0.0
        self.told: list[ExportSummary] = []
        self.writer = LakeWriter(lake, None, every, self.told.append, lambda: self.now)


async def write_lake(folder: Path, log: list[Message], *, every: int = 600, size: int = 4) -> list[ExportSummary]:
    """Write what a lake has not yet of the log, as a process would that is stopped at the end of the log."""
    with open_lake(folder, PARAMETERS) as lake:
        follower = Follower(lake, every)
        await follow_pages(pages_behind(log, follower.writer.cursor, size), follower.writer, None)
    return follower.told


def files_of(folder: Path) -> list[Path]:
    """Return the files that a reader finds, in the order of the log."""
    return sorted(folder.glob("*/*/*.parquet"), key=lambda path: place(path.stem))


def rows_of(folder: Path) -> list[Message]:
    """Return the rows of all files in their order. Fails if a reader would find half a file."""
    return [row for path in files_of(folder) for row in pq.ParquetFile(path).read().to_pylist()]


def messages_of(folder: Path) -> list[Message]:
    """Return the messages of all files in their order."""
    return [json.loads(row["json"]) for row in rows_of(folder)]


_PAGE = "lakes.page"

_snapshots: list[Callable[[], None]] = []
"""What is called before each page and each change of names on the disk, while a test asks for it."""


def _on_audit(event: str, _: tuple[Any, ...]) -> None:
    if _snapshots and event in {_PAGE, "open", "os.rename", "os.remove", "os.mkdir"}:
        take = _snapshots.pop()
        try:
            take()
        finally:
            _snapshots.append(take)


sys.addaudithook(_on_audit)


@contextmanager
def killed_anywhere(folder: Path, copies: Path) -> Iterator[list[Path]]:
    """Yield a list that gets copies of the folder, each as ``kill -9`` would leave it.

    There is one for each step that changes names in it and for each page. One that equals the one before is left out.
    """
    taken: list[Path] = []
    seen: list[list[tuple[str, int]]] = []

    def take() -> None:
        state = sorted((str(path.relative_to(folder)), path.stat().st_mtime_ns) for path in folder.rglob("*"))
        if not seen or seen[-1] != state:
            seen.append(state)
            taken.append(Path(shutil.copytree(folder, copies / str(len(taken)))))

    _snapshots.append(take)
    try:
        yield taken
    finally:
        _snapshots.remove(take)


def unfinished_in(folder: Path) -> list[str]:
    """Return the names of the files that are not complete."""
    return [name for _, _, names in os.walk(folder) for name in names if name.endswith(".partial")]
