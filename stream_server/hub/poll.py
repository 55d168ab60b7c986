"""One long poll: it reads and waits like a stream, and ends with one answer.

A preview of a rule is the other client without a socket: it counts the recent entries that the rule would match.
"""

import asyncio
from collections.abc import Iterable
from typing import NamedTuple

from stream_server.errors import Unavailable
from stream_server.events.entry import Entry
from stream_server.events.position import Position
from stream_server.hub.client import SocketlessClient, SubscribeRequest
from stream_server.hub.delivery import Delivery
from stream_server.hub.disconnect import DisconnectReason
from stream_server.hub.hub import Hub
from stream_server.hub.messages import Gap, StreamNotice

MAX_ANSWER_BYTES = 1 << 20
"""An answer ends after the page that exceeds this size. So a client that does not read cannot hold more memory."""


class PollResult(NamedTuple):
    """The answer of a long poll.

    Attributes:
        items: Deliveries, gaps and notices, in log order.
        position: Last position scanned. If the poll's ``limit`` cut the answer, the position of the last delivery.
        has_more: Whether the log had more entries after ``position``.
        disconnect_reason: Why the server ended the poll early, for example a revoked token. None otherwise.
    """

    items: list[Delivery | Gap | StreamNotice]
    position: Position
    has_more: bool
    disconnect_reason: DisconnectReason | None


class LongPoll(SocketlessClient):
    """A long poll, which the hub treats as a client without a socket. It reads the log, then waits for new entries."""

    __slots__ = (
        "_byte_count", "_entry_count", "_hub", "_items", "_limit", "_loop", "_may_wait", "_timeout", "_wake_future"
    )  # fmt: skip

    def __init__(self, hub: Hub, request: SubscribeRequest, *, limit: int, initial_gaps: Iterable[Gap] = ()) -> None:
        super().__init__(request)
        self._hub = hub
        self._limit = limit
        self._items: list[Delivery | Gap | StreamNotice] = [*initial_gaps]
        self._entry_count = 0
        self._byte_count = 0
        self._may_wait = True
        self._loop = asyncio.get_running_loop()
        self._wake_future: asyncio.Future[None] | None = None
        self._timeout: asyncio.Timeout | None = None

    async def run(self, wait_seconds: float) -> PollResult:
        """Return the answer as soon as it has an item, or after ``wait_seconds``.

        If ``wait_seconds`` is 0, it returns at once, and raises `Unavailable` if the log cannot be read.
        """
        self._may_wait = wait_seconds > 0
        self._hub.register(self)
        try:
            async with asyncio.timeout(wait_seconds or None) as self._timeout:
                while not await self._scan() and self._may_wait:
                    await self._wait_live()
        except TimeoutError:
            pass  # the time is over, or the client was disconnected: answer with what was found so far
        finally:
            self._timeout, reason = None, self.disconnect_reason
            self._hub.unregister(self)
        return PollResult(self._items, self.position, self.position != self._hub.head, reason)

    async def _wait_live(self) -> None:
        """Wait as a live client until a frame arrives or the poll ends. Call it only if the client is at the head."""
        if self.disconnect_reason is None:
            self._wake_future = self._loop.create_future()
            self._hub.live.join(self)
            try:
                await self._wake_future
            finally:
                self._hub.live.leave(self)

    def wake(self) -> None:
        """End the wait for a frame. If the hub disconnected the poll, also end every other wait of the poll."""
        if self._wake_future is not None and not self._wake_future.done():
            self._wake_future.set_result(None)
        timeout = self._timeout
        if self.disconnect_reason is not None and timeout is not None and not timeout.expired():
            timeout.reschedule(self._loop.time())  # the log may be away for long; an expired timeout would raise here

    async def _scan(self) -> bool:
        """Read pages until the head, or until the answer reaches a limit. Return whether the poll can answer now.

        After a second of reading, the answer has `more` and the cursor of the last scanned entry.
        """
        hub = self._hub
        ends = self._loop.time() + 1.0
        while self.disconnect_reason is None and self.position != hub.head and self._entry_count < self._limit:
            await self._read_page()
            if self._loop.time() > ends or self._byte_count > MAX_ANSWER_BYTES:
                return True
        return bool(self._items or self.disconnect_reason)

    async def _read_page(self) -> None:
        """Add the next page to the answer. If Redis is away, wait, or raise `Unavailable` if the poll may not wait."""
        try:
            page = await self._hub.catchup_reader.read_page(self, lambda: self._hub.head)
        except Unavailable:
            if not self._may_wait:
                raise
            await self._hub.wait_for_log(self._hub.limits.heartbeat_seconds)
            return
        if self.disconnect_reason is not None:
            return  # the page was matched with a viewer or rules that may be outdated
        if page.gap is not None:
            self._items.append(page.gap)
            if not self.accept_gap(page.gap):
                return
        taken = page.deliveries[: self._limit - self._entry_count]
        self._items += taken
        self._entry_count += len(taken)
        self._byte_count += sum(delivery.entry.size for delivery in taken)
        cut = len(page.deliveries) > len(taken)
        self.position = taken[-1].entry.position if cut else page.end_position
        if page.notice is not None and not cut:
            self._items.append(page.notice)
        await asyncio.sleep(0)


MAX_QUEUE_SECONDS = 5.0
"""Longest time in seconds that a preview waits for others to finish."""

MAX_WORK_SECONDS = 1.0
"""Time in seconds of reading and matching after which a preview reads no further page."""

MAX_SCANNED_ENTRIES = 50_000
"""Number of entries of the log after which a preview reads no further page."""

MAX_EXAMPLES = 10
"""Number of matching entries that are kept, the latest ones."""


class PreviewResult(NamedTuple):
    """The number of recent entries that a rule would have matched, with examples.

    Attributes:
        matched_count: Number of matching entries among the scanned ones.
        scanned_count: Number of entries that were scanned. They are the newest ones.
        start: Position before the oldest scanned entry.
        is_complete: Whether all entries of the requested span were scanned, with unchanged filters.
        examples: The latest matching entries, in log order.
        started_ms: Time at which the preview began, in ms since 1970. The entries up to then were scanned.
    """

    matched_count: int
    scanned_count: int
    start: Position
    is_complete: bool
    examples: list[Delivery]
    started_ms: int


class RulePreview(SocketlessClient):
    """Counts the recent entries that a rule would have matched, in slices, so that other tasks get their turn."""

    __slots__ = ("_examples", "_filters_changed", "_hub", "_matched_count")

    def __init__(self, hub: Hub, request: SubscribeRequest) -> None:
        super().__init__(request)
        self._hub = hub
        self._matched_count = 0
        self._filters_changed = False
        self._examples: list[Delivery] = []

    async def run(self) -> PreviewResult:
        """Scan from the present head back to the request's position, up to `MAX_WORK_SECONDS`.

        It scans at most `MAX_SCANNED_ENTRIES` and a page. Raises `Unavailable` if the log cannot be read, if too many
        previews run, or if the hub disconnected the preview, for example because the user's permissions may be out of
        date.
        """
        hub = self._hub
        try:
            async with asyncio.timeout(MAX_QUEUE_SECONDS):
                await hub.preview_slots.acquire()
        except TimeoutError:
            raise Unavailable("Too many previews are running; try again.", retry_after=5) from None
        try:
            head, started_ms = hub.head, hub.now_ms()
            hub.register(self)
            start = await self._read_back_from(head)
        finally:
            reason = self.disconnect_reason
            hub.unregister(self)
            hub.preview_slots.release()
        if reason is not None:  # its viewer or rules may be outdated
            raise Unavailable("The server is resynchronising; try again.", retry_after=1)
        is_complete = start.n <= self.since.n and not self._filters_changed
        return PreviewResult(
            self._matched_count, head.n - start.n, start, is_complete, self._examples[-MAX_EXAMPLES:], started_ms
        )

    async def _read_back_from(self, head: Position) -> Position:
        """Read pages backwards from the head. Return the position before the oldest entry that was read."""
        clock = asyncio.get_running_loop().time
        floor, spent = self.since, 0.0
        end = head._replace(seq=head.seq + 1, n=head.n + 1)
        while end.n - 1 > floor.n and head.n - end.n < MAX_SCANNED_ENTRIES and spent < MAX_WORK_SECONDS:
            began = clock()
            page = [entry for entry in await self._hub.catchup_reader.read_before(end) if entry.position.n > floor.n]
            if not page or self.disconnect_reason is not None:
                break
            await self._add_page(page)
            end = page[0].position
            spent += clock() - began
        return floor if end.n - 1 <= floor.n else end.previous()

    async def _add_page(self, entries: list[Entry]) -> None:
        """Match the entries of one page, in slices. They are older than the entries of all pages before."""
        found: list[Delivery] = []
        while entries and self.disconnect_reason is None:
            matched = await self._hub.catchup_reader.match(self, entries)
            found += matched.deliveries
            self._filters_changed = self._filters_changed or matched.notice is not None
            entries = [entry for entry in entries if entry.position > matched.end_position]
            await asyncio.sleep(0)
        self._matched_count += len(found)
        self._examples = [*found, *self._examples][-MAX_EXAMPLES:]
