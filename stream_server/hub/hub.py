"""Everyone who is connected, and the way of an entry to those whom it concerns."""

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from contextlib import suppress
from typing import TYPE_CHECKING

from filters.base import FilterFailure
from filters.index_keys import user_key
from filters.subscription_index import SubscriptionIndex
from stream_server.events.entry import Entry
from stream_server.events.entry_fields import MalformedEntry
from stream_server.events.kinds import CREATION_KINDS, FOLLOWERS_PREFIX, INTERNAL_KINDS, PUBLIC_AUDIENCE
from stream_server.events.position import Position
from stream_server.hub import disconnect as reasons
from stream_server.hub import messages
from stream_server.hub.background_tasks import BackgroundTasks
from stream_server.hub.batch import WriteLimits
from stream_server.hub.catchup.reader import CatchUpReader, LogPageSource
from stream_server.hub.catchup.ring import Ring
from stream_server.hub.client import Client
from stream_server.hub.client_registry import ClientRegistry
from stream_server.hub.disconnect import DisconnectReason
from stream_server.hub.flusher import Flusher
from stream_server.hub.group import ClientGroup
from stream_server.hub.heartbeats import Heartbeats
from stream_server.hub.limits import MAX_CONCURRENT_PREVIEWS, HubCounters, HubLimits
from stream_server.hub.rollback_notices import RollbackNotices
from stream_server.hub.saved_rules import SavedRulesCache
from stream_server.hub.visibility.account_status import AccountStatus
from stream_server.hub.visibility.viewer import RelationSnapshot
from stream_server.hub.visibility.viewer_cache import ACCOUNT_STATUS_KINDS, GROUP_KINDS, RELATION_KINDS, ViewerCache

if TYPE_CHECKING:
    from filters.rules.rule import Rule

INTERNAL_KIND_SET = frozenset(INTERNAL_KINDS)

VISIBILITY_CHANGE_KINDS = RELATION_KINDS | GROUP_KINDS | ACCOUNT_STATUS_KINDS
"""Kinds that change who may see what."""


class Hub:
    """The clients of one worker process.

    ``now_ms`` is the wall clock; ``lag_ms`` and ``log_available`` are the feed's to set: how far it is known to be
    behind the log, and whether the log can be read; it loads ``account_status`` too. ``read_viewer`` reads a user's graph,
    ``read_rule`` a rule's text.
    """

    def __init__(
        self,
        limits: HubLimits,
        log: LogPageSource,
        head: Position,
        *,
        now_ms: Callable[[], int],
        read_relations: Callable[[str], Awaitable[RelationSnapshot]],
        parse_rule: Callable[[str], "Rule"],
    ) -> None:
        self.limits = limits
        self.head = head
        self.counters = HubCounters()
        self.registry = ClientRegistry()
        self.background_tasks = BackgroundTasks()
        self.rollback_notices = RollbackNotices(self)
        self.flusher = Flusher(self._write_limits())
        self.log_available = asyncio.Event()
        self.lag_ms: Callable[[], int] = lambda: 0
        self.now_ms = now_ms
        self.ring = Ring(head, max_bytes=limits.ring_bytes, max_age_ms=limits.ring_seconds * 1000, now_ms=now_ms)
        self.account_status = AccountStatus()
        self.viewer_cache = ViewerCache(self.account_status, read_relations)
        self.saved_rules = SavedRulesCache(parse_rule)
        self.preview_slots = asyncio.Semaphore(MAX_CONCURRENT_PREVIEWS)
        self.catchup_reader = CatchUpReader(self.ring, log, self.account_status, self.saved_rules)
        self.index: SubscriptionIndex[ClientGroup] = SubscriptionIndex()
        self._groups: dict[Hashable, ClientGroup] = {}
        self._private_group_count = 0
        self._loop = asyncio.get_running_loop()
        self._heartbeats = Heartbeats(self)
        self._next_disconnect_reason: Callable[[], DisconnectReason] | None = None

    # The way in: one call per entry of the log, in its order.

    def publish(self, entry: Entry) -> None:
        """Hand the next entry of the log to everyone it concerns; never waits, never raises for its content."""
        self.counters.published += 1
        self.ring.append(entry)
        try:
            self._route_entry(entry)
        except MalformedEntry:
            self.counters.malformed += 1
        finally:
            self.head = entry.position
        if entry.kind in VISIBILITY_CHANGE_KINDS:
            self._apply_visibility_change(entry)

    def _route_entry(self, entry: Entry) -> None:
        if entry.kind in INTERNAL_KIND_SET:
            self._apply_internal_entry(entry)
        elif self._groups:
            self._deliver_by_audience(entry)
            self.flusher.add_bytes(entry.size)

    def _apply_internal_entry(self, entry: Entry) -> None:
        if entry.kind == "revoke":
            revoked = entry.revocation()
            self.registry.disconnect(revoked.uid, revoked.jti, reasons.TOKEN_REVOKED)
        elif entry.kind == "suspend":
            self.registry.disconnect(entry.revocation().uid, None, reasons.SUSPENDED)
        elif entry.kind == "rules":
            for member in self.registry.clients_of(entry.rules_change().uid):
                if member.is_changed_by_rules_entry(entry):
                    self.demote(member)
        elif entry.kind == "rollback":
            self.rollback_notices.announce_rollback(entry)

    def _deliver_by_audience(self, entry: Entry) -> None:
        """To each group by its view: everybody's, or its one member's. What takes back goes by its audience."""
        if entry.kind == "unprotect":
            self.account_status.apply(entry)  # who may see the user from now on may see that
        if entry.audience == PUBLIC_AUDIENCE:
            self._deliver_matching(entry)
        elif entry.audience.startswith(FOLLOWERS_PREFIX):
            self._separate_followers_of(entry.audience_owner or "")
            self._deliver_matching(entry)
        else:
            for group in self.registry.addressed_groups(entry):
                self._deliver_to_private_group(group, entry)

    def _deliver_matching(self, entry: Entry) -> None:
        ends, public = entry.kind in CREATION_KINDS, entry.audience == PUBLIC_AUDIENCE
        told = (
            None
            if not public
            else self.account_status.render_for_everyone(entry)
            if self.account_status.restricted
            else entry
        )
        apart = (
            self._deliver_quote_to_shared_groups(entry, told)
            if entry.quoted_author is not None
            else self._deliver_to_shared_groups(entry, told)
        )
        for group in apart:
            if not ends or (group.private_view is not None and group.private_view.following is None):
                self._deliver_to_private_group(group, entry)
        if ends:  # goes to those who were sent what it takes back, whom they follow by now does not matter
            for group in self.registry.following_groups():
                self._deliver_to_private_group(group, entry)
        if self.index.failures:
            self._demote_failed_groups()

    def _deliver_to_shared_groups(self, entry: Entry, public_rendering: Entry | None) -> list[ClientGroup]:
        """To all who see what everybody sees, as that is ``public_rendering``; gives those with a view of their own who ask too."""
        apart = []
        for group in self.index.match(entry.event):
            if group.private_view is not None:
                apart.append(group)
            elif public_rendering is not None:
                self._queue_entry(group, public_rendering)
        return apart

    def _deliver_quote_to_shared_groups(self, entry: Entry, public_rendering: Entry | None) -> list[ClientGroup]:
        """The same of a quote, which is asked for as it is told, bare to some: a rule looks at what a quote shows."""
        whole = self.index.match(entry.event)
        bare = entry.without_original() if public_rendering is None or self._private_group_count else entry
        narrow = whole if bare is entry else self.index.match(bare.event)
        if (
            public_rendering is None
            and entry.audience == PUBLIC_AUDIENCE
            and entry.event.author not in self.account_status.restricted
        ):
            public_rendering = bare
        for group in whole if public_rendering is entry else narrow:
            if (
                public_rendering is not None
                and group.private_view is None
                and (public_rendering is entry or not group.is_impersonal)
            ):
                self._queue_entry(group, public_rendering)
        return [group for group in dict.fromkeys((*whole, *narrow)) if group.private_view is not None]

    def _demote_failed_groups(self) -> None:
        """Whose filter raised reads the entry again by itself, where what failed is put out and told of."""
        failing, self.index.failures = self.index.failures, []
        for group in dict.fromkeys(group for group, _ in failing):
            self._demote_group(group)

    def _demote_group(self, group: ClientGroup) -> None:
        self.counters.filter_failures += 1
        for member in tuple(group.clients):
            self.demote(member)

    def demote(self, client: Client) -> None:
        """A live member reads on by itself from the head as it is, which is before the entry that is on its way."""
        if client.group is not None:
            self.flusher.flush_group(client.group)
        if client.group is not None:  # else it refused, and reads on anyway
            self._remove_from_group(client, self.head)
            client.on_wake()

    def _deliver_to_private_group(self, group: ClientGroup, entry: Entry) -> None:
        """As the index does it: a third party's filter that raises does not match, and hurts nobody else."""
        assert group.private_view is not None
        try:
            picked = group.private_view.render(entry, group.subscription)
        except FilterFailure:
            self._demote_group(group)
            return
        if picked is not None:
            self._queue_entry(group, picked)

    def _queue_entry(self, group: ClientGroup, entry: Entry) -> None:
        try:
            waits = group.queue_entry(entry, self.head)
        except FilterFailure:
            self._demote_group(group)
            return
        if waits:
            self.flusher.schedule_group(group)

    # Changes of who follows, who sees, and who shares what with whom.

    def _apply_visibility_change(self, entry: Entry) -> None:
        """A change takes effect after its own entry: frames that wait were matched before it, so they go first."""
        try:
            concerned = self.viewer_cache.affected_by(entry)
            for group in self.registry.groups_changing_follows(entry):
                self._update_followed_users(group, entry)
            self.account_status.apply(entry)
            for viewer in concerned:
                viewer.apply(entry)
        except MalformedEntry:
            return  # counted when it was offered
        for viewer in concerned:
            if not viewer.sees_public_view:
                self._move_to_private_groups(viewer.user_id)

    def _update_followed_users(self, group: ClientGroup, entry: Entry) -> None:
        self.flusher.flush_group(group)
        target = (
            group.private_view.apply_follow_change(entry) if group.clients and group.private_view is not None else None
        )
        if target is not None:
            change = self.index.add_key if entry.kind == "follow" else self.index.remove_key
            change(group, user_key(target))

    def _separate_followers_of(self, owner: str) -> None:
        """What is for the followers of one who is protected no longer: they shared what all see, until now."""
        if owner not in self.account_status.protected:
            for viewer in self.viewer_cache.readers_of(owner):
                self._move_to_private_groups(viewer.user_id)

    def _move_to_private_groups(self, user_id: str) -> None:
        """Whoever is live among a user's streams and shares a view has one of its own from the head on."""
        for member in self.registry.clients_of(user_id):
            if member.group is None or member.private_view is not None or member.request.viewer is None:
                continue
            self.flusher.flush_group(member.group)
            if member.group is not None:  # else it refused, and reads on by itself
                self._remove_from_group(member, self.head)
                member.use_private_view()
                self.join_live(member)

    def move_head(self, to: Position, reason: str, missed_count: int | None = None) -> None:
        """The log does not go on where this hub stands, but after ``to``: everyone is told of the gap.

        ``rolled_back``: the log lost its tail and ends at ``to``, which is below. ``trimmed``: this hub was away for
        longer than the log reaches back, and ``to`` is above.
        """
        self.rollback_notices.move_head(to, reason, missed_count)

    def _on_overflow(self, client: Client, resume_position: Position) -> None:
        self.counters.slow_demotions += not client.is_poll
        client.overflowed = True
        self._remove_from_group(client, resume_position)
        client.on_wake()

    def _on_slow(self, client: Client, position: Position, unsent_bytes: float) -> None:
        """A live member reads too slowly: it is told before what comes next, at the place where it stands."""
        told = client.slow_warning(position, unsent_bytes / self.limits.buffer_bytes, self._loop.time())
        if told is not None:
            client.send_control(messages.notice_message(told, self.now_ms()))

    def apply_limits(self, limits: HubLimits) -> None:
        """From now on these bounds hold, for whoever is here as well.

        What a stream's socket was given when it began, the kernel's patience and where catching up pauses, it keeps.
        """
        self.limits = limits
        self.flusher.set_limits(self._write_limits())
        self.ring.set_limits(max_bytes=limits.ring_bytes, max_age_ms=limits.ring_seconds * 1000)
        self._heartbeats.apply_limits()

    def _write_limits(self) -> WriteLimits:
        return WriteLimits(self.limits.warning_bytes, self.limits.buffer_bytes, self._on_slow, self._on_overflow)

    # Signs of life, and the end.

    def start(self) -> None:
        """Begin the heartbeats."""
        self._heartbeats.start()

    def live_groups(self) -> tuple[ClientGroup, ...]:
        """All groups of live members, as they are at this moment."""
        return tuple(self._groups.values())

    @property
    def is_stopping(self) -> bool:
        """Whether everyone was told to go."""
        return self._next_disconnect_reason is not None

    def stop(self, next_disconnect_reason: Callable[[], DisconnectReason]) -> None:
        """End everyone, each with a ``next_disconnect_reason`` of its own, and whoever still comes."""
        self._next_disconnect_reason = next_disconnect_reason
        self._heartbeats.stop()
        for member in self.registry.list_clients():
            member.disconnect(next_disconnect_reason())

    async def wait_until_empty(self, timeout_seconds: float) -> None:
        """Until nobody is here any more, but no longer than ``timeout_seconds``."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_seconds):
                await self.registry.empty.wait()

    async def wait_for_log(self, timeout_seconds: float) -> None:
        """Until the log can be read again, but no longer than ``timeout_seconds``; a member's end interrupts its waiting."""
        self.log_available.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_seconds):
                await self.log_available.wait()

    # Coming and going.

    def register(self, client: Client) -> None:
        """From now on the member can be found and ended by its user and its token."""
        self.registry.add(client)
        if client.request.user_id in self.account_status.suspended:
            client.disconnect(reasons.SUSPENDED)
        if client.request.viewer is not None and not self.viewer_cache.is_current(client.request.viewer):
            client.disconnect(reasons.RESYNC)
        if self._next_disconnect_reason is not None:
            client.disconnect(self._next_disconnect_reason())

    def unregister(self, client: Client) -> None:
        """The member is gone, whatever it was doing; nothing wakes it any more."""
        if client.group is not None:
            self._remove_from_group(client, self.head)
        self.registry.discard(client)
        client.detach()

    def count_live_clients(self) -> int:
        """How many are at the head."""
        return sum(len(group.clients) for group in self._groups.values())

    def join_live(self, client: Client) -> None:
        """Be live. The caller saw ``member.position == head`` and did not await since."""
        client.use_private_view_if_needed()
        group = self._groups.get(client.group_key) or self._open_group(client)
        self.flusher.seal_group(group)  # what waits lies behind the newcomer
        group.add_client(client)
        client.group = group
        client.joined_at_number = self.head.n

    def leave_live(self, client: Client) -> None:
        """Be live no longer; what waits in its group is sent first, so its position is the head unless it refused."""
        if client.group is not None:
            self.flusher.flush_group(client.group)
        if client.group is not None:
            self._remove_from_group(client, self.head)

    def _remove_from_group(self, client: Client, position: Position) -> None:
        group = client.group
        assert group is not None
        group.remove_client(client)
        client.group = None
        client.position = position
        if not group.clients:
            self._close_group(group)

    def _open_group(self, client: Client) -> ClientGroup:
        group = ClientGroup(client.group_key, client.subscription, client.request.framing, client.private_view)
        group.next_heartbeat_at = self._loop.time() + self.limits.heartbeat_seconds
        self.index.add(group, client.subscription)  # may raise: whoever comes next must not find half a group
        self._groups[group.key] = group
        if group.private_view is not None:
            self._private_group_count += 1
            self.registry.add_following_group(group)
        return group

    def _close_group(self, group: ClientGroup) -> None:
        del self._groups[group.key]
        self.flusher.discard_group(group)
        self.index.remove(group)
        if group.private_view is not None:
            self._private_group_count -= 1
            self.registry.discard_following_group(group)
