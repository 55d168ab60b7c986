"""Hears the log and hands it to the hub: every entry, once, in order.

PUBLISH is the fast path, the log is the truth. Each message carries its contiguous number, so a missed one
is known at once and read from the log; a canary compares the hub's head with the log's, so that a link which
is silent without an error is found as well, and dialled anew. Live messages are never buffered: on a gap they
only raise the target up to which the log is read.
"""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from functools import partial

from stream_server.errors import ApiError
from stream_server.events import START, Entry, MalformedEntry, Position, parse_message
from stream_server.hub.hub import Hub
from stream_server.hub.reader import LogPage
from stream_server.store.log import Log
from stream_server.store.viewers import Outcasts
from stream_server.view import NOTHING, Shown

logger = logging.getLogger(__name__)

PAGE = 512
"""Entries a read of the log: about 0.5 MB."""

BACKOFF_SECONDS = (0.05, 2.0)
"""Wait before dialling Redis again: the first and the longest, doubled in between, with jitter."""


class LinkLost(Exception):
    """The subscription ended, or cannot be trusted any more: dial anew and read the log first."""


class Feed:
    """One worker's link to the log; :meth:`run` owns it until cancelled."""

    def __init__(
        self,
        log: Log,
        hub: Hub,
        outcasts: Callable[[], Awaitable[Outcasts]],
        *,
        canary_seconds: float,
        now_ms: Callable[[], int],
        random_source: random.Random,
    ) -> None:
        self._log = log
        self.hub = hub
        self._outcasts = outcasts
        self._standing_known = False
        self._canary_seconds = canary_seconds
        self._now_ms = now_ms
        self._random = random_source
        self._behind_since_ms: int | None = now_ms()
        self._well = asyncio.Event()
        self.malformed = 0
        self.repaired = 0
        self.redials = 0
        hub.lag_ms = self.lag_ms

    def lag_ms(self) -> int:
        """For how long the hub is known, or suspected, to be behind the log; 0 while all is well."""
        return 0 if self._behind_since_ms is None else max(0, self._now_ms() - self._behind_since_ms)

    @property
    def ready(self) -> bool:
        """Whether an event that is written now would arrive."""
        return self._behind_since_ms is None

    async def wait_ready(self) -> None:
        """Until the feed is ready for the first time, or again."""
        await self._well.wait()

    async def run(self) -> None:
        """Listen and watch until cancelled; what Redis does is waited out, any other failure ends it."""
        shortest, longest = BACKOFF_SECONDS
        wait = shortest
        while True:
            try:
                async with asyncio.TaskGroup() as life:
                    life.create_task(self._listen(), name="feed: listen")
                    life.create_task(self._watch(), name="feed: canary")
            except* (LinkLost, ApiError, OSError) as lost:
                logger.warning("link to Redis lost: %s", lost.exceptions[0])
            wait = shortest if self.ready else min(longest, wait * 2)
            self._fall_behind()
            self.redials += 1
            await asyncio.sleep(wait * self._random.uniform(0.5, 1.5))

    async def _listen(self) -> None:
        """One life of the subscription; the log is read once it is confirmed, so nothing falls between."""
        async with aclosing(self._log.listen()) as messages:
            async for message in messages:
                if message is None:
                    head = await self._check()
                    if not self._standing_known:
                        await self._learn_standing()
                    await self._catch_up(head)
                    self._recover()
                else:
                    await self._hear(message)

    async def _hear(self, message: bytes) -> None:
        try:
            entry = parse_message(message)
        except MalformedEntry:
            self.malformed += 1
            return
        following = self.hub.head.n + 1
        if entry.position.n == following and entry.position > self.hub.head:
            self.hub.publish(entry)
        elif entry.position.n >= following:
            await self._catch_up(entry.position)
            self.malformed += entry.position.n > self.hub.head.n  # it names a place that the log does not have
        elif not self.hub.ring.holds(entry.position):
            await self._check()  # a number that was heard with another id: another history, or junk
            self.malformed += 1

    async def _catch_up(self, target: Position) -> None:
        """Publish from the log until ``target`` is reached; what was trimmed before it was read is told."""
        hub = self.hub
        while hub.head.n < target.n:
            entries = await self._log.read(hub.head, PAGE)
            if not entries:
                return
            missed = entries[0].position.n - hub.head.n - 1
            if missed < 0:
                raise LinkLost("the log's numbers go back")
            if missed:
                self._jump(entries[0].position.before(), "trimmed", missed)
                await self._learn_standing()
            self._publish(entries)
            await asyncio.sleep(0)

    def _jump(self, to: Position, reason: str, missed: int | None = None) -> None:
        """What was lost may have been a protection: nothing is published until it is known who has it."""
        self._standing_known = False
        self.hub.jump(to, reason, missed)

    async def _learn_standing(self) -> None:
        """Who is protected and suspended now: later than the hub's head perhaps, as it is for whoever replays."""
        self.hub.standing.load(*await self._outcasts())
        self._standing_known = True

    def _publish(self, entries: list[Entry]) -> None:
        """As far as they go on from the head: it may have moved while they were read."""
        for entry in entries:
            if entry.position.n == self.hub.head.n + 1 and entry.position > self.hub.head:
                self.repaired += 1
                self.hub.publish(entry)

    # The canary: is the hub where the log is?

    async def _watch(self) -> None:
        """Raises :class:`LinkLost` when the log went on and nothing of it was heard for a beat."""
        while True:
            await asyncio.sleep(self._canary_seconds)
            heard = self.hub.head
            head = await self._check()
            self.hub.log_ready.set()
            if head.n <= self.hub.head.n:
                continue
            await asyncio.sleep(self._canary_seconds / 2)
            if self.hub.head == heard:
                message = f"silent: the log is at {head.cursor}, heard until {heard.cursor}"
                raise LinkLost(message)

    async def _check(self) -> Position:
        """The log's head. If the last entry heard is not on the log, the hub goes back to one that is.

        Raises :class:`LinkLost` then: the log is read on from there by a new link, whatever was on its way.
        """
        heard = self.hub.head
        located = await self._log.locate(heard.ms, heard.seq)
        trimmed = located.floor is not None and heard[:2] < located.floor[:2]
        there = located.found is not None and located.found.position == heard
        if there or trimmed or heard.n == 0 or self.hub.head != heard:
            return located.head
        survivor = await self._log.survivor(self.hub.ring.newest_first()) or located.before or START
        self._jump(survivor, "rolled_back")
        message = f"the log was rolled back: {heard.cursor} is gone, {survivor.cursor} is the last that is left"
        raise LinkLost(message)

    def _fall_behind(self) -> None:
        if self._behind_since_ms is None:
            self._behind_since_ms = self._now_ms()
            self._well.clear()

    def _recover(self) -> None:
        self._behind_since_ms = None
        self._well.set()
        self.hub.log_ready.set()


class LogReader:
    """The log as the hub's readers see it: pages, four at a time, each read once for all who want it."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._turns = asyncio.Semaphore(4)
        self._reading: dict[Position, asyncio.Task[LogPage]] = {}

    async def page(self, after: Position, most: int) -> LogPage:
        """Up to ``most`` entries after a position, marked where what they show is gone."""
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
            entries = await self._log.read(after, most)
            await self._mark_gone(entries)
        there = located.found is not None and located.found.position == after
        below = located.floor is None or after[:2] < located.floor[:2]
        return LogPage(entries, held=there or below)

    async def _mark_gone(self, entries: list[Entry]) -> None:
        """All that a page shows is asked about in one round trip. Ids are places on the log: no two nouns share one."""
        shown = [(entry, _shown(entry)) for entry in entries]
        statuses = {one for _, told in shown for one in (told.status, told.original) if one is not None}
        comments = {told.comment for _, told in shown if told.comment is not None}
        lost = (statuses | comments) - await self._log.exists(statuses, comments)
        for entry, told in shown:
            entry.gone = told.status in lost or told.comment in lost
            entry.original_gone = told.original in lost


def _shown(entry: Entry) -> Shown:
    try:
        return entry.shown
    except MalformedEntry:
        return NOTHING
