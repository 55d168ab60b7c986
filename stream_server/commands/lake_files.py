"""The folder of a rolling lake: which files it has, in which order, and what each says about itself.

A file is ``dt=2026-11-28/hour=13/<first cursor>.parquet``: the date and the hour (UTC) of its first event, and the
event's cursor. The log has one order, so the names alone say which file is the newest. Each file says in its metadata
where the next one begins. So there is no state beside the files.
"""

import fcntl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any, NamedTuple

import msgspec

from stream_server.commands.exit_codes import USAGE, CommandFailure
from stream_server.commands.export_files import PARQUET, ParquetFile, UnfinishedFile
from stream_server.commands.output import member
from stream_server.config.data_folder import sync_folder
from stream_server.events.position import LOG_START, POSITION_PATTERN, Position

SHOWN = "shown"
"""The column with the ids of the statuses and comments whose text a row shows. The others are those of each export."""

NOTES_KEY = "stream_server"
"""The key of a file's metadata under which its :class:`Notes` are, as JSON."""

_LOCK_FILE = ".lock"

HOUR_MS = 3_600_000


class LakeDamaged(CommandFailure):
    """Raised for a lake that cannot be continued. The message names the file."""


class Notes(msgspec.Struct):
    """The notes of a file about itself.

    Attributes:
        cursor: Everything up to here is in this file and those before it. The next file begins behind it.
        parameters: The parameters of the stream, which select the events of the lake.
        erased: What the deletes in the files up to the one with this first cursor concern is in no file any more.
            None if nothing was erased yet.
    """

    cursor: str
    parameters: dict[str, str]
    erased: str | None = None


class LakeFile(NamedTuple):
    """A file of a lake, and the position of its name. Files of a lake compare in the order of the log."""

    start: Position
    path: Path


def position_of(cursor: str) -> Position | None:
    """Return the position of a cursor; None for another text."""
    numbers = POSITION_PATTERN.fullmatch(cursor.encode())
    return None if numbers is None else Position(*map(int, numbers.groups()))


def shown_in(event: dict[str, Any]) -> list[str]:
    """Return the ids of the statuses and comments whose text an event shows. A ``delete`` has only ids."""
    if event["kind"] == "delete":
        return []
    status = member(event, "status")
    comment = {} if event["kind"] == "uncomment" else member(event, "comment")
    return [one["id"] for one in (status, comment, member(status, "original")) if "id" in one]


class Lake:
    """The files of a lake. Nobody else changes them while this object exists: :func:`open_lake` has locked the folder.

    Attributes:
        newest: The newest file; None if there is none.
        notes: What the newest file says. Without a file, the lake begins at the start of the log.
    """

    def __init__(self, folder: Path, parameters: Mapping[str, str]) -> None:
        """Raises :class:`CommandFailure` if other parameters made the lake, or its newest file is damaged."""
        self.folder = folder
        self.newest = max(self.files(), default=None)
        self.notes = Notes(LOG_START.cursor, dict(parameters))
        if self.newest is not None:
            self.notes = read_notes(self.newest.path)
            if self.notes.parameters != parameters:
                had = "&".join(f"{name}={value}" for name, value in self.notes.parameters.items())
                message = f"--to {folder}: this lake has what {had} selects; give other filters another folder"
                raise CommandFailure(message, USAGE)

    @property
    def end(self) -> Position:
        """The position behind which the next file may begin: behind all events, also those that the log has lost."""
        end = position_of(self.notes.cursor) or LOG_START
        return end if self.newest is None else max(end, self.newest.start)

    def files(self) -> list[LakeFile]:
        """Return the files of the lake in the order of the log. Files with other names are left out."""
        found = []
        for path in self.folder.glob(f"dt=*/hour=*/*{PARQUET}"):
            start = position_of(path.stem)
            if start is not None:
                found.append(LakeFile(start, path))
        return sorted(found)

    def begin(self, start: Position) -> UnfinishedFile:
        """Create the file whose first event is at ``start``. Raises OSError, and `LakeDamaged` for an earlier one."""
        if self.newest is not None and start <= self.newest.start:
            name = self.newest.path.name
            raise LakeDamaged(f"--to {self.folder}: {start.cursor} is not behind {name}: is this the same server?")
        day, _, hour = datetime.fromtimestamp(start.ms / 1000, UTC).strftime("%Y-%m-%d %H").partition(" ")
        path = self.folder / f"dt={day}" / f"hour={hour}" / f"{start.cursor}{PARQUET}"
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = UnfinishedFile(path)
        unfinished.begin()
        return unfinished

    def finish(self, unfinished: UnfinishedFile, start: Position, notes: Notes) -> LakeFile:
        """Give a file, which has these notes, its name. It is the newest from then on. Raises OSError."""
        unfinished.finish()
        for folder in (unfinished.path.parent.parent, self.folder):  # they may be new, too
            sync_folder(folder)
        self.newest, self.notes = LakeFile(start, unfinished.path), notes
        return self.newest


def open_rows(path: Path) -> ParquetFile:
    """Open a file for rows of a lake."""
    return ParquetFile(path, (SHOWN,), lambda event: (shown_in(event),))


def write_notes(file: ParquetFile, notes: Notes) -> None:
    """Keep the notes in the metadata of a file, before it is closed."""
    file.note({NOTES_KEY: msgspec.json.encode(notes).decode()})


def read_notes(path: Path) -> Notes:
    """Return what a file says about itself. Raises :class:`LakeDamaged` if it is no file of a lake."""
    import pyarrow.parquet as pq  # type: ignore[import-untyped]  # noqa: PLC0415 - an extra, slow to load

    try:
        notes = msgspec.json.decode((pq.read_metadata(path).metadata or {}).get(NOTES_KEY.encode(), b""), type=Notes)
    except (OSError, ValueError) as error:  # those of pyarrow and msgspec are ValueErrors
        raise LakeDamaged(f"{path} is not a file of this lake: {error}") from None
    return notes


@contextmanager
def open_lake(folder: Path, parameters: Mapping[str, str]) -> Iterator[Lake]:
    """Yield the lake in a folder, which is made if it is missing. Until the end of the block nobody else can open it.

    What a killed process left unfinished is removed. Raises :class:`CommandFailure` if another process has the lake,
    the folder cannot be used, or the lake holds what other parameters select.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / _LOCK_FILE).open("ab")
    except OSError as error:
        raise CommandFailure(f"--to {folder}: {error.strerror or error}") from None
    with lock:
        _lock(lock, folder)
        try:
            for left in folder.glob(f"dt=*/hour=*/{UnfinishedFile.PATTERN}"):
                left.unlink(missing_ok=True)
        except OSError as error:
            raise CommandFailure(f"--to {folder}: {error.strerror or error}") from None
        yield Lake(folder, parameters)


def _lock(file: IO[bytes], folder: Path) -> None:
    """Lock a file until it is closed, or the process ends in any way."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise CommandFailure(f"--to {folder}: another `stream-server export` writes this lake") from None
