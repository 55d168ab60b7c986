"""One long poll: it reads and waits like a stream, and ends with one answer."""

import asyncio
from collections.abc import Iterable
from typing import NamedTuple

from stream_server.errors import Unavailable
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
