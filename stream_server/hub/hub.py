"""Everyone who is connected, and the way of an entry to those whom it concerns."""

import asyncio
from collections import deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass

from filters.index import Index
from stream_server.events import INTERNAL_KINDS, PUBLIC, Entry, MalformedEntry, Position
from stream_server.hub import closing as reasons
from stream_server.hub import control
from stream_server.hub.batch import Batch
from stream_server.hub.closing import Closing
from stream_server.hub.control import Gap
from stream_server.hub.errands import Errands
from stream_server.hub.group import Framing, Group
from stream_server.hub.member import Member
from stream_server.hub.people import People
from stream_server.hub.reader import LogPages, Reader
from stream_server.hub.ring import Ring

SLICE_SECONDS = 0.005
"""The longest that a flush holds the loop before others have their turn."""

TICK_SECONDS = (0.005, 0.020)
"""While busy, what arrives together leaves together after this long, shortest and longest."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of a hub; ``buffer_bytes`` are the unsent bytes of one live client."""

    buffer_bytes: int
    heartbeat_seconds: float
    write_timeout_seconds: float
    goodbye_seconds: float
    ring_bytes: int
    ring_seconds: float


@dataclass(slots=True)
class Counts:
    """What happened since the start; the metrics read them."""

    published: int = 0
    malformed: int = 0
    delivered: int = 0
    refused: int = 0
    flushes: int = 0


class Hub:
    """The clients of one worker process.

    ``now_ms`` is the wall clock; ``lag_ms`` and ``log_ready`` are the feed's to set: how far it is known to be
    behind the log, and whether the log can be read.
    """

    def __init__(self, limits: Limits, log: LogPages, head: Position, *, now_ms: Callable[[], int]) -> None:
        self.limits = limits
        self.head = head
        self.counts = Counts()
        self.people = People()
        self.errands = Errands()
        self.log_ready = asyncio.Event()
        self.lag_ms: Callable[[], int] = lambda: 0
        self.now_ms = now_ms
        self.ring = Ring(head, max_bytes=limits.ring_bytes, max_age_ms=limits.ring_seconds * 1000, now_ms=now_ms)
        self.reader = Reader(self.ring, log)
        self.index: Index[Group] = Index()
        self._groups: dict[Hashable, Group] = {}
        self._dirty: dict[Group, None] = {}
        self._batches: deque[Batch] = deque()
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.Handle | None = None
        self._tick = TICK_SECONDS[0]
        self._flushed_at = 0.0
        self._slice_ends = 0.0
        self._more = False
        self._beating: asyncio.TimerHandle | None = None
        self._ended: Callable[[], Closing] | None = None

    # The way in: one call per entry of the log, in its order.

    def publish(self, entry: Entry) -> None:
        """Hand the next entry of the log to everyone it concerns; never waits, never raises for its content."""
        self.counts.published += 1
        try:
            self._route(entry)
        except MalformedEntry:
            self.counts.malformed += 1
        self.ring.append(entry)
        self.head = entry.position
        self._regraph(entry)

    def _route(self, entry: Entry) -> None:
        if entry.kind in INTERNAL_KINDS:
            revoked = entry.revocation()
            self.people.close(revoked.uid, revoked.jti, reasons.TOKEN_REVOKED)
        elif self._groups and entry.audience == PUBLIC:
            self._offer(entry)

    def _offer(self, entry: Entry) -> None:
        for group in self.index.match(entry.event):
            personal = group.personal
            if personal is None or (entry.kind != "delete" and personal.wants(entry, group.subscription)):
                self._put(group, entry)
        if entry.kind == "delete":  # goes to those who were sent the post, whom they follow by now does not matter
            for group in self.people.groups():
                if group.personal is not None and group.personal.wants(entry, group.subscription):
                    self._put(group, entry)

    def _put(self, group: Group, entry: Entry) -> None:
        if group.offer(entry, self.head):
            self._mark(group)

    def _regraph(self, entry: Entry) -> None:
        """A follow takes effect after its own entry: frames that wait were matched before it, so they go first."""
        if entry.kind not in ("follow", "unfollow"):
            return
        for group in self.people.groups_concerned(entry):
            self._settle(group)
            if group.members and group.personal is not None:
                group.personal.apply(entry)
                self.index.remove(group)
                self.index.add(group, group.subscription)

    def roll_back(self, head: Position) -> None:
        """The log lost its tail and ends at ``head``: everyone is told of the gap and goes on from there."""
        for group in tuple(self._groups.values()):
            self._settle(group)
            if not group.members:
                continue
            for member in group.members:
                member.joined_n = min(member.joined_n, head.n)
            lost = Gap(self.head.cursor, head, "rolled_back", None)
            if group.offer_frame(group.framing.control(control.gap(lost, self.now_ms())), head):
                self._mark(group)
        self.ring.clear(head)
        self.head = head

    # The way out: frames wait in their groups for a flush.

    def _mark(self, group: Group) -> None:
        self._dirty[group] = None
        if self._timer is None:
            due = self._flushed_at + self._tick
            idle = self._loop.time() >= due
            self._timer = self._loop.call_soon(self.flush) if idle else self._loop.call_at(due, self.flush)

    def flush(self) -> None:
        """Send what waits: at the end of this turn of the loop while idle, on a tick that grows with the work."""
        self._timer = None
        self.counts.flushes += 1
        started = self._loop.time()
        for group in self._dirty:
            self._batches.append(group.take())
        self._dirty.clear()
        self._work()
        self._flushed_at = self._loop.time()
        shortest, longest = TICK_SECONDS
        self._tick = min(longest, max(shortest, 4 * (self._flushed_at - started)))

    def _work(self) -> None:
        self._slice_ends = self._loop.time() + SLICE_SECONDS
        while self._batches and self._write(self._batches[0], self._slice_over):
            self._batches.popleft()
            if self._slice_over():
                break
        if self._batches and not self._more:
            self._more = True
            self._loop.call_soon(self._next_slice)

    def _next_slice(self) -> None:
        self._more = False
        self._work()

    def _write(self, batch: Batch, expired: Callable[[], bool]) -> bool:
        served = batch.served
        done = batch.write(self.limits.buffer_bytes, self._refuse, expired)
        self.counts.delivered += (batch.served - served) * batch.frames
        return done

    def _slice_over(self) -> bool:
        return self._loop.time() >= self._slice_ends

    def _refuse(self, member: Member, since: Position) -> None:
        self.counts.refused += 1
        self._leave(member, since)
        member.on_wake()

    def _settle(self, group: Group) -> None:
        """Send now, whole, what waits or is on its way in this group."""
        if group in self._dirty:
            del self._dirty[group]
            self._batches.append(group.take())
        for batch in [batch for batch in self._batches if batch.group is group]:
            self._write(batch, _never)

    # Signs of life, and the end.

    def start(self) -> None:
        """Begin the heartbeats."""
        self._beating = self._loop.call_later(self.limits.heartbeat_seconds / 8, self._beat)

    def _beat(self) -> None:
        """A heartbeat goes through the same list as events do, so its cursor is true where it stands."""
        now = self._loop.time()
        made: dict[Framing, bytes] = {}
        for group in self._groups.values():
            if group.beat_at <= now:
                group.beat_at = now + self.limits.heartbeat_seconds
                self._put_heartbeat(group, made)
        self.start()

    def _put_heartbeat(self, group: Group, made: dict[Framing, bytes]) -> None:
        frame = made.get(group.framing)
        if frame is None:
            beat = control.heartbeat(self.head, self.now_ms(), self.lag_ms())
            frame = made[group.framing] = group.framing.control(beat)
        if group.offer_frame(frame, self.head):
            self._mark(group)

    @property
    def stopping(self) -> bool:
        """Whether everyone was told to go."""
        return self._ended is not None

    def stop(self, closing: Callable[[], Closing]) -> None:
        """End everyone, each with a ``closing`` of its own, and whoever still comes."""
        self._ended = closing
        if self._beating is not None:
            self._beating.cancel()
        for member in self.people.members():
            member.close(closing())

    async def emptied(self, seconds: float) -> None:
        """Until nobody is here any more, but no longer than ``seconds``."""
        try:
            async with asyncio.timeout(seconds):
                await self.people.nobody.wait()
        except TimeoutError:
            return

    async def wait_for_log(self) -> None:
        """Until the log can be read again, but no longer than to the next heartbeat."""
        self.log_ready.clear()
        try:
            async with asyncio.timeout(self.limits.heartbeat_seconds):
                await self.log_ready.wait()
        except TimeoutError:
            return

    # Coming and going.

    def enter(self, member: Member) -> None:
        """From now on the member can be found and ended by its user and its token."""
        self.people.add(member)
        if self._ended is not None:
            member.close(self._ended())

    def exit(self, member: Member) -> None:
        """The member is gone, whatever it was doing."""
        if member.group is not None:
            self._leave(member, self.head)
        self.people.discard(member)

    def live_members(self) -> int:
        """How many are at the head."""
        return sum(len(group.members) for group in self._groups.values())

    def join(self, member: Member) -> None:
        """Be live. The caller saw ``member.position == head`` and did not await since."""
        group = self._groups.get(member.group_key) or self._open(member)
        if group in self._dirty:  # what waits lies behind the newcomer: it goes to those who were here
            del self._dirty[group]
            self._batches.append(group.take())
        group.members[member] = None
        member.group = group
        member.joined_n = self.head.n

    def retire(self, member: Member) -> None:
        """Be live no longer; what waits in its group is sent first, so its position is the head unless it refused."""
        if member.group is not None:
            self._settle(member.group)
        if member.group is not None:
            self._leave(member, self.head)

    def _leave(self, member: Member, position: Position) -> None:
        group = member.group
        assert group is not None
        del group.members[member]
        member.group = None
        member.position = position
        if not group.members:
            self._drop(group)

    def _open(self, member: Member) -> Group:
        ask = member.ask
        group = Group(member.group_key, ask.subscription, ask.framing, ask.personal)
        group.beat_at = self._loop.time() + self.limits.heartbeat_seconds
        self._groups[group.key] = group
        self.index.add(group, ask.subscription)
        if group.personal is not None:
            self.people.add_group(group)
        return group

    def _drop(self, group: Group) -> None:
        del self._groups[group.key]
        self._dirty.pop(group, None)
        self.index.remove(group)
        if group.personal is not None:
            self.people.discard_group(group)


def _never() -> bool:
    return False
