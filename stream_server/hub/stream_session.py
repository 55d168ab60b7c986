"""One stream from `hello` to `goodbye`: it catches up and is live. The package `hub` has a picture of its states."""

import asyncio
from collections.abc import Callable
from contextlib import suppress

from stream_server.errors import ApiError, Unavailable
from stream_server.events.position import Position
from stream_server.hub import disconnect as reasons
from stream_server.hub import messages
from stream_server.hub.catchup.reader import CatchUpPage
from stream_server.hub.client import Client, FilterChange, Sink, SubscribeRequest, drop_bytes
from stream_server.hub.delivery import Delivery
from stream_server.hub.heartbeats import CHECKS_PER_WINDOW, PeerSilence, SlowClientDetector, StallTimer
from stream_server.hub.hub import Hub
from stream_server.hub.messages import ControlMessage
from stream_server.hub.window import Window

LEFT, ABORTED, FAILED = "left", "aborted", "failed"
"""Outcomes of a stream without a ``goodbye``: the client closed it, the server dropped it, or the server failed."""


class StreamSession(Client):
    """One stream from start to end. It runs a task while it catches up or ends, not while it is live."""

    __slots__ = (
        "_filter_change", "_hub", "_next_heartbeat_at", "_next_peer_check_at", "_on_end", "_outcome", "_peer_silence",
        "_slow_detector", "_task", "_timeout", "sink",
    )  # fmt: skip

    sink: Sink

    def __init__(
        self, hub: Hub, request: SubscribeRequest, sink: Sink, on_end: Callable[[], None] | None = None
    ) -> None:
        """``on_end`` is called when the connection has ended, to give back what the stream holds."""
        super().__init__(request, sink.write)
        self._hub = hub
        self._on_end = on_end
        self.sink = sink
        self._next_heartbeat_at = self._next_peer_check_at = 0.0
        self._peer_silence: PeerSilence | None = None
        self._outcome: str | None = LEFT
        self._slow_detector: SlowClientDetector | None = None
        self._task: asyncio.Task[None] | None = None
        self._timeout: asyncio.Timeout | None = None
        self._filter_change: FilterChange | None = None

    def start(self) -> None:
        """Register the stream with the hub. Call it after `hello` was sent. A stream at the head is live at once."""
        hub = self._hub
        hub.register(self)
        if self._task is not None:
            return  # the hub disconnected it
        unsent = None if self.position == hub.head else self._send_first_page()
        if unsent is None and self.until is None and self.position == hub.head:
            hub.live.join(self)
        else:
            self._start_task(unsent)

    def _send_first_page(self) -> CatchUpPage | None:
        """Send the first page of what the client missed, without a task. Return the page if it needs several writes.

        In a storm most clients have missed few entries. Starting and ending a task costs twice as much as such a page.
        """
        end = self._catch_up_end()
        is_waiting = self.position == end or self.sink.is_full
        page = None if is_waiting else self._hub.catchup_reader.read_page_at_once(self, end)
        if page is None or self.window is not None:
            return page
        frames = [delivery.frame(self.framing.encode_entry) for delivery in page.deliveries]
        if sum(map(len, frames)) > self._hub.limits.catchup_write_bytes:
            return page
        self._write_events(frames)
        self._end_page(page)
        return None

    def change_filters(self, change: FilterChange) -> bool:
        """Let the stream go on with other filters, from its present position on. Return False if it is too early.

        It is too early while an earlier change waits. The stream leaves the head until the filters have changed, so
        its position stands still meanwhile.
        """
        if self._filter_change is not None or self.disconnect_reason is not None:
            return False
        self._filter_change = change
        self._hub.live.demote(self)
        return True

    async def _apply_filter_change(self, change: FilterChange) -> None:
        """Change the filters from the stream's position on. Call it while no page of entries is being read."""
        try:
            bound = await change.bind(self.position)
        except ApiError as error:
            change.refuse(error)
            return
        finally:
            self._filter_change = None
        if self.disconnect_reason is not None:
            return
        if bound.viewer is not None and not self._hub.viewer_cache.is_current(bound.viewer):
            self.disconnect(reasons.RESYNC)  # the log lost entries after the relations were read
            return
        self._end_window(self.position)
        self.use_filters(bound, change.parameters)
        self._hub.registry.on_stream(self, True)  # the list of open streams has the scopes of the filters
        for notice in change.notices(self.position):
            self._write_control(messages.notice_message(notice, self._hub.now_ms()))

    def stop(self) -> None:
        """Write nothing more: the client has ended the stream, and its connection is about to close."""
        if self._task is not None:
            self._task.cancel()
        self._hub.unregister(self)

    def connection_lost(self) -> None:
        """Leave the hub in turn, after the client or the server closed the connection.

        Thousands may leave at once, and the index of the filters needs some time for each. The task ends now: it would
        write to a transport that is closed. A stream that was stopped has left the hub in a turn already.
        """
        self.write = drop_bytes  # the client may be a member of its group until its turn has come
        if self.disconnect_reason is reasons.GONE:
            self._end()
            return
        if self._task is not None:
            self._task.cancel()
        self._hub.departures.run_in_turn(self._leave)

    def _leave(self) -> None:
        self.stop()
        self._end()

    def _end(self) -> None:
        """Count the outcome of the stream, and give back what it holds."""
        if self._outcome is not None:
            self._hub.counters.ended_streams[self._outcome] += 1
            self._outcome = None
        on_end, self._on_end = self._on_end, None
        if on_end is not None:
            on_end()

    def wake(self) -> None:
        """Start the task of the stream, or interrupt its wait because the hub has disconnected it."""
        if self._task is None:
            self._start_task(None)
        elif self.disconnect_reason is not None:
            self._stop_waiting()

    def _stop_waiting(self) -> None:
        if self._timeout is not None:
            self._timeout.reschedule(_loop_time())
            self._timeout = None

    def _start_task(self, page: CatchUpPage | None) -> None:
        self._task = self._hub.background_tasks.start(self._run(page), "stream")

    async def _run(self, page: CatchUpPage | None) -> None:
        """Run the stream's task: send ``page`` (the next page, if it was read already), catch up, or say goodbye."""
        limits = self._hub.limits
        self._next_heartbeat_at = _loop_time() + limits.heartbeat_seconds
        self._slow_detector = SlowClientDetector(limits.far_behind_entries, limits.slow_window_seconds)
        try:
            await self._go_live(page)
            if self.disconnect_reason is not None:
                self._hub.live.leave(self)
                await self._say_goodbye()
        except TimeoutError:
            self.disconnect(reasons.TOO_SLOW)
            self._abort(ABORTED)
        except ConnectionError:
            self._abort(LEFT)
        except Exception:
            self.fail()
            raise
        finally:
            self._task = self._slow_detector = None

    def fail(self) -> None:
        """Drop the connection, because the server failed: a dropped stream is better than one that stays silent."""
        self._outcome = FAILED
        self.sink.fail()

    def _abort(self, outcome: str) -> None:
        self._outcome = outcome
        self.sink.abort()

    async def _go_live(self, page: CatchUpPage | None) -> None:
        """Catch up until the client is live or the hub disconnects it. A disconnection interrupts every wait.

        The client's position always matches the bytes handed to the socket, also after an interruption. Raises
        `TimeoutError` if the client takes no byte for a whole write timeout.
        """
        try:
            async with asyncio.timeout(None) as self._timeout:
                if self.disconnect_reason is not None:
                    self._stop_waiting()
                await self._require_progress()
                await self._drain_socket()
                overflowed, self.overflowed = self.overflowed, False
                if overflowed and self.disconnect_reason is None:
                    warning = self.slow_warning(self.position, 1, _loop_time())
                    if warning is not None:
                        await self._send_control(messages.notice_message(warning, self._hub.now_ms()))
                if page is not None:
                    await self._send_page(page)
                while self.disconnect_reason is None:
                    await self._catch_up()
                    if self.until is not None:
                        self.disconnect(reasons.BACKFILL_DONE)
                    if self.disconnect_reason is None:
                        self._hub.live.join(self)
                        return
        except TimeoutError:
            if self.disconnect_reason is None:
                raise
        finally:
            self._timeout = None

    async def _require_progress(self) -> None:
        """Wait until a client that was demoted as stuck takes a byte. Raises `TimeoutError` if it takes none."""
        if self.is_peer_dead:
            raise TimeoutError
        if not self.must_show_progress:
            return
        self.must_show_progress = False
        before = self.unacked_bytes()
        stall = StallTimer(self._hub.limits.write_timeout_seconds)
        while not stall.is_over(unsent := self.unacked_bytes(), _loop_time()):
            if unsent < before or not unsent:
                return
            await asyncio.sleep(self._progress_check_seconds)
        raise TimeoutError

    async def _catch_up(self) -> None:
        """Send pages of the log until the client's position is the head (or its ``until``).

        No ``await`` follows the last comparison, so the head cannot move before the client becomes live. The head moves
        between a page and the moment when the client gets it. So a client that has waited for a page may read one more
        at once. Else no client of a crowd would ever find the head where its page ended.
        """
        is_in_turn = False
        while self.disconnect_reason is None:
            if self._filter_change is not None:
                await self._apply_filter_change(self._filter_change)
                continue
            if self.position == self._catch_up_end():
                return
            try:
                page = await self._hub.catchup_reader.read_page(self, self._catch_up_end, is_in_turn=is_in_turn)
                is_in_turn = not is_in_turn
            except Unavailable:
                await self._hub.wait_for_log(self._next_heartbeat_at - _loop_time())
            else:
                await self._send_page(page)
            await self._keep_alive()

    def _catch_up_end(self) -> Position:
        head = self._hub.head
        return head if self.until is None else min(self.until, head)

    async def _send_page(self, page: CatchUpPage) -> None:
        if self.disconnect_reason is not None:
            return  # the page was matched with a viewer or rules that may be outdated
        if page.gap is not None:
            self._end_window(self.position)
            self._write_control(messages.gap_message(page.gap, self._hub.now_ms()))
            self._end_window(page.gap.end)
            if not self.accept_gap(page.gap):
                return
        if self.window is None:
            await self._send_deliveries(page.deliveries)
        else:
            await self._count_deliveries(self.window, page.deliveries)
        self._end_page(page)
        await self._drain_socket()

    def _end_page(self, page: CatchUpPage) -> None:
        """Advance the client's position to the end of a page whose deliveries were sent."""
        self.position = page.end_position
        if self.window is not None and (page.notice is not None or not self.window.count):
            self._end_window(page.end_position)
        if page.notice is not None:
            self._write_control(messages.notice_message(page.notice, self._hub.now_ms()))

    async def _send_deliveries(self, deliveries: list[Delivery]) -> None:
        encode, max_bytes = self.framing.encode_entry, self._hub.limits.catchup_write_bytes
        frames: list[bytes] = []
        size, reached = 0, self.position
        for delivery in deliveries:
            frame = delivery.frame(encode)
            if frames and size + len(frame) > max_bytes:
                self._write_events(frames)
                self.position = reached
                await self._drain_socket()
                frames, size = [], 0
            frames.append(frame)
            size, reached = size + len(frame), delivery.entry.position
        self._write_events(frames)

    async def _count_deliveries(self, window: Window, deliveries: list[Delivery]) -> None:
        """Count deliveries, and send what is counted when a period has ended. A period without any has no message."""
        for delivery in deliveries:
            position = delivery.entry.position
            if position.ms >= window.end_ms:
                self._end_window(window.last)
                await self._drain_socket()
            window.count_event(position, delivery.matched_json)

    def _end_window(self, to: Position) -> None:
        """Send what the window of a summary has counted up to ``to``, if it is anything. Count on behind ``to``."""
        if self.window is not None and self.window.count:
            message = messages.notice_message(self.window.close(to), self._hub.now_ms())
            self._write_events([self.framing.encode_control(message)])
        elif self.window is not None:
            self.window.move(to)

    def _write_events(self, frames: list[bytes]) -> None:
        count = sum(map(bool, frames))  # an empty frame: the protocol cannot express the event
        self._hub.live.flusher.times.delivered += count
        self.written_before_joining += count
        self._write(b"".join(frames))

    async def _keep_alive(self) -> None:
        """Send a due heartbeat with the client's cursor.

        Raises `TimeoutError` if the peer acknowledged nothing for a whole write timeout.
        """
        hub, now = self._hub, _loop_time()
        if now >= self._next_peer_check_at:
            deadline = hub.limits.write_timeout_seconds
            self._next_peer_check_at = now + min(1.0, deadline / 8)
            self._peer_silence = self._peer_silence or PeerSilence()
            if self._peer_silence.measure_seconds(self.sink.peer_silent_seconds(), now) >= deadline:
                raise TimeoutError  # if nothing matches, no buffer fills, so no other check finds a dead peer
        if now >= self._next_heartbeat_at:
            lag_ms = max(hub.lag_ms(), hub.now_ms() - self.position.ms)
            await self._send_control(messages.heartbeat_message(self.resume_position, hub.now_ms(), lag_ms))

    async def _send_control(self, message: ControlMessage) -> None:
        self._write_control(message)
        await self._drain_socket()

    def _write_control(self, message: ControlMessage) -> None:
        self._write(self.framing.encode_control(message))

    def _write(self, data: bytes) -> None:
        if data:
            self.sink.write(self.framing.wrap(data))
            self._next_heartbeat_at = _loop_time() + self._hub.limits.heartbeat_seconds

    async def _drain_socket(self) -> None:
        """Wait for room, and check the client's pace. Raises `TimeoutError` if it takes no byte for a write timeout."""
        if self.sink.is_full:
            await self._wait_for_room()
        self._check_pace()

    async def _wait_for_room(self) -> None:
        limits = self._hub.limits
        stall = StallTimer(limits.write_timeout_seconds)
        check_seconds = min(limits.write_timeout_seconds, limits.slow_window_seconds / CHECKS_PER_WINDOW)
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(check_seconds):
                    return await self.sink.wait_writable()
            if stall.is_over(self.unacked_bytes(), _loop_time()):
                raise TimeoutError
            self._check_pace()

    def _check_pace(self) -> None:
        behind = self._hub.head.n - self.position.n
        assert self._slow_detector is not None  # set by `_run`, inside which every socket is drained
        if self._slow_detector.is_too_slow(behind, _loop_time()):
            self.disconnect(reasons.TOO_SLOW)

    async def _say_goodbye(self) -> None:
        """Send `goodbye` behind the unsent bytes. Drop the connection if the client does not take them in time."""
        assert self.disconnect_reason is not None
        self._outcome = self.disconnect_reason.code
        self._write_control(messages.goodbye_message(self.resume_position, self._hub.now_ms(), self.disconnect_reason))
        self.sink.finish(self.disconnect_reason)
        stall = StallTimer(self._hub.limits.write_timeout_seconds)
        # A slow client gets its goodbye as long as its bytes move.
        while self.disconnect_reason is reasons.TOO_SLOW and not self._hub.is_stopping:
            if stall.is_over(self.unacked_bytes(), _loop_time()):
                break
            await asyncio.sleep(self._progress_check_seconds)
        else:
            await asyncio.sleep(self._hub.limits.goodbye_seconds)
        self._abort(ABORTED)

    @property
    def _progress_check_seconds(self) -> float:
        """Interval in seconds at which the session checks its client's progress, while no task waits for its socket."""
        return min(0.1, self._hub.limits.write_timeout_seconds / 8)


def _loop_time() -> float:
    return asyncio.get_running_loop().time()
