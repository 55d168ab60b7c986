"""The log as the hub's readers see it: pages, four at a time, each read once for all who want it.

A page must begin behind the very entry that was named. Where it does not, the log may have lost its end, or what is
near may be behind: the feed looks at its own place first, and the page is read again, from the primary. What is still
not there then is gone, and the page begins where the log goes on for whoever stood there.
"""

import asyncio
from functools import partial

from stream_server.errors import Unavailable
from stream_server.events import START, Entry, MalformedEntry, Position
from stream_server.hub.reader import LogPage
from stream_server.store.log import Located, Log
from stream_server.view import NOTHING, Shown

TURNS = 4
"""So many pages are read at once."""


class LogReader:
    """Reads the log behind the ring, for all who are behind; ``doubted`` counts the pages that began elsewhere."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._turns = asyncio.Semaphore(TURNS)
        self._reading: dict[Position, asyncio.Task[LogPage]] = {}
        self.doubted = 0

    async def page(self, after: Position, most: int) -> LogPage:
        """Up to ``most`` entries after a position, fewer if they are large, marked where what they show is gone.

        Raises Unavailable.
        """
        reading = self._reading.get(after)
        if reading is None:
            reading = self._reading[after] = asyncio.create_task(self._read(after, most), name="log page")
            reading.add_done_callback(partial(self._read_done, after))
        return await asyncio.shield(reading)

    def _read_done(self, after: Position, reading: "asyncio.Task[LogPage]") -> None:
        del self._reading[after]
        if not reading.cancelled():
            reading.exception()  # looked at here too: all who waited for it may have left

    async def _read(self, after: Position, most: int) -> LogPage:
        async with self._turns:
            located = await self._log.locate(after.ms, after.seq)
            entries = await self._near(after, most) if _held(after, located) else []
            if not entries or entries[0].position.n != _begin(after, located).n + 1:
                self.doubted += 1
                await self._log.doubt()
                located = await self._log.locate(after.ms, after.seq)
                entries = await self._log.read(_begin(after, located), self._log.portion.of(most), sure=True)
            if not entries:
                raise Unavailable("the log ends before what was heard: it is looked at", retry_after=1)
            await self._mark_gone(entries)
        return LogPage(entries, held=_held(after, located))

    async def _near(self, after: Position, most: int) -> list[Entry]:
        """Nothing where the replica does not answer: it is left, and the primary asked."""
        try:
            return await self._log.read(after, self._log.portion.of(most))
        except Unavailable:
            self._log.near.leave()
            return []

    async def _mark_gone(self, entries: list[Entry]) -> None:
        """All that a page shows is asked about at once. Ids are places on the log: no two nouns share one."""
        shown = [(entry, _shown(entry)) for entry in entries]
        statuses = {one for _, told in shown for one in (told.status, told.original) if one is not None}
        comments = {told.comment for _, told in shown if told.comment is not None}
        lost = (statuses | comments) - await self._log.exists(statuses, comments)
        for entry, told in shown:
            entry.gone = told.status in lost or told.comment in lost
            entry.original_gone = told.original in lost


def _held(after: Position, located: Located) -> bool:
    """Whether the entry is there, or below the log's front, where it was once in its turn."""
    there = located.found is not None and located.found.position == after
    return there or (located.survivor is None and _in_front(after, located))


def _in_front(after: Position, located: Located) -> bool:
    return located.floor is None or after[:2] < located.floor[:2]


def _begin(after: Position, located: Located) -> Position:
    """Behind which place the page begins."""
    if located.found is not None and located.found.position == after:
        return after
    if _in_front(after, located):
        return located.resumed or (after if located.floor is None else located.floor.before())
    return located.resumed or located.before or START


def _shown(entry: Entry) -> Shown:
    try:
        return entry.shown
    except MalformedEntry:
        return NOTHING
