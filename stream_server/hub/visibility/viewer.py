"""What one person may see in streams: the sets of the graph around them, kept at the hub's head.

All streams of a person on this worker share one object; it lives as long as one of them refers to it. It answers by
:func:`stream_server.events.visibility.decide_visibility`, from sets instead of keys: there is no second truth.
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
"""Later than all that ever was: a question about today, in the place of a time."""

NEVER_MS = TODAY_MS + 1
"""When that began which is not so."""

_IS_SHOWN = tuple(digit == str(visibility.Visibility.VISIBLE.value) for digit in visibility.visibility_table())
"""By the bits of the facts; looked up, since flags of an enum cost more than all the rest."""

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
    """What was read of a user in one step: each id with when it began (ms since 1970), and the head then."""

    @property
    def following(self) -> Mapping[str, int]: ...
    @property
    def blocks(self) -> Mapping[str, int]: ...
    @property
    def blockers(self) -> Mapping[str, int]: ...
    @property
    def mutes(self) -> Mapping[str, int]: ...
    @property
    def groups(self) -> Mapping[str, int]: ...
    @property
    def head(self) -> Position: ...


class Viewer:
    """The sets of one user. ``read_at`` is the head at which they were read: entries up to it are in them already.

    Before :meth:`load` it is empty, and keeps the entries that pass meanwhile.
    """

    __slots__ = (
        "__weakref__", "_account_status", "_entries_before_load", "blockers", "blocks", "following", "groups", "is_loaded", "mutes", "read_at",
        "user_id",
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
        """Begin with what was read, and with what has passed since."""
        self.following, self.groups = dict(relations.following), dict(relations.groups)
        self.blocks, self.blockers, self.mutes = dict(relations.blocks), dict(relations.blockers), dict(relations.mutes)
        self.read_at, self.is_loaded = relations.head, True
        for entry in self._entries_before_load:
            self.apply(entry)
        self._entries_before_load.clear()

    @property
    def sees_public_view(self) -> bool:
        """Whether nothing personal concerns this user, who is then shown what everybody is shown."""
        if self.blocks or self.blockers or self.mutes:
            return False
        protected = self._account_status.protected
        return not protected or (self.user_id not in protected and self.following.keys().isdisjoint(protected))

    def may_read_followers_only(self, owner: str, at_ms: int = TODAY_MS) -> bool:
        """Whether what ``owner`` writes for followers is for this user, at ``at_ms`` as far as is still known."""
        return owner == self.user_id or self.following.get(owner, NEVER_MS) <= at_ms

    # What may be seen.

    def render_if_visible(self, entry: Entry, *, own_stream: bool = False) -> Entry | None:
        """The entry as this user may see it today: whole, without what it quotes, or not at all.

        On the stream of what concerns one (``own_stream``) whoever follows one is told, protected or not.
        """
        if not self._is_in_audience(entry, TODAY_MS):
            return None
        return _without_hidden(
            entry, self._hidden_users(entry, TODAY_MS, self._context_facts(entry, own_stream=own_stream))
        )

    def render_today(self, entry: Entry) -> Entry | None:
        """For a stream that remembers nothing: :meth:`render_if_visible`, and what takes back what :meth:`render_at_post_time` this user."""
        if entry.audience != PUBLIC_AUDIENCE and entry.audience_owner is None:
            return None
        if entry.kind in CREATION_KINDS:
            return self.render_removal(entry) if self.render_at_post_time(entry) is not None else None
        return self.render_if_visible(entry)

    def render_removal(self, entry: Entry, *, own_stream: bool = False) -> Entry:
        """What takes something back that was shown to this user, without the status around it if that is hidden now.

        A quote is taken back as it was shown; where that is forgotten, without its original.
        """
        if entry.kind == "delete":
            return entry if entry.quoted_author is None else self.render_at_post_time(entry) or entry.without_original()
        return entry if self.render_if_visible(entry, own_stream=own_stream) is not None else entry.without_status()

    def render_at_post_time(self, entry: Entry) -> Entry | None:
        """The status or the comment that an entry brings or takes back, as it was shown to this user at the time.

        As far as is still known: what began since then is not counted, what ended since then is forgotten.
        """
        then_ms = created_ms(int(entry.subject_id or 0))
        if not self._is_in_audience(entry, then_ms):
            return None
        return _without_hidden(entry, self._hidden_users(entry, then_ms, self._context_facts(entry, own_stream=False)))

    def _hidden_users(self, entry: Entry, at_ms: int, context_facts: int) -> list[str]:
        """Those shown by the entry whom this user is not to see."""
        return [uid for uid in entry.actors if not _IS_SHOWN[self._relation_facts(uid, at_ms) | context_facts]]

    def _is_in_audience(self, entry: Entry, at_ms: int) -> bool:
        """Whether the audience of the entry has this user in it."""
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
        """The facts that come from where it was said, not from who said it."""
        if entry.audience == PUBLIC_AUDIENCE:
            told = own_stream and entry.kind in ("follow", "unfollow") and self.user_id in entry.actors
            return _PARTY if told else 0
        return (
            0
            if entry.audience_owner is not None
            else _GROUP_MEMBER_FACTS
            if entry.audience_group is not None
            else _MESSAGE_PARTY_FACTS
        )

    def _relation_facts(self, uid: str, at_ms: int) -> int:
        """The facts between this user and another; standing is one of today's only, since audiences keep the past."""
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

    # What changes it.

    def apply(self, entry: Entry) -> None:
        """Change as an entry says that concerns this user."""
        if not self.is_loaded:
            self._entries_before_load.append(entry)
        elif entry.position.n > self.read_at.n:
            self._apply_change(entry)

    def _apply_change(self, entry: Entry) -> None:
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
    """The entry without those who must be hidden: a quote can do without its original, and nothing else can."""
    if not hidden_users:
        return entry
    return (
        entry.without_original()
        if hidden_users == [entry.quoted_author] and entry.quoted_author != entry.event.author
        else None
    )


def _set_relation(relation: dict[str, int], user_id: str, began_ms: int | None) -> None:
    if began_ms is None:
        relation.pop(user_id, None)
    else:
        relation[user_id] = began_ms
