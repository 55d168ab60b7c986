"""Heartbeats of live clients, and the check for clients that take no bytes although some wait for them."""

import asyncio
from collections.abc import Callable

from stream_server.hub import messages
from stream_server.hub.client import Client
from stream_server.hub.dead_peer_check import DeadPeerCheck
from stream_server.hub.framing import Framing
from stream_server.hub.group import ClientGroup
from stream_server.hub.live_clients import LiveClients

CHECK_INTERVAL_SECONDS = 0.5
"""Interval in seconds between two checks for due heartbeats. A heartbeat is late by at most this much."""


class Heartbeats:
    """Sends the heartbeats of all groups, and checks each live client beside its heartbeat.

    No task watches a live client. With each heartbeat, every client with unsent bytes is noted. If at the next tick
    not one of its bytes was acknowledged, the client is demoted, and its task gives it the write timeout to take a
    byte. So a client that stopped reading is dropped after at most one heartbeat interval, one tick and the write
    timeout, once the kernel's buffers are full. A machine that is gone leaves nothing unsent in this process for a
    long time; `DeadPeerCheck` finds it one tick after its heartbeat.
    """

    def __init__(
        self,
        live: LiveClients,
        *,
        now_ms: Callable[[], int],
        lag_ms: Callable[[], int],
        demote: Callable[[Client], None],
        after_check: Callable[[], None],
    ) -> None:
        self._live = live
        self._now_ms = now_ms
        self._lag_ms = lag_ms
        self._demote = demote
        self._after_check = after_check
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._unacked_at_last_check: dict[Client, float] = {}
        self._dead_peer_check = DeadPeerCheck(
            live, demote=demote, timeout_seconds=lambda: live.limits.write_timeout_seconds
        )
        self._groups_to_check: list[ClientGroup] = []

    @property
    def _interval_seconds(self) -> float:
        """Time between two ticks."""
        return min(CHECK_INTERVAL_SECONDS, self._live.limits.heartbeat_seconds / 8)

    def start(self) -> None:
        """Schedule the next tick."""
        self._timer = self._loop.call_later(self._interval_seconds, self._tick)

    def apply_limits(self) -> None:
        """Bring heartbeats forward that would now be later than the new interval allows."""
        latest = self._loop.time() + self._live.limits.heartbeat_seconds
        for group in self._live.groups():
            group.next_heartbeat_at = min(group.next_heartbeat_at, latest)

    def stop(self) -> None:
        """Stop sending heartbeats and checking clients."""
        if self._timer is not None:
            self._timer.cancel()
        self._dead_peer_check.stop()

    def _tick(self) -> None:
        """Run the checks and schedule the next tick, also if a check raises."""
        try:
            self._check_all()
        finally:  # an error costs one tick, not all further heartbeats
            self.start()

    def _check_all(self) -> None:
        """Check clients, then queue the due heartbeats. A heartbeat waits among the events, so its cursor is exact."""
        self._demote_stuck_clients()
        self._check_peers()
        now = self._loop.time()
        frame_cache: dict[Framing, bytes] = {}
        for group in self._live.groups():
            if group.next_heartbeat_at <= now:
                group.next_heartbeat_at = now + self._live.limits.heartbeat_seconds
                self._record_unacked_bytes(group)
                self._queue_heartbeat(group, frame_cache)
                self._groups_to_check.append(group)
        self._after_check()

    def _demote_stuck_clients(self) -> None:
        """Demote the clients that had unsent bytes at the last heartbeat and took no byte since."""
        suspects, self._unacked_at_last_check = self._unacked_at_last_check, {}
        for client, unacked_bytes in suspects.items():
            if client in self._live and client.unacked_bytes() >= unacked_bytes:
                client.must_show_progress = True
                self._demote(client)

    def _record_unacked_bytes(self, group: ClientGroup) -> None:
        """Note the clients with unsent bytes for the next tick. Their bytes may have been written a moment ago."""
        for client in group.memberships:
            if not client.is_poll and client.has_buffered_bytes():
                self._unacked_at_last_check[client] = client.unacked_bytes()

    def _check_peers(self) -> None:
        """Check the groups whose heartbeat was queued at the last tick: their peers had one tick to acknowledge it."""
        self._dead_peer_check.recheck_silent()
        groups, self._groups_to_check = self._groups_to_check, []
        for group in groups:
            self._dead_peer_check.check(group.memberships, self._interval_seconds / 2)

    def _queue_heartbeat(self, group: ClientGroup, frame_cache: dict[Framing, bytes]) -> None:
        """Queue a heartbeat in a group. ``frame_cache`` holds those that were encoded for other groups of this tick."""
        frame = frame_cache.get(group.framing)
        if frame is None:
            message = messages.heartbeat_message(self._live.head, self._now_ms(), self._lag_ms())
            frame = frame_cache[group.framing] = group.framing.encode_control(message)
        self._live.queue_control(group, frame)
