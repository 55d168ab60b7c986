"""A rolling lake: ``export --every`` writes events into one file after the other, each event into exactly one.

A file is complete at its rename, and says where the next one begins (``lake_files``). So whatever ends the process, the
next start reads the newest file and goes on: the events of the file that was not complete come from the log again.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import suppress
from typing import Any

from stream_server.commands.export_files import ParquetFile
from stream_server.commands.export_pages import GAP, ExportSummary, Page
from stream_server.commands.lake_erasure import Eraser
from stream_server.commands.lake_files import HOUR_MS, Lake, Notes, open_rows, position_of, write_notes
from stream_server.events.position import Position

LATE_SECONDS = 30.0
"""How long after its time a file waits for an event of the next one: longer than a poll waits."""

PACE_SECONDS = 1.0
"""How long to wait for more events where there are few: a poll is answered at the first one."""


class OpenFile:
    """A file that takes events, and is complete after :meth:`finish`.

    ``window`` is the time whose events it takes, as :class:`LakeWriter` counts it.
    """

    def __init__(self, lake: Lake, start: Position, window: tuple[int, int]) -> None:
        self.window = window
        self._lake, self._start = lake, start
        self._unfinished = lake.begin(start)
        try:
            self._rows: ParquetFile = open_rows(self._unfinished.partial)
        except BaseException:
            self._unfinished.abandon()
            raise
        self._summary = ExportSummary(str(self._unfinished.path))

    def write(self, messages: Sequence[dict[str, Any]], cursor: str) -> None:
        """Append events and gaps that were read up to ``cursor``. Raises OSError."""
        self._rows.write(messages)
        self._summary.add(messages, cursor)

    def finish(self, cursor: str, parameters: dict[str, str], erased: str | None) -> ExportSummary:
        """Complete the file, which has everything up to ``cursor``. Raises OSError."""
        notes = Notes(cursor, parameters, erased)
        write_notes(self._rows, notes)
        self._rows.close()
        self._summary.cursor = cursor
        self._summary.bytes = self._unfinished.partial.stat().st_size
        self._lake.finish(self._unfinished, self._start, notes)
        return self._summary

    def abandon(self) -> None:
        """Remove the file, unless it is complete."""
        with suppress(Exception):  # it may have failed to write already
            self._rows.close()
        self._unfinished.abandon()


class LakeWriter:
    """Distributes pages over the files of a lake.

    The events of a file are from one *window*: a part of an hour that is ``every_seconds`` long. The clock of this
    machine decides nothing but how long a file waits for an event of the next window, so it may be wrong.

    A gap is a row before the event that follows it. If none follows, it is in the next file that has a cursor behind
    it. Until then it is in no file, and the server would tell it again.

    Attributes:
        cursor: Everything up to here is in a complete file, or in the open one.
    """

    def __init__(
        self, lake: Lake, since: str | None, every_seconds: int, on_file: Callable[[ExportSummary], None],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        """A lake without a file begins at ``since``, by default with the oldest entry of the log."""
        self._lake, self._every_ms, self._on_file, self._monotonic = lake, every_seconds * 1000, on_file, monotonic
        self.cursor = since if since is not None and lake.newest is None else lake.notes.cursor
        self._file: OpenFile | None = None
        self._gaps: list[dict[str, Any]] = []  # those at or before the cursor that are in no file yet
        is_new = lake.newest is None
        self._due = monotonic() + (0 if is_new else every_seconds + LATE_SECONDS)  # a new lake tells its start at once

    def add(self, page: Page) -> None:
        """Write a page, and complete each file that the page shows to be full. Raises OSError."""
        run: list[dict[str, Any]] = []  # messages of one window; gaps at its end belong to the next event
        for message in page.messages:
            if message["kind"] != GAP:
                start = position_of(message["cursor"])
                assert start is not None, message
                if self._file is not None and self._file.window != self._window(start):
                    run = self._write_events(run)
                    self.complete()
                if self._file is None:
                    self._file = self._begin(start)
            run.append(message)
        left = self._write_events(run)
        self._gaps += left
        if position_of(page.cursor) is not None:  # it may be a time if the end was reached before any event
            self.cursor = page.cursor

    def complete_late(self) -> None:
        """Complete the file whose time is over although no later event has come. Raises OSError.

        Without a file, make one without events if the log has gone on meanwhile: it keeps the cursor, which the log may
        have trimmed when an event matches at last.
        """
        if self._monotonic() < self._due:
            return
        end = position_of(self.cursor)
        if self._file is None and end is not None and end > self._lake.end:
            self._file = self._begin(end)
        self.complete()
        self._due = self._monotonic() + self._every_ms / 1000 + LATE_SECONDS

    def complete(self) -> None:
        """Complete the open file, if there is one. Raises OSError."""
        if self._file is not None and self._gaps:
            self._write(self._gaps, self.cursor)
        file, self._file = self._file, None
        if file is None:
            return
        try:
            summary = file.finish(self.cursor, self._lake.notes.parameters, self._lake.notes.erased)
        finally:
            file.abandon()
        self._gaps = []
        self._due = self._monotonic() + self._every_ms / 1000 + LATE_SECONDS
        self._on_file(summary)

    def _write_events(self, run: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Write messages into the open file. Return the gaps behind the last event, which are not written."""
        count = len(run)
        while count and run[count - 1]["kind"] == GAP:
            count -= 1
        if count:
            self._write([*self._gaps, *run[:count]], run[count - 1]["cursor"])
            self._gaps = []
        return run[count:]

    def _write(self, messages: Sequence[dict[str, Any]], cursor: str) -> None:
        """Write into the open file. If that fails, the file is removed: its events are still on the log."""
        assert self._file is not None
        try:
            self._file.write(messages, cursor)
        except BaseException:
            self._file.abandon()
            self._file = None
            raise
        self.cursor = cursor

    def _begin(self, start: Position) -> OpenFile:
        left = self._every_ms - start.ms % HOUR_MS % self._every_ms
        self._due = self._monotonic() + left / 1000 + LATE_SECONDS
        return OpenFile(self._lake, start, self._window(start))

    def _window(self, position: Position) -> tuple[int, int]:
        return position.ms // HOUR_MS, position.ms % HOUR_MS // self._every_ms


async def follow_pages(pages: AsyncGenerator[Page, None], writer: LakeWriter, eraser: Eraser | None) -> None:
    """Write pages into a lake until they end or this is cancelled. Then the open file is completed.

    A file is also completed in time while no page comes, for example because the server is away. Raises what the pages
    raise, and OSError if the disk is full.
    """
    reading = asyncio.ensure_future(anext(pages, None))
    try:
        while True:
            await asyncio.wait({reading}, timeout=PACE_SECONDS)
            if reading.done():
                page = reading.result()
                if page is None:
                    return
                writer.add(page)
                if not page.more:
                    await asyncio.sleep(PACE_SECONDS)
                reading = asyncio.ensure_future(anext(pages, None))
            writer.complete_late()
            if eraser is not None:
                await eraser.run_due()
    finally:
        reading.cancel()
        await asyncio.wait({reading})
        if not reading.cancelled():
            reading.exception()  # it is told by now, or does not matter any more
        writer.complete()
