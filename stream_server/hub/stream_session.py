"""One stream: hello, catching up, live, catching up again …, goodbye."""

import asyncio
from collections.abc import Callable
from typing import Protocol

from stream_server.errors import Unavailable
from stream_server.events.position import Position
from stream_server.hub import disconnect as reasons
from stream_server.hub import messages
from stream_server.hub.catchup.reader import CatchUpPage
from stream_server.hub.client import Client, SubscribeRequest
from stream_server.hub.delivery import Delivery
from stream_server.hub.hub import Hub
from stream_server.hub.messages import ControlMessage
from stream_server.hub.slow_client import CHECKS_PER_WINDOW, PeerSilence, SlowClientDetector, StallTimer

PROGRESS_CHECK_SECONDS = 0.1
"""How often it is looked whether a client takes bytes, where nobody waits for its socket."""

PEER_CHECK_SECONDS = 1.0
"""How often it is asked whether the machine of a client that reads on is there; an eighth of its deadline, if less."""

LEFT, ABORTED, FAILED = "left", "aborted", "failed"
"""How a stream ends without a ``goodbye``."""


class Sink(Protocol):
    """A client's socket, as far as the hub may know it. Bytes are wrapped already."""

    def write(self, data: bytes) -> None:
        """Hand over bytes; never waits."""

    def buffered_bytes(self) -> float:
        """Bytes handed over and not yet taken by the kernel."""

    def kernel_unacked_bytes(self) -> float:
        """Bytes that the kernel has and the client's machine has not acknowledged; 0 where that is not known."""

    def peer_silent_seconds(self) -> float:
        """Seconds since the client's machine acknowledged anything; 0 if nothing is to be, or where it is not known."""

    @property
    def is_full(self) -> bool:
        """Whether more is waited for room before it is handed over."""

    async def wait_writable(self) -> None:
        """Wait until it is full no more; raises ConnectionError if the client left."""

    def finish(self) -> None:
        """End the response after what was handed over."""

    def abort(self) -> None:
        """Drop the connection with whatever it still has to send."""


class StreamSession:
    """The life of one stream. While it is live there is no task for it, only its membership in a group."""

    __slots__ = (
        "_hub", "_next_heartbeat_at", "_next_peer_check_at", "_now_ms", "_outcome", "_peer_silence", "_sink", "_slow_detector", "_task", "_timeout",
        "client",
    )  # fmt: skip

    def __init__(self, hub: Hub, request: SubscribeRequest, sink: Sink, *, now_ms: Callable[[], int]) -> None:
        self._hub = hub
        self._sink = sink
        self._now_ms = now_ms
        self._next_heartbeat_at = 0.0
        self._next_peer_check_at = 0.0
        self._peer_silence = PeerSilence()
        self._outcome: str | None = LEFT
        self._slow_detector: SlowClientDetector | None = None
        self._task: asyncio.Task[None] | None = None
        self._timeout: asyncio.Timeout | None = None
        self.client = Client(
            request,
            sink.write,
            sink.buffered_bytes,
            self._on_wake,
            kernel_unacked_bytes=sink.kernel_unacked_bytes,
            peer_silent_seconds=sink.peer_silent_seconds,
        )

    def start(self) -> None:
        """Hello was sent: go on from there. A client that is at the head is live at once, without a task."""
        self._hub.register(self.client)
        member = self.client
        if self._task is None:
            if member.request.until is None and member.position == self._hub.head:
                self._hub.live.join(member)
            else:
                self._on_wake()

    def connection_lost(self) -> None:
        """The client left, or was let go: nothing of it stays behind."""
        if self._task is not None:
            self._task.cancel()
        self._hub.unregister(self.client)
        if self._outcome is not None:
            self._hub.counters.ended_streams[self._outcome] += 1
            self._outcome = None

    def _on_wake(self) -> None:
        """Frames were refused, or it is over: what follows waits for the socket, so it is a task."""
        if self._task is None:
            self._task = self._hub.background_tasks.start(self._run(), "stream")
        elif self.client.disconnect_reason is not None:
            self._stop_waiting()

    def _stop_waiting(self) -> None:
        """It is over: neither the log nor the socket is waited for any more, since either may be away."""
        if self._timeout is not None:
            self._timeout.reschedule(_loop_time())
            self._timeout = None

    async def _run(self) -> None:
        """Until the client is live (again), or its stream has ended."""
        member = self.client
        limits = self._hub.limits
        self._next_heartbeat_at = _loop_time() + limits.heartbeat_seconds
        self._slow_detector = SlowClientDetector(limits.far_behind_entries, limits.slow_window_seconds)
        try:
            await self._go_live()
            if member.disconnect_reason is not None:
                self._hub.live.leave(member)
                await self._say_goodbye()
        except TimeoutError:
            member.disconnect(reasons.TOO_SLOW)
            self._abort(ABORTED)
        except ConnectionError:
            self._abort(LEFT)
        except Exception:
            self._abort(FAILED)  # better no stream than one that is open and silent
            raise
        finally:
            self._task = self._slow_detector = None

    def _abort(self, outcome: str) -> None:
        self._outcome = outcome
        self._sink.abort()

    async def _go_live(self) -> None:
        """Catch up until the client is live, or until its stream is to end, which interrupts whatever this waits for.

        Interrupted, it stands behind what was handed to the socket: a position is moved as that is done, not after
        the wait for room. Raises TimeoutError if the client takes no byte for a whole write deadline.
        """
        member = self.client
        try:
            async with asyncio.timeout(None) as self._timeout:
                if member.disconnect_reason is not None:
                    self._stop_waiting()
                await self._require_progress()
                await self._drain_socket()
                await self._send_slow_warning()
                while member.disconnect_reason is None:
                    await self._catch_up()
                    if member.request.until is not None:
                        member.disconnect(reasons.BACKFILL_DONE)
                    if member.disconnect_reason is None:
                        self._hub.live.join(member)
                        return
        except TimeoutError:
            if member.disconnect_reason is None:
                raise
        finally:
            self._timeout = None

    async def _send_slow_warning(self) -> None:
        """All that may be kept unsent for a live client is full; who is on the way out need not hear it."""
        member = self.client
        refused, member.overflowed = member.overflowed, False
        told = (
            member.slow_warning(member.position, 1, _loop_time())
            if refused and member.disconnect_reason is None
            else None
        )
        if told is not None:
            await self._send_control(messages.notice_message(told, self._now_ms()))

    async def _require_progress(self) -> None:
        """Who seemed stuck while live takes a byte before anything else; raises TimeoutError if it does not.

        At once where its machine is gone: it had its deadline while it was live.
        """
        if self.client.is_peer_dead:
            raise TimeoutError
        if not self.client.must_show_progress:
            return
        self.client.must_show_progress = False
        before = self.client.unacked_bytes()
        stall = StallTimer(self._hub.limits.write_timeout_seconds)
        while not stall.is_over(unsent := self.client.unacked_bytes(), _loop_time()):
            if unsent < before or not unsent:
                return
            await asyncio.sleep(self._progress_check_seconds)
        raise TimeoutError

    async def _catch_up(self) -> None:
        """Read on until the head is reached; returns without an await after it saw that."""
        member = self.client
        while member.disconnect_reason is None and member.position != self._catch_up_end():
            try:
                page = await self._hub.catchup_reader.read_page(member, self._catch_up_end)
            except Unavailable:
                await self._hub.wait_for_log(self._next_heartbeat_at - _loop_time())
            else:
                await self._send_page(page)
            await self._keep_alive()

    def _catch_up_end(self) -> Position:
        """Where the stream goes live, or ends; what it was to end at may be on the log no more."""
        head, until = self._hub.head, self.client.request.until
        return head if until is None else min(until, head)

    async def _send_page(self, page: CatchUpPage) -> None:
        if self.client.disconnect_reason is not None:
            return  # what was matched while the log was read goes by sets that may be wrong by now
        if page.gap is not None:
            self._write_control(messages.gap_message(page.gap, self._now_ms()))
            self.client.position = page.gap.end
            if self.client.is_outdated_by_gap(page.gap.end):
                self.client.disconnect(reasons.RESYNC)
                return
        await self._send_deliveries(page.deliveries)
        self.client.position = page.end_position
        if page.notice is not None:
            self._write_control(messages.notice_message(page.notice, self._now_ms()))
        await self._drain_socket()

    async def _send_deliveries(self, deliveries: list[Delivery]) -> None:
        """Part by part, so that little is unsent at once; the last one's room is not waited for here."""
        encode, most = self.client.request.framing.encode_entry, self._hub.limits.catchup_write_bytes
        frames: list[bytes] = []
        size, reached = 0, self.client.position
        for picked in deliveries:
            frame = picked.frame(encode)
            if frames and size + len(frame) > most:
                self._write_events(frames)
                self.client.position = reached
                await self._drain_socket()
                frames, size = [], 0
            frames.append(frame)
            size, reached = size + len(frame), picked.entry.position
        self._write_events(frames)

    def _write_events(self, frames: list[bytes]) -> None:
        self._hub.flusher.delivered += sum(map(bool, frames))  # none, where the stream's protocol has no word for it
        self._write(b"".join(frames))

    async def _keep_alive(self) -> None:
        """Also who catches up for long hears a heartbeat, with its own position, and is listened to."""
        self._check_peer()
        if _loop_time() >= self._next_heartbeat_at:
            lag_ms = max(self._hub.lag_ms(), self._now_ms() - self.client.position.ms)
            await self._send_control(messages.heartbeat_message(self.client.position, self._now_ms(), lag_ms))

    def _check_peer(self) -> None:
        """Raises TimeoutError if the client's machine is gone: where nothing matches no buffer is filled by that."""
        now, deadline = _loop_time(), self._hub.limits.write_timeout_seconds
        if now >= self._next_peer_check_at:
            self._next_peer_check_at = now + min(PEER_CHECK_SECONDS, deadline / 8)
            if self._peer_silence.measure_seconds(self.client.peer_silent_seconds(), now) >= deadline:
                raise TimeoutError

    async def _send_control(self, message: ControlMessage) -> None:
        self._write_control(message)
        await self._drain_socket()

    def _write_control(self, message: ControlMessage) -> None:
        self._write(self.client.request.framing.encode_control(message))

    def _write(self, data: bytes) -> None:
        """Hand over one message or several; no bytes where the stream's protocol has no word for it."""
        if data:
            self._sink.write(self.client.request.framing.wrap(data))
            self._next_heartbeat_at = _loop_time() + self._hub.limits.heartbeat_seconds

    async def _drain_socket(self) -> None:
        """Raises TimeoutError if the client takes no byte for a whole write deadline; slowly is not never."""
        if self._sink.is_full:
            await self._wait_for_room()
        self._check_pace()

    async def _wait_for_room(self) -> None:
        limits = self._hub.limits
        stall = StallTimer(limits.write_timeout_seconds)
        look_seconds = min(limits.write_timeout_seconds, limits.slow_window_seconds / CHECKS_PER_WINDOW)
        while not await self._is_writable_within(look_seconds):
            if stall.is_over(self.client.unacked_bytes(), _loop_time()):
                raise TimeoutError
            self._check_pace()

    async def _is_writable_within(self, seconds: float) -> bool:
        """Whether there was room within so long."""
        try:
            async with asyncio.timeout(seconds):
                await self._sink.wait_writable()
        except TimeoutError:
            return False
        return True

    def _check_pace(self) -> None:
        """Who is hopeless is told to go: its cursor is good later, and on every other server."""
        behind, limits = self._hub.head.n - self.client.position.n, self._hub.limits
        assert self._slow_detector is not None  # who drains a socket is in `_run`
        self._slow_detector.set_limits(limits.far_behind_entries, limits.slow_window_seconds)
        if self._slow_detector.is_too_slow(behind, _loop_time()):
            self.client.disconnect(reasons.TOO_SLOW)

    async def _say_goodbye(self) -> None:
        """Say goodbye, if there is a word for it, behind what is unsent; who does not take it in time is dropped."""
        member = self.client
        assert member.disconnect_reason is not None
        self._outcome = member.disconnect_reason.code
        self._write_control(messages.goodbye_message(member.position, self._now_ms(), member.disconnect_reason))
        self._sink.finish()
        stall = StallTimer(self._hub.limits.write_timeout_seconds)
        while (
            member.disconnect_reason is reasons.TOO_SLOW and not self._hub.is_stopping
        ):  # it takes as long as bytes move
            if stall.is_over(self.client.unacked_bytes(), _loop_time()):
                break
            await asyncio.sleep(self._progress_check_seconds)
        else:
            await asyncio.sleep(self._hub.limits.goodbye_seconds)
        self._abort(ABORTED)

    @property
    def _progress_check_seconds(self) -> float:
        return min(PROGRESS_CHECK_SECONDS, self._hub.limits.write_timeout_seconds / 8)


def _loop_time() -> float:
    return asyncio.get_running_loop().time()
