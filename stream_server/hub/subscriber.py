"""One stream: hello, catching up, live, catching up again …, goodbye."""

import asyncio
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from stream_server.errors import Unavailable
from stream_server.events import Position
from stream_server.hub import closing as reasons
from stream_server.hub import control
from stream_server.hub.control import Control, Gap, Notice
from stream_server.hub.member import Ask, Member
from stream_server.hub.reader import Page

if TYPE_CHECKING:
    from stream_server.hub.hub import Hub

FALLING_BEHIND = "falling_behind"
"""The ``warning`` of a stream that reads too slowly to be live: nothing is lost as long as the log reaches back."""

WARN_SECONDS = 300.0
"""A stream is told at most so often that it falls behind, as Twitter did."""


class Sink(Protocol):
    """A client's socket, as far as the hub may know it. Bytes are wrapped already."""

    def write(self, data: bytes) -> None:
        """Hand over bytes; never waits."""

    def backlog(self) -> float:
        """Bytes handed over and not yet taken by the kernel."""

    async def room(self) -> None:
        """Wait until there is room for more; raises ConnectionError if the client left."""

    def finish(self) -> None:
        """End the response after what was handed over."""

    def abort(self) -> None:
        """Drop the connection with whatever it still has to send."""


class Subscriber:
    """The life of one stream. While it is live there is no task for it, only its membership in a group.

    ``lost`` is a gap known before the stream begins (its cursor is older than the log).
    """

    __slots__ = ("_beat_at", "_hub", "_lost", "_now_ms", "_sink", "_task", "_warn_at", "member")

    def __init__(self, hub: "Hub", ask: Ask, sink: Sink, *, lost: Gap | None, now_ms: Callable[[], int]) -> None:
        self._hub = hub
        self._sink = sink
        self._lost = lost
        self._now_ms = now_ms
        self._beat_at = 0.0
        self._warn_at = -math.inf
        self._task: asyncio.Task[None] | None = None
        self.member = Member(ask, sink.write, sink.backlog, self._resume)

    def begin(self) -> None:
        """Hello was sent: go on from there. A client that misses nothing is live at once, without a task."""
        self._hub.enter(self.member)
        member = self.member
        if self._task is None:
            if self._lost is None and member.ask.until is None and member.position == self._hub.head:
                self._hub.join(member)
            else:
                self._resume()

    def gone(self) -> None:
        """The client left: nothing of it stays behind."""
        if self._task is not None:
            self._task.cancel()
        self._hub.exit(self.member)

    def _resume(self) -> None:
        """Frames were refused, or it is over: what follows waits for the socket, so it is a task."""
        if self._task is None:
            self._task = self._hub.errands.start(self._run(), "stream")

    async def _run(self) -> None:
        """Until the client is live (again), or its stream has ended."""
        member = self.member
        self._beat_at = asyncio.get_running_loop().time() + self._hub.limits.heartbeat_seconds
        try:
            await self._tell_loss()
            await self._tell_stall()
            while member.closing is None:
                await self._catch_up()
                if member.ask.until is not None:
                    member.close(reasons.BACKFILL_DONE)
                if member.closing is None:
                    self._hub.join(member)
                    return
            self._hub.retire(member)
            await self._end()
        except TimeoutError:
            member.close(reasons.TOO_SLOW)
            self._sink.abort()
        except ConnectionError:
            self._sink.abort()
        except Exception:
            self._sink.abort()  # better no stream than one that is open and silent
            raise
        finally:
            self._task = None

    async def _tell_loss(self) -> None:
        if self._lost is not None:
            lost, self._lost = self._lost, None
            await self._send_control(control.gap(lost, self._now_ms()))

    async def _tell_stall(self) -> None:
        """All that is kept unsent for a live client is full; who is on the way out need not hear it."""
        member, now = self.member, asyncio.get_running_loop().time()
        refused, member.refused = member.refused, False
        if refused and member.closing is None and now >= self._warn_at:
            self._warn_at = now + WARN_SECONDS
            told = Notice("warning", member.position, {"code": FALLING_BEHIND, "percent": 100})
            await self._send_control(control.notice(told, self._now_ms()))

    async def _catch_up(self) -> None:
        """Read on until the head is reached; returns without an await after it saw that."""
        member = self.member
        while member.closing is None and member.group is None and member.position != self._end_of_reading:
            try:
                page = await self._hub.reader.page(member, self._end_of_reading)
            except Unavailable:
                await self._hub.wait_for_log(member)
            else:
                await self._send_page(page)
            await self._beat()

    @property
    def _end_of_reading(self) -> Position:
        """Where the stream goes live, or ends; what it was to end at may be on the log no more."""
        head, until = self._hub.head, self.member.ask.until
        return head if until is None else min(until, head)

    async def _send_page(self, page: Page) -> None:
        if self.member.closing is not None:
            return  # what was matched while the log was read goes by sets that may be wrong by now
        if page.gap is not None:
            await self._send_control(control.gap(page.gap, self._now_ms()))
            if self.member.outdated(page.gap.end):
                self.member.position = page.gap.end
                self.member.close(reasons.RESYNC)
                return
        encode = self.member.ask.framing.encode
        if page.wanted:
            await self._send(b"".join(picked.frame(encode) for picked in page.wanted))
        self.member.position = page.upto
        if page.notice is not None:
            await self._send_control(control.notice(page.notice, self._now_ms()))
        await asyncio.sleep(0)  # a page costs milliseconds: the others go on meanwhile

    async def _beat(self) -> None:
        """Also who catches up for long hears a heartbeat, with its own position."""
        now = asyncio.get_running_loop().time()
        if now >= self._beat_at:
            lag_ms = max(self._hub.lag_ms(), self._now_ms() - self.member.position.ms)
            await self._send_control(control.heartbeat(self.member.position, self._now_ms(), lag_ms))

    async def _send_control(self, message: Control) -> None:
        await self._send(self.member.ask.framing.control(message))

    async def _send(self, data: bytes) -> None:
        """Raises TimeoutError if the client takes no byte for a whole write deadline; slowly is not never."""
        if not data:
            return  # the stream's protocol has no word for it
        self._sink.write(self.member.ask.framing.wrap(data))
        backlog = math.inf
        while not await self._room():
            if self._sink.backlog() >= backlog:
                raise TimeoutError
            backlog = self._sink.backlog()
        self._beat_at = asyncio.get_running_loop().time() + self._hub.limits.heartbeat_seconds

    async def _room(self) -> bool:
        """Whether there was room within a write deadline."""
        try:
            async with asyncio.timeout(self._hub.limits.write_timeout_seconds):
                await self._sink.room()
        except TimeoutError:
            return False
        return True

    async def _end(self) -> None:
        """Say goodbye, if there is a word for it; who does not take it in time is dropped."""
        member = self.member
        assert member.closing is not None
        framing = member.ask.framing
        goodbye = framing.control(control.goodbye(member.position, self._now_ms(), member.closing))
        if goodbye:
            self._sink.write(framing.wrap(goodbye))
        self._sink.finish()
        await asyncio.sleep(self._hub.limits.goodbye_seconds)
        self._sink.abort()
