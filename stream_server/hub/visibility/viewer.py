"""The relations of one user as sets, kept at the hub's head. They decide what the user may see in streams.

All streams of a user in this process share one viewer. It decides by the table of
`stream_server.events.visibility.decide_visibility`, which the Lua scripts use too.
"""

from collections.abc import Mapping, Sized
from types import MappingProxyType
from typing import Any, Protocol, TypeAlias, cast

from stream_server.events import visibility
from stream_server.events.entry import CARD_KINDS, PROTECTION_KINDS, PUBLIC_AUDIENCE, Entry
from stream_server.events.position import LOG_START, Position, created_ms
from stream_server.events.visibility import VisibilityFact
from stream_server.hub.visibility.restricted_accounts import RestrictedAccounts, without_hidden
from stream_server.hub.visibility.sent_subjects import SentSubjects

TODAY_MS = 1 << 62
"""A time in ms later than every real one. As the time of a question it means "today"."""

NEVER_MS = TODAY_MS + 1
"""A time in ms later than `TODAY_MS`: the begin of a relation that does not exist."""

_IS_SHOWN = tuple(digit == str(visibility.Visibility.VISIBLE.value) for digit in visibility.visibility_table())
"""Whether an author is visible, by the sum of the `VisibilityFact` bits."""

NO_RELATIONS: Mapping[Any, int] = MappingProxyType({})
"""The relation of a user to nobody. All viewers share it, because six empty dicts for each would take 400 bytes."""

MAX_ENDED = 200
"""Number of ended follows and memberships of a user that a viewer knows, the latest ones. Redis keeps as many."""

VIEWER_WEIGHT = 10
"""Number of relations that take as much memory as a viewer without relations."""


Span: TypeAlias = tuple[int, int]
"""Begin and end of a span of time, in ms since 1970."""


class RelationSnapshot(Protocol):
    """A user's relations. Each maps ids to the ms since 1970 when it began. The viewer takes over the dicts.

    ``ended`` has the follows and memberships that ended, in the form of `Viewer`.
    The log's head was ``applied_from`` before they were read, and ``head`` after that. They may change while they are
    read. So they are exact as soon as all entries between the two are applied.
    """

    @property
    def following(self) -> dict[str, int]: ...

    @property
    def blocks(self) -> dict[str, int]: ...

    @property
    def blockers(self) -> dict[str, int]: ...

    @property
    def mutes(self) -> dict[str, int]: ...

    @property
    def groups(self) -> dict[str, int]: ...

    @property
    def ended(self) -> dict[tuple[str, int], int]: ...

    @property
    def applied_from(self) -> Position: ...

    @property
    def head(self) -> Position: ...


class Viewer:
    """The relations of one user. Each relation maps ids to the time at which it began, in ms since 1970.

    ``ended`` has the follows and memberships that ended last, because deletes of what the user could read then may
    still come. Its keys are pairs of the id of the followed user or group and the time of the begin. Its values are the
    times of the end.
    The relations are empty until `load` sets them. `apply` changes them; changes that come before `load` are kept and
    applied by it. ``blockers`` are the users who block this user, ``groups`` are this user's user groups. ``read_at``
    is the log's head when the relations had been read: they are exact once the hub has reached it. ``applied_from`` is
    the head before that. `apply` skips the entries up to there.
    ``sent_subjects`` is what the streams of this process were sent.
    """

    __slots__ = (
        "__weakref__",
        "_entries_before_load",
        "_restricted_accounts",
        "applied_from",
        "blockers",
        "blocks",
        "ended",
        "following",
        "groups",
        "is_loaded",
        "mutes",
        "read_at",
        "sent_subjects",
        "user_id",
    )  # fmt: skip

    def __init__(
        self, user_id: str, restricted_accounts: RestrictedAccounts, sent_subjects: SentSubjects | None = None
    ) -> None:
        self.user_id = user_id
        self.sent_subjects = SentSubjects() if sent_subjects is None else sent_subjects
        self.following: Mapping[str, int] = NO_RELATIONS
        self.blocks: Mapping[str, int] = NO_RELATIONS
        self.blockers: Mapping[str, int] = NO_RELATIONS
        self.mutes: Mapping[str, int] = NO_RELATIONS
        self.groups: Mapping[str, int] = NO_RELATIONS
        self.ended: Mapping[tuple[str, int], int] = NO_RELATIONS
        self.applied_from = self.read_at = LOG_START
        self.is_loaded = False
        self._restricted_accounts = restricted_accounts
        self._entries_before_load: list[Entry] = []

    def load(self, relations: RelationSnapshot) -> None:
        """Set the relations that were read from the store, and apply the entries that `apply` stored meanwhile."""
        self.following, self.groups = relations.following or NO_RELATIONS, relations.groups or NO_RELATIONS
        self.blocks, self.blockers = relations.blocks or NO_RELATIONS, relations.blockers or NO_RELATIONS
        self.mutes, self.ended = relations.mutes or NO_RELATIONS, relations.ended or NO_RELATIONS
        self.applied_from, self.read_at, self.is_loaded = relations.applied_from, relations.head, True
        for entry in self._entries_before_load:
            self.apply(entry)
        self._entries_before_load.clear()

    @property
    def weight(self) -> int:
        """The memory of this viewer, in relations."""
        relations: tuple[Sized, ...] = (
            self.following, self.blocks, self.blockers, self.mutes, self.groups, self.ended,
        )  # fmt: skip
        return VIEWER_WEIGHT + sum(map(len, relations))

    @property
    def sees_public_view(self) -> bool:
        """Whether this user sees the public view, which is the same for all users without special relations.

        The user has no blocks and no mutes, is not protected, and neither follows nor followed a protected user.
        """
        if self.blocks or self.blockers or self.mutes:
            return False
        protected = self._restricted_accounts.protected
        if not protected:
            return True
        if self.user_id in protected or any(who in protected for who, _ in self.ended):
            return False
        return self.following.keys().isdisjoint(protected)

    def is_or_was_reader(self, owner: str) -> bool:
        """Return whether the user is ``owner``, follows ``owner``, or followed ``owner`` earlier."""
        return owner == self.user_id or owner in self.following or any(who == owner for who, _ in self.ended)

    # Rendering.

    def is_for_own_streams(self, entry: Entry) -> bool:
        """Return whether only users' own streams have the entry today: it is for a user group or for named users."""
        if entry.audience == PUBLIC_AUDIENCE or entry.audience_owner is not None:
            return False
        return not self._restricted_accounts.is_public_today(entry)

    def render_if_visible(self, entry: Entry, *, own_stream: bool = False) -> Entry | None:
        """Return the entry as this user may see it today, None if it is hidden from this user.

        If only the author of the quoted original is hidden, the entry comes without the original. A user gets the own
        `unfollow` of a protected user and, on the own stream (``own_stream``), each other `follow` and `unfollow` that
        names the user. The card of a user whose account was deleted is never shown.
        """
        if not self._is_in_audience(entry):
            return None
        gone = self._restricted_accounts.gone
        if gone and entry.kind in CARD_KINDS and not gone.isdisjoint(entry.event.user_ids):
            return None
        context_facts = self._context_facts(entry, own_stream=own_stream)
        # The end of an account is told also of one that is suspended, as each deleted one is.
        at_ms = entry.position.ms if entry.kind == "user_delete" else TODAY_MS
        return without_hidden(entry, self._hidden_users(entry, at_ms, context_facts))

    def render_today(self, entry: Entry) -> Entry | None:
        """Return the entry as this user's streams without a private view show it, None if it is hidden.

        A `delete` or `uncomment` is shown if its status or comment was ever visible to this user. Entries for a user
        group or named users are hidden: only the user's own stream has them.
        """
        if self.is_for_own_streams(entry):
            return None
        if entry.is_removal:
            return self.render_removal(entry) if self.render_before_removal(entry) is not None else None
        return self.render_if_visible(entry)

    def render_removal(self, entry: Entry, *, own_stream: bool = False) -> Entry:
        """Return a `delete` or `uncomment`, or an `edit` that has only ids, as this user may see it.

        Call it only if the user was sent the removed status or comment, or could see it. An `uncomment` whose status is
        hidden now keeps only its ids. The `delete` of a quote contains the original only if this user could see the
        original when the quote was written.
        """
        if entry.kind != "uncomment":
            whole = entry.quoted_author is None
            return entry if whole else self.render_before_removal(entry) or entry.without_original()
        return entry if self.render_if_visible(entry, own_stream=own_stream) is not None else entry.without_status()

    def render_before_removal(self, entry: Entry) -> Entry | None:
        """Return the entry as this user could see it before its status or comment was removed, None if never.

        This is the time from the writing of the status or comment up to the entry. Blocks and mutes that ended in it do
        not count: only today's and their begin are known. Of a follow or a membership its end is known, too.
        """
        written_ms = created_ms(int(entry.subject_id or 0))
        if not self._was_in_audience(entry, written_ms):
            return None
        return without_hidden(
            entry, self._hidden_users(entry, written_ms, self._context_facts(entry, own_stream=False))
        )

    def _hidden_users(self, entry: Entry, at_ms: int, context_facts: int) -> list[str]:
        return [uid for uid in entry.actors if not _IS_SHOWN[self._relation_facts(uid, at_ms) | context_facts]]

    def _is_in_audience(self, entry: Entry) -> bool:
        """Return whether the entry is addressed to this user today.

        An entry for followers counts as addressed to everybody, because other checks hide it from users who do not
        follow.
        """
        if entry.audience == PUBLIC_AUDIENCE or entry.audience_owner is not None:
            return True
        group = entry.audience_group
        if group is None:
            return self.user_id in entry.audience_users or self._restricted_accounts.is_public_today(entry)
        if entry.kind == "group_delete":  # it ended the memberships
            return group in self.groups or self._was_in_audience(entry, entry.position.ms)
        is_own_change = entry.kind in {"group_join", "group_leave", "group_create"}
        return group in self.groups or (is_own_change and entry.event.author == self.user_id)

    def _was_in_audience(self, entry: Entry, begin_ms: int) -> bool:
        """Return whether the user was in the entry's audience at some time from ``begin_ms`` up to the entry."""
        if entry.audience == PUBLIC_AUDIENCE or entry.audience_owner == self.user_id:
            return True
        relation, other = self.following, entry.audience_owner
        if other is None:
            relation, other = self.groups, entry.audience_group
        if other is None:
            return self.user_id in entry.audience_users
        spans = _overlap([(begin_ms, entry.position.ms)], self._spans(relation, other))
        open_times = entry.facts.open_times
        third = next(iter(entry.actors - {other, self.user_id}), None)
        if spans and open_times is not None and third is not None:
            opened = [(created_ms(began), TODAY_MS if end is None else created_ms(end)) for began, end in open_times]
            spans = _overlap(spans, [*opened, *self._spans(self.following, third)])
        return bool(spans)

    def _spans(self, relation: Mapping[str, int], other: str) -> list[Span]:
        """Return when the user followed ``other``, or was a member of it."""
        spans = [(began, ended) for (who, began), ended in self.ended.items() if who == other]
        return [*spans, (relation[other], TODAY_MS)] if other in relation else spans

    def _context_facts(self, entry: Entry, *, own_stream: bool) -> int:
        """Return the `VisibilityFact` bits of the entry's audience and kind, which hold for each user that it names."""
        if not self.is_for_own_streams(entry):
            kind = entry.kind
            is_own = kind == "unfollow" and entry.event.author == self.user_id
            is_about = own_stream and kind in {"follow", "unfollow"} and self.user_id in entry.actors
            return VisibilityFact.PARTICIPANT if is_own or is_about or kind in PROTECTION_KINDS else 0
        if entry.audience_group is None:
            return VisibilityFact.DIRECT_MESSAGE | VisibilityFact.PARTICIPANT
        return VisibilityFact.PRIVATE_GROUP | VisibilityFact.GROUP_MEMBER

    def _relation_facts(self, uid: str, at_ms: int) -> int:
        """Return the `VisibilityFact` bits between this user and ``uid`` at a time in ms since 1970.

        For `TODAY_MS` they also say whether ``uid`` is suspended or protected.
        """
        bits = VisibilityFact.AUTHOR if uid == self.user_id else 0
        if self.following.get(uid, NEVER_MS) < at_ms:
            bits |= VisibilityFact.FOLLOWER
        if self.blocks.get(uid, NEVER_MS) < at_ms or self.blockers.get(uid, NEVER_MS) < at_ms:
            bits |= VisibilityFact.BLOCKED
        if self.mutes and self.mutes.get(uid, NEVER_MS) < at_ms:
            bits |= VisibilityFact.MUTED
        if at_ms == TODAY_MS:
            accounts = self._restricted_accounts
            if uid in accounts.suspended:
                bits |= VisibilityFact.SUSPENDED
            if uid in accounts.protected:
                bits |= VisibilityFact.PROTECTED
        return bits

    # Changes.

    def apply(self, entry: Entry) -> None:
        """Apply an entry that changes the relations of this user. Before `load`, store the entry for `load`."""
        if not self.is_loaded:
            self._entries_before_load.append(entry)
            return
        if entry.position.n <= self.applied_from.n:
            return
        kind, author, when = entry.kind, entry.event.author or "", entry.position.ms
        if kind.startswith("group_"):
            has_ended = kind in {"group_leave", "group_delete"}
            self._set_readable("groups", entry.audience_group or "", when, has_ended=has_ended)
            return
        other = next(iter(entry.event.user_ids - {self.user_id}), "")
        began = None if kind.startswith("un") else when
        if kind in ("follow", "unfollow") and author == self.user_id:
            self._set_readable("following", other, when, has_ended=kind == "unfollow")
        elif kind in ("block", "unblock"):
            self._set_relation("blocks" if author == self.user_id else "blockers", other, began)
        elif kind in ("mute", "unmute") and author == self.user_id:
            self._set_relation("mutes", other, began)

    def _set_readable(self, relation: str, other: str, when_ms: int, *, has_ended: bool) -> None:
        """Begin or end a relation by which the user reads the statuses of ``other``, a followed user or a group."""
        began_ms = getattr(self, relation).get(other)
        self._set_relation(relation, other, None if has_ended else when_ms)
        if has_ended and began_ms is not None:
            ended = self._to_change("ended")
            ended[other, began_ms] = when_ms
            while len(ended) > MAX_ENDED:
                del ended[next(iter(ended))]

    def _set_relation(self, name: str, other: str, began_ms: int | None) -> None:
        relation = self._to_change(name)
        if began_ms is None:
            relation.pop(other, None)
        else:
            relation[other] = began_ms

    def _to_change(self, name: str) -> dict[Any, int]:
        """Return a relation by its attribute, as a dict that no other viewer shares."""
        relation = getattr(self, name)
        if relation is NO_RELATIONS:
            setattr(self, name, relation := {})
        return cast("dict[Any, int]", relation)


def _overlap(some: list[Span], others: list[Span]) -> list[Span]:
    """Return the spans that are in one of ``some`` and in one of ``others``."""
    pairs = ((max(one[0], other[0]), min(one[1], other[1])) for one in some for other in others)
    return [(begin, end) for begin, end in pairs if begin <= end]
