"""What one user may see in streams: the user's relations as sets, kept at the hub's head.

All streams of a user on this worker share one object. It lives as long as one of them refers to it. It decides by the
table of `stream_server.events.visibility.decide_visibility`, which the Lua scripts use too.
"""

from collections.abc import Mapping
from typing import Protocol

from stream_server.events import visibility
from stream_server.events.entry import Entry
from stream_server.events.kinds import CREATION_KINDS, PUBLIC_AUDIENCE
from stream_server.events.position import LOG_START, Position, created_ms
from stream_server.events.visibility import VisibilityFact
from stream_server.hub.visibility.account_status import AccountStatus

TODAY_MS = 1 << 62
"""A time in ms later than every real one. As the time of a question it means "today"."""

NEVER_MS = TODAY_MS + 1
"""A time in ms later than `TODAY_MS`: the begin of a relation that does not exist."""

_IS_SHOWN = tuple(digit == str(visibility.Visibility.VISIBLE.value) for digit in visibility.visibility_table())
"""Whether an author is visible, by the bits of the facts. A table of plain ints, because enum flags are slow."""

_OWN, _FOLLOWER, _BLOCKED, _MUTED = (
    VisibilityFact.AUTHOR.value,
    VisibilityFact.FOLLOWER.value,
    VisibilityFact.BLOCKED.value,
    VisibilityFact.MUTED.value,
)
_SUSPENDED, _PROTECTED = VisibilityFact.SUSPENDED.value, VisibilityFact.PROTECTED.value
_GROUP_MEMBER_FACTS, _MESSAGE_PARTY_FACTS = (
    (VisibilityFact.PRIVATE_GROUP | VisibilityFact.GROUP_MEMBER).value,
    (VisibilityFact.DIRECT_MESSAGE | VisibilityFact.PARTICIPANT).value,
)
_PARTY = VisibilityFact.PARTICIPANT.value


class RelationSnapshot(Protocol):
    """A user's relations, read in one step: ids with the begin of each relation (ms since 1970), and the head."""

    @property
    def following(self) -> Mapping[str, int]:
        """The users whom the user follows."""

    @property
    def blocks(self) -> Mapping[str, int]:
        """The users whom the user blocks."""

    @property
    def blockers(self) -> Mapping[str, int]:
        """The users who block the user."""

    @property
    def mutes(self) -> Mapping[str, int]:
        """The users whom the user mutes."""

    @property
    def groups(self) -> Mapping[str, int]:
        """The groups of which the user is a member."""

    @property
    def head(self) -> Position:
        """The head of the log when they were read."""


class Viewer:
    """The relations of one user. Until `load` the sets are empty, and entries that arrive meanwhile are kept.

    Attributes:
        user_id: Id of the user.
        following: Followed users, with the begin of the relation in ms since 1970, as in the next four.
        blocks: Users whom the user blocks.
        blockers: Users who block the user.
        mutes: Users whom the user mutes.
        groups: Groups of which the user is a member.
        read_at: Head at which the relations were read. Earlier entries are in them already.
        is_loaded: Whether `load` was called.
    """

    __slots__ = (
        "__weakref__", "_account_status", "_entries_before_load", "blockers", "blocks", "following", "groups",
        "is_loaded", "mutes", "read_at", "user_id",
    )  # fmt: skip

    def __init__(self, user_id: str, account_status: AccountStatus) -> None:
        self.user_id = user_id
        self.following: dict[str, int] = {}
        self.blocks: dict[str, int] = {}
        self.blockers: dict[str, int] = {}
        self.mutes: dict[str, int] = {}
        self.groups: dict[str, int] = {}
        self.read_at = LOG_START
        self.is_loaded = False
        self._account_status = account_status
        self._entries_before_load: list[Entry] = []

    def load(self, relations: RelationSnapshot) -> None:
        """Set the relations that were read, and apply the entries that arrived since then."""
        self.following, self.groups = dict(relations.following), dict(relations.groups)
        self.blocks, self.blockers, self.mutes = dict(relations.blocks), dict(relations.blockers), dict(relations.mutes)
        self.read_at, self.is_loaded = relations.head, True
        for entry in self._entries_before_load:
            self.apply(entry)
        self._entries_before_load.clear()

    @property
    def sees_public_view(self) -> bool:
        """Whether this user sees exactly the public view.

        True without blocks and mutes, if neither the user nor any followed user is protected.
        """
        if self.blocks or self.blockers or self.mutes:
            return False
        protected = self._account_status.protected
        return not protected or (self.user_id not in protected and self.following.keys().isdisjoint(protected))

    def may_read_followers_only(self, owner: str, at_ms: int = TODAY_MS) -> bool:
        """Return whether the user may read ``owner``'s posts for followers. ``at_ms`` asks about a time in the past.

        The past is known only as far as present relations tell: a relation that has ended is forgotten.
        """
        return owner == self.user_id or self.following.get(owner, NEVER_MS) <= at_ms

    # Rendering.

    def render_if_visible(self, entry: Entry, *, own_stream: bool = False) -> Entry | None:
        """Return the entry as this user may see it today: complete, without its original, or None if it is hidden.

        On the user's own stream (``own_stream``) a follow of the user is shown even if the follower is protected.
        """
        if not self._is_in_audience(entry, TODAY_MS):
            return None
        return _without_hidden(
            entry, self._hidden_users(entry, TODAY_MS, self._context_facts(entry, own_stream=own_stream))
        )

    def render_today(self, entry: Entry) -> Entry | None:
        """Return the entry for a stream without a private view, None if it is hidden.

        A removal is shown if the removed status or comment was visible to this user when it was written. Entries for
        a group or for certain users are hidden: only the user's own stream has them.
        """
        if entry.audience != PUBLIC_AUDIENCE and entry.audience_owner is None:
            return None
        if entry.kind in CREATION_KINDS:
            return self.render_removal(entry) if self.render_at_post_time(entry) is not None else None
        return self.render_if_visible(entry)

    def render_removal(self, entry: Entry, *, own_stream: bool = False) -> Entry:
        """Return a removal for a user who was shown the removed status or comment.

        An `uncomment` whose status is hidden now keeps only its ids. The delete of a quote is returned in the form in
        which the quote was shown; if that is unknown, without its original.
        """
        if entry.kind == "delete":
            return entry if entry.quoted_author is None else self.render_at_post_time(entry) or entry.without_original()
        return entry if self.render_if_visible(entry, own_stream=own_stream) is not None else entry.without_status()

    def render_at_post_time(self, entry: Entry) -> Entry | None:
        """Return the entry as this user could see its status or comment when it was written, None if it was hidden.

        Relations that began later are ignored. Relations that have ended since then do not count either.
        """
        then_ms = created_ms(int(entry.subject_id or 0))
        if not self._is_in_audience(entry, then_ms):
            return None
        return _without_hidden(entry, self._hidden_users(entry, then_ms, self._context_facts(entry, own_stream=False)))

    def _hidden_users(self, entry: Entry, at_ms: int, context_facts: int) -> list[str]:
        """Return the users that the entry shows and that are hidden from this user."""
        return [uid for uid in entry.actors if not _IS_SHOWN[self._relation_facts(uid, at_ms) | context_facts]]

    def _is_in_audience(self, entry: Entry, at_ms: int) -> bool:
        """Return whether this user belongs to the audience of the entry, at a time."""
        if entry.audience == PUBLIC_AUDIENCE:
            return True
        if (owner := entry.audience_owner) is not None:
            return self.may_read_followers_only(owner, at_ms)
        if (group := entry.audience_group) is not None:
            return self.groups.get(group, NEVER_MS) <= at_ms or (
                entry.kind in ("group_join", "group_leave", "group_create") and entry.event.author == self.user_id
            )
        return self.user_id in entry.audience_users

    def _context_facts(self, entry: Entry, *, own_stream: bool) -> int:
        """Return the visibility facts that come from the audience of the entry, as bits."""
        if entry.audience == PUBLIC_AUDIENCE:
            is_own_follow = own_stream and entry.kind in ("follow", "unfollow") and self.user_id in entry.actors
            return _PARTY if is_own_follow else 0
        return (
            0
            if entry.audience_owner is not None
            else _GROUP_MEMBER_FACTS
            if entry.audience_group is not None
            else _MESSAGE_PARTY_FACTS
        )

    def _relation_facts(self, uid: str, at_ms: int) -> int:
        """Return the facts between this user and another, as bits.

        Suspension and protection count only today: for the past, the audience of the entry holds the answer.
        """
        bits = _OWN if uid == self.user_id else 0
        if self.following.get(uid, NEVER_MS) <= at_ms:
            bits |= _FOLLOWER
        if self.blocks.get(uid, NEVER_MS) <= at_ms or self.blockers.get(uid, NEVER_MS) <= at_ms:
            bits |= _BLOCKED
        if self.mutes.get(uid, NEVER_MS) <= at_ms:
            bits |= _MUTED
        if at_ms == TODAY_MS:
            if uid in self._account_status.suspended:
                bits |= _SUSPENDED
            if uid in self._account_status.protected:
                bits |= _PROTECTED
        return bits

    # Changes.

    def apply(self, entry: Entry) -> None:
        """Apply an entry that changes the relations of this user. Before `load`, keep it for later."""
        if not self.is_loaded:
            self._entries_before_load.append(entry)
        elif entry.position.n > self.read_at.n:
            self._apply_change(entry)

    def _apply_change(self, entry: Entry) -> None:
        """Change the set that belongs to the entry's kind."""
        kind, author, when = entry.kind, entry.event.author or "", entry.position.ms
        if kind.startswith("group_"):
            _set_relation(
                self.groups, entry.audience_group or "", None if kind in ("group_leave", "group_delete") else when
            )
            return
        other = next(iter(entry.event.user_ids - {self.user_id}), "")
        began = None if kind.startswith("un") else when
        if kind in ("follow", "unfollow") and author == self.user_id:
            _set_relation(self.following, other, began)
        elif kind in ("block", "unblock"):
            _set_relation(self.blocks if author == self.user_id else self.blockers, other, began)
        elif kind in ("mute", "unmute") and author == self.user_id:
            _set_relation(self.mutes, other, began)


def _without_hidden(entry: Entry, hidden_users: list[str]) -> Entry | None:
    """Return the entry without the hidden users, None if that is impossible. Only a quote can be shown in part."""
    if not hidden_users:
        return entry
    return (
        entry.without_original()
        if hidden_users == [entry.quoted_author] and entry.quoted_author != entry.event.author
        else None
    )


def _set_relation(relation: dict[str, int], user_id: str, began_ms: int | None) -> None:
    """Set the begin of a relation in ms. None removes the relation."""
    if began_ms is None:
        relation.pop(user_id, None)
    else:
        relation[user_id] = began_ms
