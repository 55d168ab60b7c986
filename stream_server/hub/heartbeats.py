"""Signs of life, to clients and from them: heartbeats, and who takes no bytes although it has some to take."""

import asyncio
from typing import TYPE_CHECKING

from stream_server.hub import messages
from stream_server.hub.dead_peer_check import DeadPeerCheck
from stream_server.hub.group import ClientGroup, Framing

if TYPE_CHECKING:
    from stream_server.hub.client import Client
    from stream_server.hub.hub import Hub

CHECK_INTERVAL_SECONDS = 0.5
"""How often it is looked who is due for a heartbeat, so heartbeats come late by no more than this."""


class Heartbeats:
    """The heartbeats of a hub, and its look at each live client's unsent bytes beside each of them.

    No task watches a live client. One that reads has taken everything by the next beat or some of it; one that has not
    is sent back to a task of its own, which gives it the write deadline for one byte. So who stopped reading is gone
    within a heartbeat, a beat and the write deadline, once the kernel's buffers are full. Whose machine is gone has
    nothing unsent here for long: a beat after its heartbeat it is asked for by the :class:`DeadPeerCheck`.
    """

    def __init__(self, hub: "Hub") -> None:
        self._hub = hub
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._unacked_at_last_check: dict[Client, float] = {}
        self._dead_peer_check = DeadPeerCheck(hub)
        self._groups_to_check: list[ClientGroup] = []

    @property
    def _interval_seconds(self) -> float:
        return min(CHECK_INTERVAL_SECONDS, self._hub.limits.heartbeat_seconds / 8)

    def start(self) -> None:
        """Begin, or go on."""
        self._timer = self._loop.call_later(self._interval_seconds, self._tick)

    def apply_limits(self) -> None:
        """The hub's limits have changed: nobody waits longer for the next heartbeat than they say."""
        latest = self._loop.time() + self._hub.limits.heartbeat_seconds
        for group in self._hub.live_groups():
            group.next_heartbeat_at = min(group.next_heartbeat_at, latest)

    def stop(self) -> None:
        """No beat any more."""
        if self._timer is not None:
            self._timer.cancel()
        self._dead_peer_check.stop()

    def _tick(self) -> None:
        try:
            self._check_all()
        finally:  # a fault of ours costs one beat, not all that are to come
            self.start()

    def _check_all(self) -> None:
        """A heartbeat goes through the same list as events do, so its cursor is true where it stands."""
        suspects, self._unacked_at_last_check = self._unacked_at_last_check, {}
        for member, unsent in suspects.items():
            if member.group is not None and member.unacked_bytes() >= unsent:
                member.must_show_progress = True
                self._hub.demote(member)
        self._check_peers()
        now = self._loop.time()
        made: dict[Framing, bytes] = {}
        for group in self._hub.live_groups():
            if group.next_heartbeat_at <= now:
                group.next_heartbeat_at = now + self._hub.limits.heartbeat_seconds
                self._record_unacked_bytes(group)
                self._queue_heartbeat(group, made)
                self._groups_to_check.append(group)
        self._hub.ring.drop_unread_caches()
        self._hub.catchup_reader.replay_index.drop_unused_blocks()

    def _record_unacked_bytes(self, group: ClientGroup) -> None:
        """Whoever has something unsent is looked at again at the next beat: it may have been written just now."""
        for member in group.clients:
            if not member.is_poll and member.has_buffered_bytes():
                self._unacked_at_last_check[member] = member.unacked_bytes()

    def _check_peers(self) -> None:
        """Who is in a group whose heartbeat was written at the last beat has had that long to acknowledge it."""
        self._dead_peer_check.recheck_silent()
        beaten, self._groups_to_check = self._groups_to_check, []
        for group in beaten:
            self._dead_peer_check.check(group.clients, self._interval_seconds / 2)

    def _queue_heartbeat(self, group: ClientGroup, frame_cache: dict[Framing, bytes]) -> None:
        hub, frame = self._hub, frame_cache.get(group.framing)
        if frame is None:
            beat = messages.heartbeat_message(hub.head, hub.now_ms(), hub.lag_ms())
            frame = frame_cache[group.framing] = group.framing.encode_control(beat)
        if group.queue_control_frame(frame, hub.head):
            hub.flusher.schedule_group(group)
