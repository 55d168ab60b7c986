"""Heartbeats of live clients, and two checks beside them that find clients which take or acknowledge no bytes.

The timers for slow clients tell whether a client takes bytes at all, and whether it falls further behind. Callers pass
the time.
"""

import asyncio
import math
from collections import deque
from collections.abc import Callable, Iterable

from stream_server.hub import messages
from stream_server.hub.client import Client
from stream_server.hub.group import ClientGroup
from stream_server.hub.live_clients import LiveClients
from stream_server.hub.messages import Framing

CHECKS_PER_WINDOW = 8
"""Checks in one window. A burst of the log then spoils one check and not the whole window."""


class StallTimer:
    """Tells whether a client has taken no byte for ``deadline_seconds``. A slow but moving client is not stalled."""

    __slots__ = ("_deadline_seconds", "_last_progress_at", "_lowest_unsent_bytes")

    def __init__(self, deadline_seconds: float) -> None:
        self._deadline_seconds = deadline_seconds
        self._lowest_unsent_bytes = math.inf
        self._last_progress_at = 0.0

    def is_over(self, unsent_bytes: float, now: float) -> bool:
        """Return whether the client has taken no byte for the whole deadline. ``now`` is the present time in seconds.

        Call it often, and write nothing to the client between two calls: progress shows only as fewer unsent bytes.
        """
        if unsent_bytes < self._lowest_unsent_bytes:
            self._lowest_unsent_bytes, self._last_progress_at = unsent_bytes, now
            return False
        return now - self._last_progress_at >= self._deadline_seconds


class PeerSilence:
    """Measures for how long a peer has acknowledged nothing although there were bytes to acknowledge."""

    __slots__ = ("_silent_since",)

    def __init__(self) -> None:
        self._silent_since = -math.inf

    def measure_seconds(self, reported_seconds: float, now: float) -> float:
        """Return for how many seconds the peer is silent, counted from the first call that found unacknowledged bytes.

        ``reported_seconds`` is the age of the last acknowledgement, as the kernel reports it; 0 if all bytes are
        acknowledged. It may exceed the silence: directly after a write that follows an idle hour, it is an hour.
        """
        if not reported_seconds:
            self._silent_since = -math.inf  # bytes that the next call finds unacknowledged were written later
        elif reported_seconds < now - self._silent_since:
            self._silent_since = now  # the peer acknowledged something since, or this is the first call
        return max(0.0, now - self._silent_since) if reported_seconds else 0.0


class SlowClientDetector:
    """Tells whether a client that catches up is too slow: far behind the head, and farther at each check of a window.

    A window has `CHECKS_PER_WINDOW` checks. A check at which the distance has not grown begins a new window. A client
    near the head is never too slow. The distance counts scanned entries and not matched ones, so a filter that rarely
    matches is not mistaken for slowness. Time in which no check was possible (Redis or the machine was away) does not
    count.
    """

    __slots__ = ("_far_entries", "_last_check_at", "_last_distance", "_last_gain_at", "_window_seconds")

    def __init__(self, far_entries: int, window_seconds: float) -> None:
        """A client is far behind if it is more than ``far_entries`` entries before the head.

        It may fall farther back for ``window_seconds``.
        """
        self._far_entries = far_entries
        self._window_seconds = window_seconds
        self._last_distance: int | None = None
        self._last_gain_at = 0.0
        self._last_check_at = 0.0

    def is_too_slow(self, behind_entries: int, now: float) -> bool:
        """Record the client's distance to the head, in entries, at ``now`` (seconds). Return whether it is too slow."""
        if behind_entries <= self._far_entries:
            self._last_distance = None
            return False
        if self._last_distance is None:
            self._last_distance, self._last_gain_at, self._last_check_at = behind_entries, now, now
        elif now - self._last_check_at >= self._window_seconds / CHECKS_PER_WINDOW:
            if behind_entries <= self._last_distance or now - self._last_check_at >= self._window_seconds:
                self._last_gain_at = now  # no growth, or no check in a window, which proves nothing: restart the window
            self._last_distance, self._last_check_at = behind_entries, now
        return now - self._last_gain_at >= self._window_seconds


CHECK_INTERVAL_SECONDS = 0.5
"""Interval in seconds between two checks for due heartbeats. A heartbeat is late by at most this much."""


class DeadPeerCheck:
    """Drops live clients whose machine is gone: it has acknowledged nothing for a whole write timeout.

    The check asks the kernel (`Sink.peer_silent_seconds`). The kernel of a living machine acknowledges data and
    answers the probes of a closed window, however slowly the client reads. A silent client is checked again at every
    tick of the heartbeats. After the write timeout the client is marked with `is_peer_dead` and demoted, and its task
    drops it.
    """

    def __init__(self, live: LiveClients) -> None:
        self._live = live
        self._loop = asyncio.get_running_loop()
        self._queue: deque[Client] = deque()
        self._next_run: asyncio.Handle | None = None
        self._silent_clients: dict[Client, PeerSilence] = {}
        self._min_silence_seconds = 0.0

    def check(self, clients: Iterable[Client], min_silence_seconds: float) -> None:
        """Find clients that acknowledged nothing for ``min_silence_seconds``, and remember them for `recheck_silent`.

        Call it a moment after a write to the clients, when they have bytes to acknowledge. The check runs in slices.
        """
        self._min_silence_seconds = min_silence_seconds
        self._queue.extend(client for client in clients if not client.is_poll)
        if self._next_run is None:
            self._run()

    def recheck_silent(self) -> None:
        """Check the clients from `check` once more. Demote those that were silent for the whole write timeout."""
        now, timeout = self._loop.time(), self._live.limits.write_timeout_seconds
        for client, silence in list(self._silent_clients.items()):
            reported_seconds = client.sink.peer_silent_seconds() if client.is_live and client.sink is not None else 0.0
            silent_seconds = silence.measure_seconds(reported_seconds, now)
            if not silent_seconds:
                del self._silent_clients[client]
            elif silent_seconds >= timeout:
                del self._silent_clients[client]
                client.is_peer_dead = True
                self._live.demote(client)

    def stop(self) -> None:
        """Cancel the checks that are still queued."""
        if self._next_run is not None:
            self._next_run.cancel()
        self._queue.clear()

    def _run(self) -> None:
        now = self._loop.time()
        for _ in range(min(512, len(self._queue))):  # about 1 ms, so that other tasks get their turn
            client = self._queue.popleft()
            if not client.is_live or client.sink is None or client in self._silent_clients:
                continue
            silent_seconds = client.sink.peer_silent_seconds()
            if silent_seconds and silent_seconds >= self._min_silence_seconds:
                self._silent_clients[client] = silence = PeerSilence()
                silence.measure_seconds(silent_seconds, now)
        self._next_run = self._loop.call_soon(self._run) if self._queue else None


class Heartbeats:
    """Sends the heartbeats of all groups, and finds live clients that take no bytes or whose machine is gone.

    A live client has no task of its own, so a tick checks all groups, at least twice a second. A client that has unsent
    bytes at its heartbeat and takes no byte until the next tick is demoted. The demotion starts a task, which drops the
    client if it takes no byte within the write timeout. A client whose machine is gone may have no unsent bytes:
    `DeadPeerCheck` looks for it one tick after its heartbeat. ``after_check`` is called at the end of each tick.
    """

    def __init__(
        self, live: LiveClients, now_ms: Callable[[], int], lag_ms: Callable[[], int], after_check: Callable[[], None]
    ) -> None:
        self._live = live
        self._now_ms = now_ms
        self._lag_ms = lag_ms
        self._after_check = after_check
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._unacked_at_last_check: dict[Client, float] = {}
        self._dead_peer_check = DeadPeerCheck(live)
        self._groups_to_check: list[ClientGroup] = []

    @property
    def _interval_seconds(self) -> float:
        return min(CHECK_INTERVAL_SECONDS, self._live.limits.heartbeat_seconds / 8)

    def start(self) -> None:
        """Schedule the next tick, which checks clients and sends due heartbeats."""
        self._timer = self._loop.call_later(self._interval_seconds, self._tick)

    def stop(self) -> None:
        """Stop sending heartbeats and checking clients."""
        if self._timer is not None:
            self._timer.cancel()
        self._dead_peer_check.stop()

    def _tick(self) -> None:
        try:
            self._find_stuck_and_silent()
            if self._live.summaries.groups:
                self._live.summaries.close_due(self._now_ms() - self._lag_ms())
            self._queue_heartbeats()
            self._after_check()
        finally:  # an error costs one tick, not all further heartbeats
            self.start()

    def _find_stuck_and_silent(self) -> None:
        """Demote clients that had unsent bytes at their heartbeat in the previous tick and took no byte since then.

        Look for machines that have not acknowledged the heartbeat of the previous tick. A living one has, by now.
        """
        suspects, self._unacked_at_last_check = self._unacked_at_last_check, {}
        for client, unacked_bytes in suspects.items():
            if client.is_live and client.unacked_bytes() >= unacked_bytes:
                client.must_show_progress = True
                self._live.demote(client)
        self._dead_peer_check.recheck_silent()
        groups, self._groups_to_check = self._groups_to_check, []
        for group in groups:
            self._dead_peer_check.check(group.members, self._interval_seconds / 2)

    def _queue_heartbeats(self) -> None:
        """Queue the due heartbeats, each behind the waiting events of its group. Remember who has unsent bytes."""
        now, live = self._loop.time(), self._live
        frames: dict[Framing, bytes] = {}
        for group in live.groups():
            if group.next_heartbeat_at > now:
                continue
            group.next_heartbeat_at = now + live.limits.heartbeat_seconds
            for client in group.members:
                if not client.is_poll and client.has_buffered_bytes():
                    self._unacked_at_last_check[client] = client.unacked_bytes()
            frame = None if group.window is not None else frames.get(group.framing)
            if frame is None:
                cursor = live.head if group.window is None else group.window.start
                message = messages.heartbeat_message(cursor, self._now_ms(), self._lag_ms())
                frame = group.framing.encode_control(message)
                if group.window is None:
                    frames[group.framing] = frame
            live.queue_frame(group, frame, is_control=True)
            self._groups_to_check.append(group)
