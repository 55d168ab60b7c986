"""Pages of the log for clients that catch up: four reads at a time, and one read for all clients at a position.

A page must begin directly after the entry that the client names. If it does not, the log may have lost its end, or
the replica may be behind. Then the feed first checks the hub's own position, and the reader reads the page again from
the primary. If the named entry is still missing, it is lost, and the page begins where the log continues.

`fill_ring` fills the ring of a server that has just started.
"""

import asyncio
import re
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial

from stream_server.errors import Unavailable
from stream_server.events.content import NOTHING_SHOWN, MalformedEntry, ShownIds
from stream_server.events.entry import Entry
from stream_server.events.position import LOG_START, Position
from stream_server.hub.catchup.reader import LogPage
from stream_server.hub.catchup.ring import Ring
from stream_server.hub.messages import NOTHING_LOST, ROLLED_BACK, TRIMMED
from stream_server.store.log.event_log import EventLog, LogLookup

_PLAIN_POST = re.compile(rb'\{"wire":\{"status":\{"id":"([0-9]{1,16})",')
"""The beginning of the JSON of a post that shows no other status, with the post's id. Most posts begin so."""


class LogReader:
    """Reads entries older than the ring, for clients that catch up."""

    def __init__(self, log: EventLog) -> None:
        self._log = log
        self._readable = asyncio.Event()
        self._read_slots = asyncio.Semaphore(4)
        self._reads_in_progress: dict[Position, asyncio.Task[LogPage]] = {}

    def mark_readable(self) -> None:
        """Wake the clients that wait for the log. The feed calls this after each successful check of the log."""
        self._readable.set()

    async def wait_until_readable(self, timeout_seconds: float) -> None:
        """Wait until the log is readable again, for at most ``timeout_seconds``."""
        self._readable.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_seconds):
                await self._readable.wait()

    async def read_page(self, after: Position, max_entries: int) -> LogPage:
        """Return up to ``max_entries`` entries after a position, or fewer if the entries are large.

        Entries that show what was deleted or edited later are marked. Raises `Unavailable` while Redis cannot answer.
        """
        reading = self._reads_in_progress.get(after)
        if reading is None:
            reading = asyncio.create_task(self._read_entries(after, max_entries), name="log page")
            self._reads_in_progress[after] = reading
            reading.add_done_callback(partial(self._read_done, after))
        return await asyncio.shield(reading)

    async def read_back(self, last: Position, max_entries: int) -> list[Entry]:
        """Return up to ``max_entries`` entries in log order, up to the one at ``last``. Empty if the log lacks that.

        They are marked as those of `read_page`, and undecoded. Raises `Unavailable` while Redis cannot answer.
        """
        entries = await self._log.read_back(last, self._log.page_sizer.page_entries(max_entries))
        await self._mark_changed(entries)
        for entry in entries:
            entry.drop_caches()
        return entries

    def _read_done(self, after: Position, read: "asyncio.Task[LogPage]") -> None:
        del self._reads_in_progress[after]
        if not read.cancelled():
            read.exception()  # fetch it, or asyncio logs an error when all waiting clients have left

    async def _read_entries(self, after: Position, max_entries: int) -> LogPage:
        """Read a page. If it does not continue at ``after``, check for a rollback and read again from the primary."""
        async with self._read_slots:
            located = await self._log.look_up(after.ms, after.seq)
            is_lost = _loss_at(after, located) == ROLLED_BACK
            entries = [] if is_lost else await self._read_from_replica(after, max_entries)
            if not entries or entries[0].position.n != _page_start(after, located).n + 1:
                await self._log.verify_feed()
                located = await self._log.look_up(after.ms, after.seq)
                start, page_entries = _page_start(after, located), self._log.page_sizer.page_entries(max_entries)
                entries = await self._log.read(start, page_entries, from_primary=True)
                # An entry that is still there was there when the page was read: nothing behind it had been trimmed.
                located = await self._log.look_up(after.ms, after.seq)
            if not entries:
                message = "the log ends before this position; the server is checking it, try again"
                raise Unavailable(message, retry_after=1)
            await self._mark_changed(entries)
        return LogPage(entries, _loss_at(after, located))

    async def _read_from_replica(self, after: Position, max_entries: int) -> list[Entry]:
        """Read a page from the replica, if one is in use. If it does not answer, select the primary and return []."""
        try:
            return await self._log.read(after, self._log.page_sizer.page_entries(max_entries))
        except Unavailable:
            self._log.replica_router.fall_back_to_primary()
            return []

    async def _mark_changed(self, entries: list[Entry]) -> None:
        """Mark the entries that show a deleted status or comment, or one that was edited later."""
        shown_by_entry = [(entry, _shown_ids(entry)) for entry in entries]
        status_ids = {status_id for _, shown in shown_by_entry for status_id in (shown.status, shown.original)}
        statuses = {status_id for status_id in status_ids if status_id is not None}
        comments = {shown.comment for _, shown in shown_by_entry if shown.comment is not None}
        # One set holds the ids of both, because ids of statuses and comments never coincide.
        existing, edits = await asyncio.gather(
            self._log.find_existing(statuses, comments), self._log.find_edits(statuses)
        )
        deleted = (statuses | comments) - existing
        for entry, shown in shown_by_entry:
            if edits:
                entry.later_edits = {each: edits[each] for each in (shown.status, shown.original) if each in edits}
            entry.is_deleted = shown.status in deleted or shown.comment in deleted
            entry.original_is_deleted = shown.original in deleted


def _loss_at(after: Position, located: LogLookup) -> str:
    """Return why entries after ``after`` may be missing from the log, as `LogPage` names it."""
    if located.has_all_after(after):
        return NOTHING_LOST
    return TRIMMED if located.is_below_floor(after) and located.rollback_start is None else ROLLED_BACK


def _page_start(after: Position, located: LogLookup) -> Position:
    """Return the position after which a page for a client at ``after`` begins: ``after``, if the log has that entry.

    If the entry was trimmed, the page begins with the oldest entry. If a rollback removed the entry, the page begins
    after the last entry that the rollback kept.
    """
    if located.entry is not None and located.entry.position == after:
        return after
    if located.is_below_floor(after):
        return located.resume_position or (after if located.floor is None else located.floor.previous())
    return located.resume_position or located.previous or LOG_START


def _shown_ids(entry: Entry) -> ShownIds:
    """Return the ids of the status, original and comment that an entry shows. A malformed entry shows nothing.

    A plain post is not decoded for this, because most clients need no decoded form of it.
    """
    plain = _PLAIN_POST.match(entry.body) if entry.kind == "post" else None
    if plain is not None and b'"original"' not in entry.body:
        return ShownIds(status=plain[1].decode())
    try:
        return entry.shown_ids
    except MalformedEntry:
        return NOTHING_SHOWN


MAX_PAGE_ENTRIES = 512
"""Most entries that the feed or the filling of the ring reads at once: about 0.5 MB."""


async def fill_ring(read_back: Callable[[Position, int], Awaitable[list[Entry]]], ring: Ring) -> None:
    """Add older entries of the log to the ring after a start, the newest first, while the feed adds new ones.

    ``read_back`` is `LogReader.read_back`. The filling ends when the ring has what its bounds allow, after two seconds,
    or if Redis is away: the server starts meanwhile and accepts no clients. Each page ends with the entry at the ring's
    floor, which the log still has. So the log and the ring are one history. If the ring was cut or trimmed while Redis
    was asked, the page does not end there, and the filling ends.
    """
    deadline = time.monotonic() + 2.0
    with suppress(Unavailable):
        while time.monotonic() < deadline:
            page = await read_back(ring.floor, MAX_PAGE_ENTRIES)
            if len(page) <= 1 or not ring.add_older(page):
                return
