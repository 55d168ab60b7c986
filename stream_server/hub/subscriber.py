"""One stream: hello, catching up, live, catching up again …, goodbye."""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from stream_server.errors import Unavailable
from stream_server.events import Position
from stream_server.hub import closing as reasons
from stream_server.hub import control
from stream_server.hub.control import Control
from stream_server.hub.member import Ask, Member
from stream_server.hub.pace import LOOKS, Pace, Silence, Stall
from stream_server.hub.reader import Page, Picked

if TYPE_CHECKING:
    from stream_server.hub.hub import Hub

LOOK_SECONDS = 0.1
"""How often it is looked whether a client takes bytes, where nobody waits for its socket."""

LISTEN_SECONDS = 1.0
"""How often it is asked whether the machine of a client that reads on is there; an eighth of its deadline, if less."""

LEFT, ABORTED, FAILED = "left", "aborted", "failed"
"""How a stream ends without a ``goodbye``."""


class Sink(Protocol):
    """A client's socket, as far as the hub may know it. Bytes are wrapped already."""

    def write(self, data: bytes) -> None:
        """Hand over bytes; never waits."""

    def backlog(self) -> float:
        """Bytes handed over and not yet taken by the kernel."""

    def held(self) -> float:
        """Bytes that the kernel has and the client's machine has not acknowledged; 0 where that is not known."""

    def silence(self) -> float:
        """Seconds since the client's machine acknowledged anything; 0 if nothing is to be, or where it is not known."""

    @property
    def full(self) -> bool:
        """Whether more is waited for room before it is handed over."""

    async def room(self) -> None:
        """Wait until it is full no more; raises ConnectionError if the client left."""

    def finish(self) -> None:
        """End the response after what was handed over."""

    def abort(self) -> None:
        """Drop the connection with whatever it still has to send."""


class Subscriber:
    """The life of one stream. While it is live there is no task for it, only its membership in a group."""

    __slots__ = (
        "_beat_at", "_hub", "_listen_at", "_now_ms", "_pace", "_patience", "_silence", "_sink", "_task", "_way_out",
        "member",
    )  # fmt: skip

    def __init__(self, hub: "Hub", ask: Ask, sink: Sink, *, now_ms: Callable[[], int]) -> None:
        self._hub = hub
        self._sink = sink
        self._now_ms = now_ms
        self._beat_at = 0.0
        self._listen_at = 0.0
        self._silence = Silence()
        self._way_out: str | None = LEFT
        self._pace: Pace | None = None
        self._task: asyncio.Task[None] | None = None
        self._patience: asyncio.Timeout | None = None
        self.member = Member(ask, sink.write, sink.backlog, self._resume, held=sink.held, silence=sink.silence)

    def begin(self) -> None:
        """Hello was sent: go on from there. A client that is at the head is live at once, without a task."""
        self._hub.enter(self.member)
        member = self.member
        if self._task is None:
            if member.ask.until is None and member.position == self._hub.head:
                self._hub.join(member)
            else:
                self._resume()

    def gone(self) -> None:
        """The client left, or was let go: nothing of it stays behind."""
        if self._task is not None:
            self._task.cancel()
        self._hub.exit(self.member)
        if self._way_out is not None:
            self._hub.counts.ended[self._way_out] += 1
            self._way_out = None

    def _resume(self) -> None:
        """Frames were refused, or it is over: what follows waits for the socket, so it is a task."""
        if self._task is None:
            self._task = self._hub.errands.start(self._run(), "stream")
        elif self.member.closing is not None:
            self._hurry()

    def _hurry(self) -> None:
        """It is over: neither the log nor the socket is waited for any more, since either may be away."""
        if self._patience is not None:
            self._patience.reschedule(_now())
            self._patience = None

    async def _run(self) -> None:
        """Until the client is live (again), or its stream has ended."""
        member = self.member
        limits = self._hub.limits
        self._beat_at = _now() + limits.heartbeat_seconds
        self._pace = Pace(limits.behind_entries, limits.slow_seconds)
        try:
            await self._go_live()
            if member.closing is not None:
                self._hub.retire(member)
                await self._end()
        except TimeoutError:
            member.close(reasons.TOO_SLOW)
            self._abort(ABORTED)
        except ConnectionError:
            self._abort(LEFT)
        except Exception:
            self._abort(FAILED)  # better no stream than one that is open and silent
            raise
        finally:
            self._task = self._pace = None

    def _abort(self, way_out: str) -> None:
        self._way_out = way_out
        self._sink.abort()

    async def _go_live(self) -> None:
        """Catch up until the client is live, or until its stream is to end, which interrupts whatever this waits for.

        Interrupted, it stands behind what was handed to the socket: a position is moved as that is done, not after
        the wait for room. Raises TimeoutError if the client takes no byte for a whole write deadline.
        """
        member = self.member
        try:
            async with asyncio.timeout(None) as self._patience:
                if member.closing is not None:
                    self._hurry()
                await self._stir()
                await self._drained()
                await self._tell_stall()
                while member.closing is None:
                    await self._catch_up()
                    if member.ask.until is not None:
                        member.close(reasons.BACKFILL_DONE)
                    if member.closing is None:
                        self._hub.join(member)
                        return
        except TimeoutError:
            if member.closing is None:
                raise
        finally:
            self._patience = None

    async def _tell_stall(self) -> None:
        """All that may be kept unsent for a live client is full; who is on the way out need not hear it."""
        member = self.member
        refused, member.refused = member.refused, False
        told = member.falls_behind(member.position, 1, _now()) if refused and member.closing is None else None
        if told is not None:
            await self._send_control(control.notice(told, self._now_ms()))

    async def _stir(self) -> None:
        """Who seemed stuck while live takes a byte before anything else; raises TimeoutError if it does not.

        At once where its machine is gone: it had its deadline while it was live.
        """
        if self.member.vanished:
            raise TimeoutError
        if not self.member.stuck:
            return
        self.member.stuck = False
        before = self.member.unsent()
        stall = Stall(self._hub.limits.write_timeout_seconds)
        while not stall.over(unsent := self.member.unsent(), _now()):
            if unsent < before or not unsent:
                return
            await asyncio.sleep(self._look_seconds)
        raise TimeoutError

    async def _catch_up(self) -> None:
        """Read on until the head is reached; returns without an await after it saw that."""
        member = self.member
        while member.closing is None and member.group is None and member.position != self._end_of_reading():
            try:
                page = await self._hub.reader.page(member, self._end_of_reading)
            except Unavailable:
                await self._hub.wait_for_log(self._beat_at - _now())
            else:
                await self._send_page(page)
            await self._beat()

    def _end_of_reading(self) -> Position:
        """Where the stream goes live, or ends; what it was to end at may be on the log no more."""
        head, until = self._hub.head, self.member.ask.until
        return head if until is None else min(until, head)

    async def _send_page(self, page: Page) -> None:
        if self.member.closing is not None:
            return  # what was matched while the log was read goes by sets that may be wrong by now
        if page.gap is not None:
            self._write_control(control.gap(page.gap, self._now_ms()))
            self.member.position = page.gap.end
            if self.member.outdated(page.gap.end):
                self.member.close(reasons.RESYNC)
                return
        await self._send_parts(page.wanted)
        self.member.position = page.upto
        if page.notice is not None:
            self._write_control(control.notice(page.notice, self._now_ms()))
        await self._drained()

    async def _send_parts(self, wanted: list[Picked]) -> None:
        """Part by part, so that little is unsent at once; the last one's room is not waited for here."""
        encode, most = self.member.ask.framing.encode, self._hub.limits.part_bytes
        frames: list[bytes] = []
        size, reached = 0, self.member.position
        for picked in wanted:
            frame = picked.frame(encode)
            if frames and size + len(frame) > most:
                self._write_events(frames)
                self.member.position = reached
                await self._drained()
                frames, size = [], 0
            frames.append(frame)
            size, reached = size + len(frame), picked.entry.position
        self._write_events(frames)

    def _write_events(self, frames: list[bytes]) -> None:
        self._hub.outflow.delivered += sum(map(bool, frames))  # none, where the stream's protocol has no word for it
        self._write(b"".join(frames))

    async def _beat(self) -> None:
        """Also who catches up for long hears a heartbeat, with its own position, and is listened to."""
        self._listen()
        if _now() >= self._beat_at:
            lag_ms = max(self._hub.lag_ms(), self._now_ms() - self.member.position.ms)
            await self._send_control(control.heartbeat(self.member.position, self._now_ms(), lag_ms))

    def _listen(self) -> None:
        """Raises TimeoutError if the client's machine is gone: where nothing matches no buffer is filled by that."""
        now, deadline = _now(), self._hub.limits.write_timeout_seconds
        if now >= self._listen_at:
            self._listen_at = now + min(LISTEN_SECONDS, deadline / 8)
            if self._silence.lasted(self.member.silence(), now) >= deadline:
                raise TimeoutError

    async def _send_control(self, message: Control) -> None:
        self._write_control(message)
        await self._drained()

    def _write_control(self, message: Control) -> None:
        self._write(self.member.ask.framing.control(message))

    def _write(self, data: bytes) -> None:
        """Hand over one message or several; no bytes where the stream's protocol has no word for it."""
        if data:
            self._sink.write(self.member.ask.framing.wrap(data))
            self._beat_at = _now() + self._hub.limits.heartbeat_seconds

    async def _drained(self) -> None:
        """Raises TimeoutError if the client takes no byte for a whole write deadline; slowly is not never."""
        if self._sink.full:
            await self._emptied()
        self._judge()

    async def _emptied(self) -> None:
        limits = self._hub.limits
        stall = Stall(limits.write_timeout_seconds)
        look_seconds = min(limits.write_timeout_seconds, limits.slow_seconds / LOOKS)
        while not await self._room(look_seconds):
            if stall.over(self.member.unsent(), _now()):
                raise TimeoutError
            self._judge()

    async def _room(self, seconds: float) -> bool:
        """Whether there was room within so long."""
        try:
            async with asyncio.timeout(seconds):
                await self._sink.room()
        except TimeoutError:
            return False
        return True

    def _judge(self) -> None:
        """Who is hopeless is told to go: its cursor is good later, and on every other server."""
        behind, limits = self._hub.head.n - self.member.position.n, self._hub.limits
        assert self._pace is not None  # who drains a socket is in `_run`
        self._pace.judge_by(limits.behind_entries, limits.slow_seconds)
        if self._pace.hopeless(behind, _now()):
            self.member.close(reasons.TOO_SLOW)

    async def _end(self) -> None:
        """Say goodbye, if there is a word for it, behind what is unsent; who does not take it in time is dropped."""
        member = self.member
        assert member.closing is not None
        self._way_out = member.closing.code
        self._write_control(control.goodbye(member.position, self._now_ms(), member.closing))
        self._sink.finish()
        stall = Stall(self._hub.limits.write_timeout_seconds)
        while member.closing is reasons.TOO_SLOW and not self._hub.stopping:  # it takes as long as bytes move
            if stall.over(self.member.unsent(), _now()):
                break
            await asyncio.sleep(self._look_seconds)
        else:
            await asyncio.sleep(self._hub.limits.goodbye_seconds)
        self._abort(ABORTED)

    @property
    def _look_seconds(self) -> float:
        return min(LOOK_SECONDS, self._hub.limits.write_timeout_seconds / 8)


def _now() -> float:
    return asyncio.get_running_loop().time()
