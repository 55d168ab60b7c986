"""One stream: hello, catching up, live, catching up again …, goodbye."""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from stream_server.errors import Unavailable
from stream_server.hub import closing as reasons
from stream_server.hub import control
from stream_server.hub.closing import Closing
from stream_server.hub.control import Control, Gap
from stream_server.hub.member import Ask, Member
from stream_server.hub.reader import Page

if TYPE_CHECKING:
    from stream_server.hub.hub import Hub


class Sink(Protocol):
    """A client's socket, as far as the hub may know it."""

    def write(self, data: bytes) -> None:
        """Hand over bytes that are wrapped already; never waits."""

    def backlog(self) -> float:
        """Bytes handed over and not yet taken by the kernel."""

    async def send(self, data: bytes) -> None:
        """Write unwrapped bytes and wait until there is room for more."""

    def abort(self) -> None:
        """Drop the connection with whatever it still has to send."""


class Subscriber:
    """The life of one stream. :meth:`run` is the request's own coroutine: there is no task per client.

    ``lost`` is a gap known before the stream begins (its cursor is older than the log).
    """

    def __init__(self, hub: "Hub", ask: Ask, sink: Sink, *, lost: Gap | None, now_ms: Callable[[], int]) -> None:
        self._hub = hub
        self._sink = sink
        self._lost = lost
        self._now_ms = now_ms
        self._beat_at = 0.0
        self.member = Member(ask, sink.write, sink.backlog)

    async def run(self, hello: Control) -> Closing:
        """Serve until a reason to end; gives that reason after the goodbye went out."""
        member = self.member
        with self._hub.present(member):
            try:
                await self._begin(hello)
                while member.closing is None:
                    await self._catch_up()
                    await self._hub.live(member)
            except TimeoutError:
                member.close(reasons.TOO_SLOW)
                self._sink.abort()
                return reasons.TOO_SLOW
            return await self._end()

    async def _begin(self, hello: Control) -> None:
        await self._send_control(hello)
        if self._lost is not None:
            await self._send_control(control.gap(self._lost, self._now_ms()))

    async def _catch_up(self) -> None:
        """Read on until the head is reached; returns without an await after it saw that."""
        member = self.member
        while member.closing is None and member.position != self._hub.head:
            try:
                page = await self._hub.reader.page(member.ask, member.position, self._hub.head)
            except Unavailable:
                await self._hub.wait_for_log()
            else:
                await self._send_page(page)
            await self._beat()

    async def _send_page(self, page: Page) -> None:
        if page.gap is not None:
            await self._send_control(control.gap(page.gap, self._now_ms()))
        framing = self.member.ask.framing
        if page.wanted:
            await self._send(b"".join(entry.frame(framing.encode) for entry in page.wanted))
        else:
            await asyncio.sleep(0)  # a selective filter reads many empty pages: the others go on meanwhile
        self.member.position = page.upto

    async def _beat(self) -> None:
        """Also who catches up for long hears a heartbeat, with its own position."""
        now = asyncio.get_running_loop().time()
        if now >= self._beat_at:
            lag_ms = max(self._hub.lag_ms(), self._now_ms() - self.member.position.ms)
            await self._send_control(control.heartbeat(self.member.position, self._now_ms(), lag_ms))

    async def _send_control(self, message: Control) -> None:
        await self._send(self.member.ask.framing.control(message))

    async def _send(self, data: bytes) -> None:
        """Raises TimeoutError if the client makes no room for a whole write deadline."""
        async with asyncio.timeout(self._hub.limits.write_timeout_seconds):
            await self._sink.send(data)
        self._beat_at = asyncio.get_running_loop().time() + self._hub.limits.heartbeat_seconds

    async def _end(self) -> Closing:
        member = self.member
        assert member.closing is not None
        try:
            async with asyncio.timeout(self._hub.limits.goodbye_seconds):
                goodbye = control.goodbye(member.position, self._now_ms(), member.closing)
                await self._sink.send(member.ask.framing.control(goodbye))
        except TimeoutError:
            self._sink.abort()
        return member.closing
