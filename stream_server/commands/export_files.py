"""The files of an export: JSON lines, CSV and Parquet. A file gets its name when it is complete."""

import csv
import gzip
import io
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

from stream_server.commands.exit_codes import USAGE, CommandFailure
from stream_server.commands.output import member
from stream_server.config.data_folder import sync_folder
from stream_server.events.one_line import encode_json

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped]  # it has no types
from datetime import datetime
from typing import NamedTuple


class EventRow(NamedTuple):
    """The columns of one event. What an event lacks is None, or an empty list.

    Attributes:
        id: Id of the status; for a comment, of the comment.
        at: Time of the event, in UTC.
        kind: ``post``, ``delete``, ``like`` and so on.
        uid: Id of the author, else of the user who did it.
        login: Login of this user. A ``delete`` has only ids.
        message: Text of a post or comment.
        lang: Language of the post.
        lon: Longitude in degrees.
        lat: Latitude in degrees.
        tags: Hashtags without their sign.
        mentions: Logins that the text mentions.
        json: The event as the server sent it.
    """

    id: str | None
    at: datetime
    kind: str
    uid: str | None
    login: str | None
    message: str | None
    lang: str | None
    lon: float | None
    lat: float | None
    tags: list[str]
    mentions: list[str]
    json: str


def row_of(event: dict[str, Any]) -> EventRow:
    """Return the row of an event."""
    text = member(event, "comment") or member(event, "status") or member(event, "left")
    person = member(event, "source") or member(event, "user")
    author = person if person and event["kind"] != "post" else {"id": text.get("uid"), "login": text.get("login")}
    location, entities = member(text, "location"), member(text, "entities")
    return EventRow(
        text.get("id"), datetime.fromisoformat(event["at"]), event["kind"], author.get("id"), author.get("login"),
        text.get("message"), text.get("lang"), location.get("lon"), location.get("lat"),
        [tag["text"] for tag in entities.get("hashtags", ())], [one["login"] for one in entities.get("mentions", ())],
        encode_json(event).decode(),
    )  # fmt: skip


MAX_GROUP_ROWS = 20_000
MAX_GROUP_BYTES = 16 * 2**20
"""Rows, and their bytes, that wait in memory until they become a row group of a Parquet file."""


class ExportFile(ABC):
    """A file that takes events in order."""

    @abstractmethod
    def write(self, events: Sequence[dict[str, Any]]) -> None:
        """Append events to the file, in this order."""

    @abstractmethod
    def close(self) -> None:
        """Write what waits, and close the file."""


class NdjsonFile(ExportFile):
    """One JSON object a line, written to ``stream``, which compresses or not."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream

    def write(self, events: Sequence[dict[str, Any]]) -> None:
        """Add one line for each event."""
        self._stream.write(b"".join(encode_json(event) + b"\n" for event in events))

    def close(self) -> None:
        """Close the stream."""
        self._stream.close()


class CsvFile(ExportFile):
    """Comma-separated values (RFC 4180) in UTF-8 with the columns of :class:`EventRow`, and a line with their names.

    A list is its words with blanks between them. What an event lacks is empty.
    """

    def __init__(self, stream: IO[bytes]) -> None:
        self._text = io.TextIOWrapper(stream, encoding="utf-8", newline="")
        self._writer = csv.writer(self._text)
        self._writer.writerow(EventRow._fields)

    def write(self, events: Sequence[dict[str, Any]]) -> None:
        """Add one row for each event."""
        for event in events:
            cells = row_of(event)._asdict() | {"at": event["at"]}
            self._writer.writerow([" ".join(cell) if isinstance(cell, list) else cell for cell in cells.values()])

    def close(self) -> None:
        """Close the stream."""
        self._text.close()


def _none(_: dict[str, Any]) -> tuple[list[str], ...]:
    return ()


class ParquetFile(ExportFile):
    """A Parquet file with the columns of :class:`EventRow`, compressed with zstd.

    ``more`` are names of further columns, each a list of texts, and ``more_of`` returns those lists for an event.
    """

    def __init__(
        self, path: Path, more: tuple[str, ...] = (), more_of: Callable[[dict[str, Any]], tuple[list[str], ...]] = _none
    ) -> None:
        import pyarrow.parquet as pq  # type: ignore[import-untyped]  # noqa: PLC0415 - an extra, slow to load

        self._schema, self._more_of = parquet_schema(more), more_of
        self._writer = pq.ParquetWriter(path, self._schema, compression="zstd")
        self._batches: list[Any] = []

    def write(self, events: Sequence[dict[str, Any]]) -> None:
        """Add one row for each event. Rows wait in memory until they are a row group, as columns.

        As objects of Python they would wait at the cost of the garbage collector, which visits them again and again.
        """
        import pyarrow as pa  # noqa: PLC0415 - see above

        if events:
            columns = zip(*(row_of(event) + self._more_of(event) for event in events), strict=True)
            arrays = [pa.array(column, field.type) for column, field in zip(columns, self._schema, strict=True)]
            self._batches.append(pa.record_batch(arrays, schema=self._schema))
        rows, size = (sum(getattr(batch, name) for batch in self._batches) for name in ("num_rows", "nbytes"))
        if rows >= MAX_GROUP_ROWS or size >= MAX_GROUP_BYTES:
            self._write_group()

    def note(self, texts: Mapping[str, str]) -> None:
        """Keep named texts in the metadata of the file, before it is closed."""
        self._writer.add_key_value_metadata(dict(texts))

    def close(self) -> None:
        """Write the last rows and the end of the file."""
        self._write_group()
        self._writer.close()

    def _write_group(self) -> None:
        import pyarrow as pa  # noqa: PLC0415 - see above

        if self._batches:
            self._writer.write_table(pa.Table.from_batches(self._batches).combine_chunks())
        self._batches = []


def parquet_schema(more: tuple[str, ...] = ()) -> "pa.Schema":
    """Return the columns of a Parquet file: those of an event, and ``more`` lists of texts."""
    import pyarrow as pa  # noqa: PLC0415 - an extra

    types = {
        "at": pa.timestamp("ms", tz="UTC"), "kind": pa.dictionary(pa.int8(), pa.string()), "lon": pa.float64(),
        "lat": pa.float64(), **dict.fromkeys(("tags", "mentions", *more), pa.list_(pa.string())),
    }  # fmt: skip
    return pa.schema([(name, types.get(name, pa.string())) for name in (*EventRow._fields, *more)])


def _open_stream(path: Path, coding: str) -> IO[bytes]:
    """Open a file for writing. ``coding`` is the end of its name: ``.gz``, ``.zst``, or empty."""
    if coding == ".gz":
        return cast("IO[bytes]", gzip.open(path, "wb", compresslevel=6))
    if coding == ".zst":
        import pyarrow as pa  # noqa: PLC0415 - an extra

        return cast("IO[bytes]", pa.CompressedOutputStream(str(path), "zstd"))
    return path.open("wb")


_FORMS = {".ndjson": NdjsonFile, ".jsonl": NdjsonFile, ".csv": CsvFile}

PARQUET = ".parquet"
ENDINGS = ", ".join((*_FORMS, PARQUET))


def _opener(name: str) -> Callable[[Path], ExportFile] | None:
    """Return the function that opens a file of this name, or None if the name's ending is unknown."""
    coding = Path(name).suffix if Path(name).suffix in {".gz", ".zst"} else ""
    stem = name.removesuffix(coding)
    form = _FORMS.get(Path(stem).suffix)
    if form is not None:
        return lambda path: form(_open_stream(path, coding))
    return ParquetFile if not coding and Path(stem).suffix == PARQUET else None


def need_arrow() -> None:
    """Raise :class:`CommandFailure` if the extra `export` is not installed."""
    try:
        import pyarrow  # noqa: F401, ICN001, PLC0415 - is it there?
    except ImportError:
        message = 'Parquet and zstd need the extra `export`: pip install "social-stream-server[server,export]"'
        raise CommandFailure(message, USAGE) from None


@contextmanager
def open_export(path: Path) -> Iterator[ExportFile]:
    """Yield the file for an export to ``path``. It gets this name after the block, complete and on the disk.

    Until then it has a temporary name beside it, and is deleted if the block raises. Raises :class:`CommandFailure` at
    once if the ending of the name is unknown, a library is missing, or the folder cannot be written.
    """
    opener = _opener(path.name)
    if opener is None:
        allowed = f"one of {ENDINGS}, and .gz or .zst behind it for all but the last"
        raise CommandFailure(f"--to {path}: the name must end with {allowed}", USAGE)
    if path.suffix in {".zst", PARQUET}:
        need_arrow()
    unfinished = UnfinishedFile(path)
    try:
        unfinished.begin()
        with _closed_at_end(opener(unfinished.partial)) as file:
            yield file
        unfinished.finish()
    except OSError as error:
        raise CommandFailure(f"--to {path}: {error.strerror or error}") from None
    finally:
        unfinished.abandon()


class UnfinishedFile:
    """A file on its way to the name ``path``. Under this name, each reader finds the whole file or the one before it.

    Until it is finished it is ``partial``: hidden, in the same folder, and with the process in its name.
    """

    PATTERN = ".*.partial"
    """The names of unfinished files have this form."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.partial = path.with_name(f".{path.name}.{os.getpid()}.partial")

    def begin(self) -> None:
        """Create the file, which is empty. Raises OSError."""
        self.partial.unlink(missing_ok=True)
        self.partial.touch(exist_ok=False)  # in a folder of many users, somebody may have put a link there

    def finish(self) -> None:
        """Give the file, which is closed, its name. Both are on the disk afterwards. Raises OSError."""
        with self.partial.open("rb") as written:
            os.fsync(written.fileno())
        self.partial.replace(self.path)
        sync_folder(self.path.parent)

    def abandon(self) -> None:
        """Remove what is there, unless the file is finished. What cannot be removed stays hidden."""
        with suppress(OSError):
            self.partial.unlink(missing_ok=True)


@contextmanager
def _closed_at_end(file: ExportFile) -> Iterator[ExportFile]:
    """Yield the file, and close it after the block.

    If the block and the closing raise, the block's exception is raised.
    """
    try:
        yield file
    except BaseException:
        with suppress(Exception):
            file.close()
        raise
    file.close()
