"""Everyone who is connected, and the way of an entry to those whom it concerns."""

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from contextlib import suppress
from typing import TYPE_CHECKING

from filters.base import Failed
from filters.index import Index
from filters.key import person
from stream_server.events import FOLLOWERS, INTERNAL_KINDS, PUBLIC, TAKES_BACK, Entry, MalformedEntry, Position
from stream_server.hub import closing as reasons
from stream_server.hub import control
from stream_server.hub.batch import Room
from stream_server.hub.closing import Closing
from stream_server.hub.errands import Errands
from stream_server.hub.group import Group
from stream_server.hub.limits import PREVIEWS, Counts, Limits
from stream_server.hub.losses import Losses
from stream_server.hub.member import Member
from stream_server.hub.outflow import Outflow
from stream_server.hub.people import People
from stream_server.hub.pulse import Pulse
from stream_server.hub.reader import LogPages, Reader
from stream_server.hub.ring import Ring
from stream_server.hub.rulebook import Rulebook
from stream_server.hub.standing import Standing
from stream_server.hub.viewer import Graph
from stream_server.hub.viewers import GRAPH_KINDS, GROUP_KINDS, STANDING_KINDS, Viewers

if TYPE_CHECKING:
    from filters.rules.rule import Rule

STEERING = frozenset(INTERNAL_KINDS)

REGRAPHING = GRAPH_KINDS | GROUP_KINDS | STANDING_KINDS
"""Kinds that change who may see what."""


class Hub:
    """The clients of one worker process.

    ``now_ms`` is the wall clock; ``lag_ms`` and ``log_ready`` are the feed's to set: how far it is known to be
    behind the log, and whether the log can be read; it loads ``standing`` too. ``read_viewer`` reads a user's graph,
    ``read_rule`` a rule's text.
    """

    def __init__(
        self,
        limits: Limits,
        log: LogPages,
        head: Position,
        *,
        now_ms: Callable[[], int],
        read_viewer: Callable[[str], Awaitable[Graph]],
        read_rule: Callable[[str], "Rule"],
    ) -> None:
        self.limits = limits
        self.head = head
        self.counts = Counts()
        self.people = People()
        self.errands = Errands()
        self.losses = Losses(self)
        self.outflow = Outflow(self._room())
        self.log_ready = asyncio.Event()
        self.lag_ms: Callable[[], int] = lambda: 0
        self.now_ms = now_ms
        self.ring = Ring(head, max_bytes=limits.ring_bytes, max_age_ms=limits.ring_seconds * 1000, now_ms=now_ms)
        self.standing = Standing()
        self.viewers = Viewers(self.standing, read_viewer)
        self.rulebook = Rulebook(read_rule)
        self.previews = asyncio.Semaphore(PREVIEWS)
        self.reader = Reader(self.ring, log, self.standing, self.rulebook)
        self.index: Index[Group] = Index()
        self._groups: dict[Hashable, Group] = {}
        self._apart = 0
        self._loop = asyncio.get_running_loop()
        self._pulse = Pulse(self)
        self._ended: Callable[[], Closing] | None = None

    # The way in: one call per entry of the log, in its order.

    def publish(self, entry: Entry) -> None:
        """Hand the next entry of the log to everyone it concerns; never waits, never raises for its content."""
        self.counts.published += 1
        self.ring.append(entry)
        try:
            self._route(entry)
        except MalformedEntry:
            self.counts.malformed += 1
        finally:
            self.head = entry.position
        if entry.kind in REGRAPHING:
            self._regraph(entry)

    def _route(self, entry: Entry) -> None:
        if entry.kind in STEERING:
            self._steer(entry)
        elif self._groups:
            self._offer(entry)
            self.outflow.swell(entry.size)

    def _steer(self, entry: Entry) -> None:
        if entry.kind == "revoke":
            revoked = entry.revocation()
            self.people.close(revoked.uid, revoked.jti, reasons.TOKEN_REVOKED)
        elif entry.kind == "suspend":
            self.people.close(entry.revocation().uid, None, reasons.SUSPENDED)
        elif entry.kind == "rules":
            for member in self.people.of(entry.rules_change().uid):
                if member.ruled_by(entry):
                    self.send_back(member)
        elif entry.kind == "rollback":
            self.losses.hear(entry)

    def _offer(self, entry: Entry) -> None:
        """To each group by its view: everybody's, or its one member's. What takes back goes by its audience."""
        if entry.kind == "unprotect":
            self.standing.apply(entry)  # who may see the user from now on may see that
        if entry.audience == PUBLIC:
            self._offer_matching(entry)
        elif entry.audience.startswith(FOLLOWERS):
            self._draw_apart(entry.owner or "")
            self._offer_matching(entry)
        else:
            for group in self.people.own_groups(entry):
                self._offer_own(group, entry)

    def _offer_matching(self, entry: Entry) -> None:
        ends, public = entry.kind in TAKES_BACK, entry.audience == PUBLIC
        told = None if not public else self.standing.tells(entry) if self.standing.outcasts else entry
        apart = self._offer_quote(entry, told) if entry.quoted is not None else self._offer_plain(entry, told)
        for group in apart:
            if not ends or (group.personal is not None and group.personal.following is None):
                self._offer_own(group, entry)
        if ends:  # goes to those who were sent what it takes back, whom they follow by now does not matter
            for group in self.people.groups():
                self._offer_own(group, entry)
        if self.index.failing:
            self._pass_over_failing()

    def _offer_plain(self, entry: Entry, told: Entry | None) -> list[Group]:
        """To all who see what everybody sees, as that is ``told``; gives those with a view of their own who ask too."""
        apart = []
        for group in self.index.match(entry.event):
            if group.personal is not None:
                apart.append(group)
            elif told is not None:
                self._put(group, told)
        return apart

    def _offer_quote(self, entry: Entry, told: Entry | None) -> list[Group]:
        """The same of a quote, which is asked for as it is told, bare to some: a rule looks at what a quote shows."""
        whole = self.index.match(entry.event)
        bare = entry.without_original() if told is None or self._apart else entry
        narrow = whole if bare is entry else self.index.match(bare.event)
        if told is None and entry.audience == PUBLIC and entry.event.author not in self.standing.outcasts:
            told = bare
        for group in whole if told is entry else narrow:
            if told is not None and group.personal is None and (told is entry or not group.impersonal):
                self._put(group, told)
        return [group for group in dict.fromkeys((*whole, *narrow)) if group.personal is not None]

    def _pass_over_failing(self) -> None:
        """Whose filter raised reads the entry again by itself, where what failed is put out and told of."""
        failing, self.index.failing = self.index.failing, []
        for group in dict.fromkeys(group for group, _ in failing):
            self._pass_over(group)

    def _pass_over(self, group: Group) -> None:
        self.counts.failed += 1
        for member in tuple(group.members):
            self.send_back(member)

    def send_back(self, member: Member) -> None:
        """A live member reads on by itself from the head as it is, which is before the entry that is on its way."""
        if member.group is not None:
            self.outflow.settle(member.group)
        if member.group is not None:  # else it refused, and reads on anyway
            self._leave(member, self.head)
            member.on_wake()

    def _offer_own(self, group: Group, entry: Entry) -> None:
        """As the index does it: a third party's filter that raises does not match, and hurts nobody else."""
        assert group.personal is not None
        try:
            picked = group.personal.pick(entry, group.subscription)
        except Failed:
            self._pass_over(group)
            return
        if picked is not None:
            self._put(group, picked)

    def _put(self, group: Group, entry: Entry) -> None:
        try:
            waits = group.offer(entry, self.head)
        except Failed:
            self._pass_over(group)
            return
        if waits:
            self.outflow.mark(group)

    # Changes of who follows, who sees, and who shares what with whom.

    def _regraph(self, entry: Entry) -> None:
        """A change takes effect after its own entry: frames that wait were matched before it, so they go first."""
        try:
            concerned = self.viewers.concerned(entry)
            for group in self.people.groups_concerned(entry):
                self._refollow(group, entry)
            self.standing.apply(entry)
            for viewer in concerned:
                viewer.apply(entry)
        except MalformedEntry:
            return  # counted when it was offered
        for viewer in concerned:
            if not viewer.plain:
                self._set_apart(viewer.user_id)

    def _refollow(self, group: Group, entry: Entry) -> None:
        self.outflow.settle(group)
        target = group.personal.apply(entry) if group.members and group.personal is not None else None
        if target is not None:
            change = self.index.add_key if entry.kind == "follow" else self.index.remove_key
            change(group, person(target))

    def _draw_apart(self, owner: str) -> None:
        """What is for the followers of one who is protected no longer: they shared what all see, until now."""
        if owner not in self.standing.protected:
            for viewer in self.viewers.trusted_by(owner):
                self._set_apart(viewer.user_id)

    def _set_apart(self, user_id: str) -> None:
        """Whoever is live among a user's streams and shares a view has one of its own from the head on."""
        for member in self.people.of(user_id):
            if member.group is None or member.personal is not None or member.ask.viewer is None:
                continue
            self.outflow.settle(member.group)
            if member.group is not None:  # else it refused, and reads on by itself
                self._leave(member, self.head)
                member.stand_apart()
                self.join(member)

    def jump(self, to: Position, reason: str, missed: int | None = None) -> None:
        """The log does not go on where this hub stands, but after ``to``: everyone is told of the gap.

        ``rolled_back``: the log lost its tail and ends at ``to``, which is below. ``trimmed``: this hub was away for
        longer than the log reaches back, and ``to`` is above.
        """
        self.losses.jump(to, reason, missed)

    def _refuse(self, member: Member, since: Position) -> None:
        self.counts.refused += not member.polls
        member.refused = True
        self._leave(member, since)
        member.on_wake()

    def _warn(self, member: Member, at: Position, unsent: float) -> None:
        """A live member reads too slowly: it is told before what comes next, at the place where it stands."""
        told = member.falls_behind(at, unsent / self.limits.buffer_bytes, self._loop.time())
        if told is not None:
            member.tell(control.notice(told, self.now_ms()))

    def adjust(self, limits: Limits) -> None:
        """From now on these bounds hold, for whoever is here as well.

        What a stream's socket was given when it began, the kernel's patience and where catching up pauses, it keeps.
        """
        self.limits = limits
        self.outflow.make_room(self._room())
        self.ring.bound(max_bytes=limits.ring_bytes, max_age_ms=limits.ring_seconds * 1000)
        self._pulse.adjust()

    def _room(self) -> Room:
        return Room(self.limits.easy_bytes, self.limits.buffer_bytes, self._warn, self._refuse)

    # Signs of life, and the end.

    def start(self) -> None:
        """Begin the heartbeats."""
        self._pulse.start()

    def groups(self) -> tuple[Group, ...]:
        """All groups of live members, as they are at this moment."""
        return tuple(self._groups.values())

    @property
    def stopping(self) -> bool:
        """Whether everyone was told to go."""
        return self._ended is not None

    def stop(self, closing: Callable[[], Closing]) -> None:
        """End everyone, each with a ``closing`` of its own, and whoever still comes."""
        self._ended = closing
        self._pulse.stop()
        for member in self.people.members():
            member.close(closing())

    async def emptied(self, seconds: float) -> None:
        """Until nobody is here any more, but no longer than ``seconds``."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.people.nobody.wait()

    async def wait_for_log(self, seconds: float) -> None:
        """Until the log can be read again, but no longer than ``seconds``; a member's end interrupts its waiting."""
        self.log_ready.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.log_ready.wait()

    # Coming and going.

    def enter(self, member: Member) -> None:
        """From now on the member can be found and ended by its user and its token."""
        self.people.add(member)
        if member.ask.user_id in self.standing.suspended:
            member.close(reasons.SUSPENDED)
        if member.ask.viewer is not None and not self.viewers.trusts(member.ask.viewer):
            member.close(reasons.RESYNC)
        if self._ended is not None:
            member.close(self._ended())

    def exit(self, member: Member) -> None:
        """The member is gone, whatever it was doing; nothing wakes it any more."""
        if member.group is not None:
            self._leave(member, self.head)
        self.people.discard(member)
        member.let_go()

    def live_members(self) -> int:
        """How many are at the head."""
        return sum(len(group.members) for group in self._groups.values())

    def join(self, member: Member) -> None:
        """Be live. The caller saw ``member.position == head`` and did not await since."""
        member.attend()
        group = self._groups.get(member.group_key) or self._open(member)
        self.outflow.take(group)  # what waits lies behind the newcomer
        group.enter(member)
        member.group = group
        member.joined_n = self.head.n

    def retire(self, member: Member) -> None:
        """Be live no longer; what waits in its group is sent first, so its position is the head unless it refused."""
        if member.group is not None:
            self.outflow.settle(member.group)
        if member.group is not None:
            self._leave(member, self.head)

    def _leave(self, member: Member, position: Position) -> None:
        group = member.group
        assert group is not None
        group.leave(member)
        member.group = None
        member.position = position
        if not group.members:
            self._drop(group)

    def _open(self, member: Member) -> Group:
        group = Group(member.group_key, member.subscription, member.ask.framing, member.personal)
        group.beat_at = self._loop.time() + self.limits.heartbeat_seconds
        self.index.add(group, member.subscription)  # may raise: whoever comes next must not find half a group
        self._groups[group.key] = group
        if group.personal is not None:
            self._apart += 1
            self.people.add_group(group)
        return group

    def _drop(self, group: Group) -> None:
        del self._groups[group.key]
        self.outflow.forget(group)
        self.index.remove(group)
        if group.personal is not None:
            self._apart -= 1
            self.people.discard_group(group)
