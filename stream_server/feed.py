"""Hears the log and hands it to the hub: every entry, once, in order.

PUBLISH is the fast path, the log is the truth. Each message carries its contiguous number, so a missed one
is known at once and read from the log; a canary compares the hub's head with the log's, so that a link which
is silent without an error is found as well, and dialled anew. Live messages are never buffered: on a gap they
only raise the target up to which the log is read.
"""

import asyncio
import logging
import random
from collections.abc import Callable
from contextlib import aclosing
from functools import partial

from stream_server.errors import ApiError
from stream_server.events import Entry, MalformedEntry, Position, parse_message
from stream_server.hub.hub import Hub
from stream_server.store.log import Log

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
        self, log: Log, hub: Hub, *, canary_seconds: float, now_ms: Callable[[], int], random_source: random.Random
    ) -> None:
        self._log = log
        self.hub = hub
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
                    await self._catch_up(await self._log.head())
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
            self.malformed += 1  # neither the next nor one that was heard before

    async def _catch_up(self, target: Position) -> None:
        """Publish from the log until ``target`` is reached."""
        hub = self.hub
        while hub.head.n < target.n:
            entries = await self._log.read(hub.head, PAGE)
            if not entries:
                return
            for entry in entries:
                self.repaired += 1
                hub.publish(entry)
            await asyncio.sleep(0)

    # The canary: is the hub where the log is?

    async def _watch(self) -> None:
        """Raises :class:`LinkLost` when the log went on and nothing of it was heard for a beat."""
        while True:
            await asyncio.sleep(self._canary_seconds)
            heard = self.hub.head
            head = await self._check_rollback(heard)
            self.hub.log_ready.set()
            if head.n <= self.hub.head.n:
                continue
            await asyncio.sleep(self._canary_seconds / 2)
            if self.hub.head == heard:
                message = f"silent: the log is at {head.cursor}, heard until {heard.cursor}"
                raise LinkLost(message)

    async def _check_rollback(self, heard: Position) -> Position:
        """The log's head; if the last entry heard is not on the log any more, everyone is told."""
        located = await self._log.locate(heard.ms, heard.seq)
        trimmed = located.floor is not None and heard < located.floor
        lost = heard.n > 0 and not trimmed and (located.found is None or located.found.position.n != heard.n)
        if lost and self.hub.head == heard:
            logger.error("the log was rolled back from %s to %s", heard.cursor, located.head.cursor)
            self.hub.roll_back(located.head)
        return located.head

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
        self._reading: dict[tuple[Position, Position], asyncio.Task[list[Entry]]] = {}

    async def page(self, after: Position, upto: Position, most: int) -> list[Entry]:
        """Up to ``most`` entries after one position up to another, deleted posts marked ``gone``."""
        key = (after, upto)
        reading = self._reading.get(key)
        if reading is None:
            reading = self._reading[key] = asyncio.create_task(self._read(after, upto, most), name="log page")
            reading.add_done_callback(partial(self._read_done, key))
        return await asyncio.shield(reading)

    def _read_done(self, key: tuple[Position, Position], reading: "asyncio.Task[list[Entry]]") -> None:
        del self._reading[key]
        if not reading.cancelled():
            reading.exception()  # looked at here too: all who waited for it may have left

    async def _read(self, after: Position, upto: Position, most: int) -> list[Entry]:
        async with self._turns:
            entries = await self._log.read(after, most, upto=upto)
            posts = {entry.event.status_id: entry for entry in entries if _is_post(entry)}
            kept = await self._log.exists([status_id for status_id in posts if status_id])
            for status_id, entry in posts.items():
                entry.gone = status_id not in kept
            return entries


def _is_post(entry: Entry) -> bool:
    try:
        return entry.kind == "post" and entry.event.status_id is not None
    except MalformedEntry:
        return False


