"""One long poll: the same reading and the same waiting as a stream's, with an end."""

import asyncio
from typing import TYPE_CHECKING, NamedTuple

from stream_server.errors import Unavailable
from stream_server.events import Position
from stream_server.hub.closing import Closing
from stream_server.hub.control import Gap, Notice
from stream_server.hub.member import Ask, without_socket
from stream_server.hub.reader import Picked

if TYPE_CHECKING:
    from stream_server.hub.hub import Hub


SCAN_SECONDS = 1.0
"""A filter that matches nothing of a long log is answered after this long, with `more` and the cursor it got to."""


ANSWER_BYTES = 1 << 20
"""An answer ends after the page that goes beyond this, with `more`: nobody holds ten megabytes of us by not reading."""


class Polled(NamedTuple):
    """The answer: ``cursor`` is the last position scanned, or that of the last entry if ``limit`` cut."""

    items: list[Picked | Gap | Notice]
    position: Position
    more: bool
    closing: Closing | None


class Poll:
    """A member that takes no bytes: every frame is refused, which wakes it where it stands, and it reads on."""

    def __init__(self, hub: "Hub", ask: Ask, *, limit: int, lost: Gap | None) -> None:
        self._hub = hub
        self._limit = limit
        self._items: list[Picked | Gap | Notice] = [] if lost is None else [lost]
        self._entries = 0
        self._bytes = 0
        self._waits = True
        self._loop = asyncio.get_running_loop()
        self.member = without_socket(ask, self._wake)
        self._woken: asyncio.Future[None] | None = None
        self._patience: asyncio.Timeout | None = None

    async def run(self, wait_seconds: float) -> Polled:
        """As soon as there is something, or after ``wait_seconds`` (0: at once, or errors.Unavailable)."""
        member = self.member
        self._waits = wait_seconds > 0
        self._hub.enter(member)
        try:
            async with asyncio.timeout(wait_seconds or None) as self._patience:
                await self._until_something()
        except TimeoutError:
            pass  # the end of the wait, or of the member: the answer is what there is by now, with its cursor
        finally:
            self._patience = None
            self._hub.exit(member)
        more = member.position != self._hub.head
        return Polled(self._items, member.position, more, member.closing)

    async def _until_something(self) -> None:
        while not await self._scan() and self._waits:
            await self._rest()

    async def _rest(self) -> None:
        """Be live until there is something; the caller saw the head and did not await since."""
        if self.member.closing is None:
            self._woken = self._loop.create_future()
            self._hub.join(self.member)
            try:
                await self._woken
            finally:
                self._hub.retire(self.member)

    def _wake(self) -> None:
        if self._woken is not None and not self._woken.done():
            self._woken.set_result(None)
        patience = self._patience
        if self.member.closing is not None and patience is not None and not patience.expired():
            patience.reschedule(self._loop.time())  # it may read a log that is away; raises if it is over in this turn

    async def _scan(self) -> bool:
        """Read to the head, or until there is enough or it took too long; True if there is an answer."""
        member = self.member
        ends = self._loop.time() + SCAN_SECONDS
        while member.closing is None and member.position != self._hub.head and self._entries < self._limit:
            await self._read_page()
            if self._loop.time() > ends or self._bytes > ANSWER_BYTES:
                return True
        return bool(self._items or member.closing)

    async def _read_page(self) -> None:
        member = self.member
        try:
            page = await self._hub.reader.page(member, lambda: self._hub.head)
        except Unavailable:
            if not self._waits:
                raise
            await self._hub.wait_for_log(self._hub.limits.heartbeat_seconds)
            return
        if member.closing is not None:
            return  # matched by sets that may be wrong by now
        if page.gap is not None:
            self._items.append(page.gap)
        room = self._limit - self._entries
        self._items += page.wanted[:room]
        self._entries += len(page.wanted[:room])
        self._bytes += sum(picked.entry.size for picked in page.wanted[:room])
        cut = len(page.wanted) > room
        member.position = page.wanted[room - 1].entry.position if cut else page.upto
        if page.notice is not None and not cut:
            self._items.append(page.notice)
        await asyncio.sleep(0)
