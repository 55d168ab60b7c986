"""The way of an entry from the log to the live clients: audience, matching, visibility, and changes of visibility.

`RollbackNotices` tells each client once that the log lost entries, at the position where the log continues.
"""

from collections.abc import Callable, Sequence

from filters.base import FilterFailure
from filters.index_keys import user_key
from stream_server.events.content import MalformedEntry
from stream_server.events.entry import INTERNAL_KINDS, PUBLIC_AUDIENCE, EncodeEntry, Entry
from stream_server.events.position import Position
from stream_server.hub import disconnect as reasons
from stream_server.hub import messages
from stream_server.hub.catchup.ring import Ring
from stream_server.hub.client import Client
from stream_server.hub.client_registry import ClientRegistry
from stream_server.hub.delivery import decide, encode_matched
from stream_server.hub.group import ClientGroup
from stream_server.hub.limits import HubCounters
from stream_server.hub.live_clients import LiveClients
from stream_server.hub.messages import Gap, rollback_gap
from stream_server.hub.visibility.private_view import PrivateView
from stream_server.hub.visibility.restricted_accounts import RestrictedAccounts
from stream_server.hub.visibility.viewer_cache import ACCOUNT_STATUS_KINDS, GROUP_KINDS, RELATION_KINDS, ViewerCache


class RollbackNotices:
    """Sends `gap` messages for lost entries, and ends streams whose permissions or rules may come from lost entries."""

    def __init__(
        self, live: LiveClients, registry: ClientRegistry, viewers: ViewerCache, ring: Ring, now_ms: Callable[[], int]
    ) -> None:
        self._live = live
        self._registry = registry
        self._viewer_cache = viewers
        self._ring = ring
        self._now_ms = now_ms

    def move_head(self, to: Position, reason: str, missed_count: int | None) -> None:
        """Set the hub's head to ``to``, and send live clients a `gap`. See `Hub.move_head`.

        Ends the streams that have a viewer or saved rules: the missing entries may have changed relations or rules.
        """
        live = self._live
        gap = Gap(live.head.cursor, to, reason, missed_count)
        for group in live.groups():
            live.flusher.flush_group(group)
            for client in group.members:
                client.last_rollback = (to, live.head) if reason == messages.ROLLED_BACK else None
            if group.members:
                self._queue_gap(group, gap)
        self._ring.cut_after(to)
        live.head = to
        self._viewer_cache.clear()
        for client in self._registry.list_clients():
            if client.viewer is not None or client.uses_saved_rules:  # what is lost may have been a block
                self._resync(client)

    def announce_rollback(self, rollback_entry: Entry) -> None:
        """``rollback_entry`` reports lost entries: send a `gap` to each live client that has not got one for this loss.

        The clients keep their positions, because this server sent them no lost entry. It ends streams whose relations
        were read from lost entries. Raises `MalformedEntry` if the entry cannot be decoded.
        """
        start, end = rollback_entry.lost_range()
        # What was read from the lost part of the log may apply a lost block or follow. These clients reconnect with
        # their cursors and then receive the `gap`. Saved rules are those at the client's position, which is not lost.
        self._viewer_cache.forget_read_between(start, rollback_entry.position)
        for client in self._registry.list_clients():
            if client.viewer is not None and not self._viewer_cache.is_current(client.viewer):
                self._resync(client)
        for group in self._live.groups():
            unaware = [client for client in group.members if not client.knows_rollback(start, end)]
            if unaware and len(unaware) == len(group.members):
                self._queue_gap(group, rollback_gap(rollback_entry))
            else:  # they share frames with clients that know of the loss, so let them read the entry by themselves
                for client in unaware:
                    self._live.demote(client)

    def _resync(self, client: Client) -> None:
        self._live.leave(client)
        client.disconnect(reasons.RESYNC)

    def _queue_gap(self, group: ClientGroup, gap: Gap) -> None:
        if group.window is not None:
            self._live.summaries.close(group)
        frame = group.framing.encode_control(messages.gap_message(gap, self._now_ms()))
        self._live.queue_frame(group, frame, is_control=True)
        if group.window is not None:
            self._live.summaries.restart(group, gap.end)


def _without_repetition(versions: list[tuple[Entry, list[ClientGroup]]]) -> list[tuple[Entry, list[ClientGroup]]]:
    """Return the groups that get each version of an entry. A group gets the first version that it matches."""
    reached = set[ClientGroup]()
    first = []
    for version, groups in versions:
        first.append((version, [group for group in groups if group not in reached]))
        reached.update(groups)
    return first


INTERNAL_KIND_SET = frozenset(INTERNAL_KINDS)
"""The kinds that control the server and are not delivered, as a set."""

VISIBILITY_CHANGE_KINDS = RELATION_KINDS | GROUP_KINDS | ACCOUNT_STATUS_KINDS
"""Kinds of entries that change which entries a user may see."""


class Router:
    """Finds the live clients of one server process that receive an entry, and queues its frames for them.

    The clients of a shared group see the public view. The subscription index finds the shared groups that match an
    entry, and the entry is rendered once for all of them. A private group has one client with its own view. Candidates
    are the private groups that the index finds and those of users in the entry's audience; for a `delete`, also those
    that were sent its post. `delivery.decide` decides what each candidate receives.
    """

    def __init__(
        self, live: LiveClients, registry: ClientRegistry, restricted_accounts: RestrictedAccounts,
        viewer_cache: ViewerCache, rollback_notices: RollbackNotices, counters: HubCounters,
    ) -> None:  # fmt: skip
        self._live = live
        self._registry = registry
        self._restricted_accounts = restricted_accounts
        self._viewer_cache = viewer_cache
        self._rollback_notices = rollback_notices
        self._counters = counters

    def obey(self, entry: Entry) -> None:
        """Act on an entry for servers, not clients: end streams, demote clients with new rules, announce a rollback.

        Raises `MalformedEntry` if the entry cannot be decoded.
        """
        if entry.kind == "revoke":
            self._registry.revoke(entry.revocation())
        elif entry.kind == "suspend":
            revocation = entry.revocation()
            reason = reasons.ACCOUNT_DELETED if revocation.deleted else reasons.SUSPENDED
            for client in self._registry.clients_of(revocation.uid):
                client.disconnect(reason)
        elif entry.kind == "rules":
            for client in self._registry.clients_of(entry.rules_change().uid):
                if client.is_changed_by_rules_entry(entry):
                    self._live.demote(client)
        elif entry.kind == "stream":
            self._registry.obey(entry.stream_command())
        elif entry.kind == "rollback":
            self._rollback_notices.announce_rollback(entry)

    def part_readers(self, entry: Entry) -> None:
        """Move the clients that may get an `uncomment` for followers to private groups, before it is delivered.

        The user whose followers are its audience may be no longer protected. Then these clients use the public view,
        which contains no entry for followers.
        """
        if entry.audience_owner is not None:
            for viewer in self._viewer_cache.readers_of(entry.audience_owner):
                self._move_to_private_groups(viewer.user_id)

    def deliver(self, entry: Entry, *, is_last: bool) -> None:
        """Write or queue an entry for the live clients that receive it. Raises `MalformedEntry` if it is invalid.

        ``is_last`` says that no further entry was read with this one, so it need not wait for others to share a write.
        """
        live = self._live
        if entry.audience != PUBLIC_AUDIENCE and entry.audience_owner is None:
            self._deliver_to_private_groups(self._registry.addressed_groups(entry), entry)
            return
        shared: list[tuple[Entry, list[ClientGroup]]] = []
        private: dict[ClientGroup, None] = {}
        versions = entry.versions() if entry.facts.before else (entry,)
        for version in versions:
            rendered = self._restricted_accounts.render_today(version)
            groups = self._match(version, rendered, private)
            if rendered is not None:
                shared.append((rendered, groups))
        if len(shared) > 1:
            shared = _without_repetition(shared)
        if live.index.failures or live.index.verification.unverified:
            self._demote_unmatched_groups()  # first: they read the entry again, also one whose other form has matched
            shared = [(rendered, [group for group in groups if group.members]) for rendered, groups in shared]
            private = {group: None for group in private if group.members}
        for rendered, groups in shared:
            if groups:
                # A flush for one entry to groups of one client would take a tenth of the CPU time of their delivery.
                left = live.flusher.write_at_once(groups, rendered) if is_last else groups
                if left:
                    self._queue_for_shared_groups(left, rendered)
        if versions[-1].is_removal:
            # A removal goes to the clients that received the removed post, even if they no longer follow its author.
            received = self._viewer_cache.sent_subjects.receivers_of(entry.subject_id or "")
            private.update(dict.fromkeys(self._registry.groups_of_views(received)))
        if private:
            live.index.verification.verify(list(private), lambda some: self._deliver_to_private_groups(some, entry))
        if live.index.verification.unverified:
            self._demote_unmatched_groups()

    def _match(
        self, entry: Entry, rendered: Entry | None, private: dict[ClientGroup, None]
    ) -> list[ClientGroup]:
        """Return the shared groups that match an entry as the public view shows it, ``rendered``.

        Adds the private groups that match one of its forms to ``private``.
        """
        live, shared = self._live, list[ClientGroup]()
        is_quote = entry.quoted_author is not None
        forms = [entry]
        if is_quote and (live.private_group_count or rendered is not entry):
            forms.append(entry.without_original())  # some users see the quote without its original
        for form in forms:
            matching = live.index.match(form.event)
            if live.private_group_count:
                private.update((group, None) for group in matching if group.private_view is not None)
                matching = [group for group in matching if group.private_view is None]
            if rendered is not None and form is (rendered if is_quote else entry):  # as `entry_to_match` says
                shared = matching
        return shared

    def _queue_for_shared_groups(self, groups: Sequence[ClientGroup], rendered: Entry) -> None:
        """Queue an entry as the public view shows it. The loop runs for every group and makes almost no calls."""
        head, first = self._live.head, []
        encode: EncodeEntry | None = None
        shared: bytes | None = None  # what `encode` made, for neighbours with the same framing
        try:
            for group in groups:
                if group.shared_framing is None:
                    try:
                        matched_json = encode_matched(group.subscription, rendered)
                    except FilterFailure:
                        self._counters.filter_failures += 1
                        self._demote_group(group)
                        continue
                    if group.window is not None:
                        self._live.summaries.count(group, rendered.position, matched_json)
                        continue
                    frame = rendered.frame(group.encode_entry, matched_json)
                else:
                    if shared is None or group.encode_entry is not encode:
                        encode = group.encode_entry
                        shared = rendered.frame(encode)
                    frame = shared
                if frame:  # `ClientGroup.queue_frame` without the call
                    group.pending_frames.append(frame)
                    if group.resume_position is None:
                        group.resume_position = head
                        first.append(group)
        finally:
            if first:
                self._live.flusher.schedule(first)

    def _deliver_to_private_groups(self, groups: Sequence[ClientGroup], entry: Entry) -> tuple[()]:
        """Queue an entry for the private groups that receive it. Return no group, because none is left to verify."""
        for group in groups:
            assert group.private_view is not None
            try:
                delivery = decide(entry, group.subscription, group.private_view)
            except FilterFailure:
                self._counters.filter_failures += 1
                self._demote_group(group)
                continue
            if delivery is None:
                continue
            if group.window is None:
                self._live.queue_frame(group, delivery.frame(group.encode_entry))
            else:
                self._live.summaries.count(group, entry.position, delivery.matched_json)
        return ()

    def _demote_unmatched_groups(self) -> None:
        """Demote the clients of groups that the index could not match: a filter raised, or no time was left.

        The catch-up reader matches the entry again, in small slices. If a filter raises again, the reader disables it
        and warns the client.
        """
        index = self._live.index
        failures, index.failures = index.failures, []
        unverified, index.verification.unverified = index.verification.unverified, []
        for group in dict.fromkeys(group for group, _ in failures):
            self._counters.filter_failures += 1
            self._demote_group(group)
        for group in dict.fromkeys(unverified):
            self._demote_group(group)

    def _demote_group(self, group: ClientGroup) -> None:
        for client in tuple(group.members):
            self._live.demote(client)

    def apply_visibility_change(self, entry: Entry) -> None:
        """Apply a change of relations or account status to the clients' views. First send what waits for them."""
        try:
            for group in self._registry.groups_changing_follows(entry):
                self._update_followed_users(group, entry)
            self.apply_to_viewers(entry)
        except MalformedEntry:
            return  # counted already when the entry was routed

    def apply_to_viewers(self, entry: Entry) -> None:
        """Apply a change to the account status and to the viewers that it affects, which may need private groups.

        To apply it again changes nothing. Raises `MalformedEntry` if it cannot be decoded.
        """
        viewers = self._viewer_cache.affected_by(entry)
        self._restricted_accounts.apply(entry)
        for viewer in viewers:
            viewer.apply(entry)
        for viewer in viewers:
            if not viewer.sees_public_view:
                self._move_to_private_groups(viewer.user_id)

    def _update_followed_users(self, group: ClientGroup, entry: Entry) -> None:
        """Update the followed users and the index keys of a group, because its user followed or unfollowed a user."""
        live = self._live
        if group.window is not None:  # counting again with other followed users would give another result
            live.summaries.close(group)
        live.flusher.flush_group(group)
        if not group.members or group.private_view is None:
            return  # the flush demoted its client
        target = group.private_view.apply_follow_change(entry)
        if target is not None:
            change = live.index.add_key if entry.kind == "follow" else live.index.remove_key
            change(group, user_key(target))

    def _move_to_private_groups(self, user_id: str) -> None:
        """Move a user's live clients from shared groups to private groups, where each client has its private view."""
        for client in self._registry.clients_of(user_id):
            if not client.is_live or client.private_view is not None or client.viewer is None:
                continue
            self._live.flush(client)
            if isinstance(client.group, ClientGroup):  # otherwise a frame did not fit, and the client is catching up
                self._live.remove(client, self._live.head)
                client.private_view = PrivateView(client.viewer)
                self._live.join(client)
