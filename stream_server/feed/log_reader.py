"""The log as the hub's readers see it: pages, four at a time, each read once for all who want it.

A page must begin behind the very entry that was named. Where it does not, the log may have lost its end, or what is
near may be behind: the feed looks at its own place first, and the page is read again, from the primary. What is still
not there then is gone, and the page begins where the log goes on for whoever stood there.
"""

import asyncio
from functools import partial

from stream_server.errors import Unavailable
from stream_server.events.entry import Entry
from stream_server.events.entry_fields import MalformedEntry
from stream_server.events.position import LOG_START, Position
from stream_server.events.view import NOTHING_SHOWN, ShownIds
from stream_server.hub.catchup.reader import LogPage
from stream_server.store.log.event_log import EventLog, LogLookup

MAX_CONCURRENT_READS = 4
"""So many pages are read at once."""


class LogReader:
    """Reads the log behind the ring, for all who are behind; ``rechecks`` counts the pages that began elsewhere."""

    def __init__(self, log: EventLog) -> None:
        self._log = log
        self._read_slots = asyncio.Semaphore(MAX_CONCURRENT_READS)
        self._reads_in_progress: dict[Position, asyncio.Task[LogPage]] = {}
        self.rechecks = 0

    async def read_page(self, after: Position, max_entries: int) -> LogPage:
        """Up to ``max_entries`` entries after a position, fewer if they are large, marked where what they show is gone.

        Raises Unavailable.
        """
        reading = self._reads_in_progress.get(after)
        if reading is None:
            reading = self._reads_in_progress[after] = asyncio.create_task(
                self._read_entries(after, max_entries), name="log page"
            )
            reading.add_done_callback(partial(self._read_done, after))
        return await asyncio.shield(reading)

    def _read_done(self, after: Position, read: "asyncio.Task[LogPage]") -> None:
        del self._reads_in_progress[after]
        if not read.cancelled():
            read.exception()  # looked at here too: all who waited for it may have left

    async def _read_entries(self, after: Position, max_entries: int) -> LogPage:
        async with self._read_slots:
            located = await self._log.look_up(after.ms, after.seq)
            entries = await self._read_from_replica(after, max_entries) if _is_contiguous(after, located) else []
            if not entries or entries[0].position.n != _page_start(after, located).n + 1:
                self.rechecks += 1
                await self._log.verify_feed()
                located = await self._log.look_up(after.ms, after.seq)
                entries = await self._log.read(
                    _page_start(after, located), self._log.page_sizer.page_entries(max_entries), from_primary=True
                )
            if not entries:
                raise Unavailable("the log ends before what was heard: it is looked at", retry_after=1)
            await self._mark_deleted(entries)
        return LogPage(entries, is_contiguous=_is_contiguous(after, located))

    async def _read_from_replica(self, after: Position, max_entries: int) -> list[Entry]:
        """Nothing where the replica does not answer: it is left, and the primary asked."""
        try:
            return await self._log.read(after, self._log.page_sizer.page_entries(max_entries))
        except Unavailable:
            self._log.replica_router.fall_back_to_primary()
            return []

    async def _mark_deleted(self, entries: list[Entry]) -> None:
        """All that a page shows is asked about at once. Ids are places on the log: no two nouns share one."""
        shown = [(entry, _shown_ids(entry)) for entry in entries]
        statuses = {one for _, told in shown for one in (told.status, told.original) if one is not None}
        comments = {told.comment for _, told in shown if told.comment is not None}
        lost = (statuses | comments) - await self._log.find_existing(statuses, comments)
        for entry, told in shown:
            entry.is_deleted = told.status in lost or told.comment in lost
            entry.original_is_deleted = told.original in lost


def _is_contiguous(after: Position, located: LogLookup) -> bool:
    """Whether the entry is there, or below the log's front, where it was once in its turn."""
    there = located.entry is not None and located.entry.position == after
    return there or (located.rollback_start is None and _is_before_floor(after, located))


def _is_before_floor(after: Position, located: LogLookup) -> bool:
    return located.floor is None or after[:2] < located.floor[:2]


def _page_start(after: Position, located: LogLookup) -> Position:
    """Behind which place the page begins."""
    if located.entry is not None and located.entry.position == after:
        return after
    if _is_before_floor(after, located):
        return located.resume_position or (after if located.floor is None else located.floor.previous())
    return located.resume_position or located.previous or LOG_START


def _shown_ids(entry: Entry) -> ShownIds:
    try:
        return entry.shown_ids
    except MalformedEntry:
        return NOTHING_SHOWN
