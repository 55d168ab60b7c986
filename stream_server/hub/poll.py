"""One long poll: the same reading and the same waiting as a stream's, with an end."""

import asyncio
from typing import NamedTuple

from stream_server.errors import Unavailable
from stream_server.events.position import Position
from stream_server.hub.client import SubscribeRequest, socketless_client
from stream_server.hub.delivery import Delivery
from stream_server.hub.disconnect import DisconnectReason
from stream_server.hub.hub import Hub
from stream_server.hub.messages import Gap, StreamNotice

MAX_SCAN_SECONDS = 1.0
"""A filter that matches nothing of a long log is answered after this long, with `more` and the cursor it got to."""


MAX_ANSWER_BYTES = 1 << 20
"""An answer ends after the page that goes beyond this, with `more`: nobody holds ten megabytes of us by not reading."""


class PollResult(NamedTuple):
    """The answer: ``cursor`` is the last position scanned, or that of the last entry if ``limit`` cut."""

    items: list[Delivery | Gap | StreamNotice]
    position: Position
    has_more: bool
    disconnect_reason: DisconnectReason | None


class LongPoll:
    """A member that takes no bytes: every frame is refused, which wakes it where it stands, and it reads on."""

    def __init__(self, hub: Hub, request: SubscribeRequest, *, limit: int, initial_gap: Gap | None) -> None:
        self._hub = hub
        self._limit = limit
        self._items: list[Delivery | Gap | StreamNotice] = [] if initial_gap is None else [initial_gap]
        self._entry_count = 0
        self._byte_count = 0
        self._may_wait = True
        self._loop = asyncio.get_running_loop()
        self.client = socketless_client(request, self._on_wake)
        self._wake_future: asyncio.Future[None] | None = None
        self._timeout: asyncio.Timeout | None = None

    async def run(self, wait_seconds: float) -> PollResult:
        """As soon as there is something, or after ``wait_seconds`` (0: at once, or errors.Unavailable)."""
        member = self.client
        self._may_wait = wait_seconds > 0
        self._hub.register(member)
        try:
            async with asyncio.timeout(wait_seconds or None) as self._timeout:
                await self._read_until_result()
        except TimeoutError:
            pass  # the end of the wait, or of the member: the answer is what there is by now, with its cursor
        finally:
            self._timeout = None
            self._hub.unregister(member)
        more = member.position != self._hub.head
        return PollResult(self._items, member.position, more, member.disconnect_reason)

    async def _read_until_result(self) -> None:
        while not await self._scan() and self._may_wait:
            await self._wait_live()

    async def _wait_live(self) -> None:
        """Be live until there is something; the caller saw the head and did not await since."""
        if self.client.disconnect_reason is None:
            self._wake_future = self._loop.create_future()
            self._hub.live.join(self.client)
            try:
                await self._wake_future
            finally:
                self._hub.live.leave(self.client)

    def _on_wake(self) -> None:
        if self._wake_future is not None and not self._wake_future.done():
            self._wake_future.set_result(None)
        patience = self._timeout
        if self.client.disconnect_reason is not None and patience is not None and not patience.expired():
            patience.reschedule(self._loop.time())  # it may read a log that is away; raises if it is over in this turn

    async def _scan(self) -> bool:
        """Read to the head, or until there is enough or it took too long; True if there is an answer."""
        member = self.client
        ends = self._loop.time() + MAX_SCAN_SECONDS
        while (
            member.disconnect_reason is None and member.position != self._hub.head and self._entry_count < self._limit
        ):
            await self._read_page()
            if self._loop.time() > ends or self._byte_count > MAX_ANSWER_BYTES:
                return True
        return bool(self._items or member.disconnect_reason)

    async def _read_page(self) -> None:
        member = self.client
        try:
            page = await self._hub.catchup_reader.read_page(member, lambda: self._hub.head)
        except Unavailable:
            if not self._may_wait:
                raise
            await self._hub.wait_for_log(self._hub.limits.heartbeat_seconds)
            return
        if member.disconnect_reason is not None:
            return  # matched by sets that may be wrong by now
        if page.gap is not None:
            self._items.append(page.gap)
        room = self._limit - self._entry_count
        self._items += page.deliveries[:room]
        self._entry_count += len(page.deliveries[:room])
        self._byte_count += sum(picked.entry.size for picked in page.deliveries[:room])
        cut = len(page.deliveries) > room
        member.position = page.deliveries[room - 1].entry.position if cut else page.end_position
        if page.notice is not None and not cut:
            self._items.append(page.notice)
        await asyncio.sleep(0)
