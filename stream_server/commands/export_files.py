"""The files of an export: JSON lines, plain or compressed, and Parquet. A file gets its name when it is complete."""

import gzip
import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

from stream_server.commands.exit_codes import USAGE, CommandFailure
from stream_server.commands.export_rows import EventRow, row_of
from stream_server.events.one_line import encode_json

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped]  # it has no types

MAX_GROUP_ROWS = 20_000
MAX_GROUP_BYTES = 16 * 2**20
"""Rows, and bytes of their JSON, that wait in memory until they become a row group of a Parquet file."""

MISSING_EXTRA = 'Parquet and zstd need the extra `export`: pip install "stream-server[server,export]"'


class ExportFile(ABC):
    """A file that takes events in order."""

    @abstractmethod
    def write(self, events: Sequence[dict[str, Any]]) -> None:
        """Add events."""

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


class ParquetFile(ExportFile):
    """A Parquet file with the columns of :class:`EventRow`, compressed with zstd."""

    def __init__(self, path: Path) -> None:
        import pyarrow.parquet as pq  # type: ignore[import-untyped]  # noqa: PLC0415 - an extra, slow to load

        self._schema = _schema()
        self._writer = pq.ParquetWriter(path, self._schema, compression="zstd")
        self._rows: list[EventRow] = []
        self._bytes = 0

    def write(self, events: Sequence[dict[str, Any]]) -> None:
        """Add one row for each event. Rows wait in memory until they are a row group."""
        for event in events:
            row = row_of(event)
            self._rows.append(row)
            self._bytes += len(row.json)
            if len(self._rows) >= MAX_GROUP_ROWS or self._bytes >= MAX_GROUP_BYTES:
                self._write_group()

    def close(self) -> None:
        """Write the last rows and the end of the file."""
        self._write_group()
        self._writer.close()

    def _write_group(self) -> None:
        import pyarrow as pa  # noqa: PLC0415 - see above

        if self._rows:
            columns = dict(zip(EventRow._fields, map(list, zip(*self._rows, strict=True)), strict=True))
            self._writer.write_table(pa.table(columns, schema=self._schema))
        self._rows, self._bytes = [], 0


def _schema() -> "pa.Schema":
    import pyarrow as pa  # noqa: PLC0415 - an extra

    types = {
        "at": pa.timestamp("ms", tz="UTC"), "kind": pa.dictionary(pa.int8(), pa.string()), "lon": pa.float64(),
        "lat": pa.float64(), "tags": pa.list_(pa.string()), "mentions": pa.list_(pa.string()),
    }  # fmt: skip
    return pa.schema([(name, types.get(name, pa.string())) for name in EventRow._fields])


def _open_gzip(path: Path) -> ExportFile:
    return NdjsonFile(cast("IO[bytes]", gzip.open(path, "wb", compresslevel=6)))


def _open_zstd(path: Path) -> ExportFile:
    import pyarrow as pa  # noqa: PLC0415 - an extra

    return NdjsonFile(cast("IO[bytes]", pa.CompressedOutputStream(str(path), "zstd")))


_OPENERS = {
    ".ndjson": lambda path: NdjsonFile(path.open("wb")),
    ".ndjson.gz": _open_gzip,
    ".ndjson.zst": _open_zstd,
    ".parquet": ParquetFile,
}

_NEED_EXTRA = frozenset({".ndjson.zst", ".parquet"})

ENDINGS = ", ".join(_OPENERS)


@contextmanager
def open_export(path: Path) -> Iterator[ExportFile]:
    """Yield the file for an export to ``path``. It gets this name after the block, complete and on the disk.

    Until then it has a temporary name beside it, and is deleted if the block raises. Raises :class:`CommandFailure` at
    once if the ending of the name is unknown, a library is missing, or the folder cannot be written.
    """
    ending = next((one for one in _OPENERS if path.name.endswith(one) and path.name != one), None)
    if ending is None:
        raise CommandFailure(f"--to {path}: the name must end with one of {ENDINGS}", USAGE)
    if ending in _NEED_EXTRA:
        _require_extra()
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        partial.unlink(missing_ok=True)
        partial.touch(exist_ok=False)  # in a folder of many users, somebody may have put a link to another file there
        file = _OPENERS[ending](partial)
    except OSError as error:
        raise CommandFailure(f"--to {path}: {error.strerror or error}") from None
    try:
        with _closed_at_end(file):
            yield file
        _sync(partial)
        partial.replace(path)
    except OSError as error:
        raise CommandFailure(f"--to {path}: {error.strerror or error}") from None
    finally:
        partial.unlink(missing_ok=True)


@contextmanager
def _closed_at_end(file: ExportFile) -> Iterator[None]:
    """Close the file after the block. If the block raises, its exception matters and not that of the file."""
    try:
        yield
    except BaseException:
        with suppress(Exception):
            file.close()
        raise
    file.close()


def _require_extra() -> None:
    try:
        import pyarrow  # noqa: F401, ICN001, PLC0415 - is it there?
    except ImportError:
        raise CommandFailure(MISSING_EXTRA, USAGE) from None


def _sync(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())
