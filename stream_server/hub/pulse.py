"""Signs of life, to clients and from them: heartbeats, and who takes no bytes although it has some to take."""

import asyncio
from typing import TYPE_CHECKING

from stream_server.hub import control
from stream_server.hub.group import Framing, Group
from stream_server.hub.roll import Roll

if TYPE_CHECKING:
    from stream_server.hub.hub import Hub
    from stream_server.hub.member import Member

BEAT_SECONDS = 0.5
"""How often it is looked who is due for a heartbeat, so heartbeats come late by no more than this."""


class Pulse:
    """The heartbeats of a hub, and its look at each live client's unsent bytes beside each of them.

    No task watches a live client. One that reads has taken everything by the next beat or some of it; one that has not
    is sent back to a task of its own, which gives it the write deadline for one byte. So who stopped reading is gone
    within a heartbeat, a beat and the write deadline, once the kernel's buffers are full. Whose machine is gone has
    nothing unsent here for long: a beat after its heartbeat it is asked for by the :class:`Roll`.
    """

    def __init__(self, hub: "Hub") -> None:
        self._hub = hub
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._unsent: dict[Member, float] = {}
        self._roll = Roll(hub)
        self._beaten: list[Group] = []

    @property
    def _every(self) -> float:
        return min(BEAT_SECONDS, self._hub.limits.heartbeat_seconds / 8)

    def start(self) -> None:
        """Begin, or go on."""
        self._timer = self._loop.call_later(self._every, self._beat)

    def adjust(self) -> None:
        """The hub's limits have changed: nobody waits longer for the next heartbeat than they say."""
        latest = self._loop.time() + self._hub.limits.heartbeat_seconds
        for group in self._hub.groups():
            group.beat_at = min(group.beat_at, latest)

    def stop(self) -> None:
        """No beat any more."""
        if self._timer is not None:
            self._timer.cancel()
        self._roll.stop()

    def _beat(self) -> None:
        try:
            self._look_round()
        finally:  # a fault of ours costs one beat, not all that are to come
            self.start()

    def _look_round(self) -> None:
        """A heartbeat goes through the same list as events do, so its cursor is true where it stands."""
        suspects, self._unsent = self._unsent, {}
        for member, unsent in suspects.items():
            if member.group is not None and member.unsent() >= unsent:
                member.stuck = True
                self._hub.send_back(member)
        self._call_roll()
        now = self._loop.time()
        made: dict[Framing, bytes] = {}
        for group in self._hub.groups():
            if group.beat_at <= now:
                group.beat_at = now + self._hub.limits.heartbeat_seconds
                self._look(group)
                self._put_heartbeat(group, made)
                self._beaten.append(group)
        self._hub.ring.cool()
        self._hub.reader.sieve.cool()

    def _look(self, group: Group) -> None:
        """Whoever has something unsent is looked at again at the next beat: it may have been written just now."""
        for member in group.members:
            if not member.polls and member.backed_up():
                self._unsent[member] = member.unsent()

    def _call_roll(self) -> None:
        """Who is in a group whose heartbeat was written at the last beat has had that long to acknowledge it."""
        self._roll.recall()
        beaten, self._beaten = self._beaten, []
        for group in beaten:
            self._roll.call(group.members, self._every / 2)

    def _put_heartbeat(self, group: Group, made: dict[Framing, bytes]) -> None:
        hub, frame = self._hub, made.get(group.framing)
        if frame is None:
            beat = control.heartbeat(hub.head, hub.now_ms(), hub.lag_ms())
            frame = made[group.framing] = group.framing.control(beat)
        if group.offer_frame(frame, hub.head):
            hub.outflow.mark(group)
