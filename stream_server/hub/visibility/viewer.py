"""The relations of one user as sets, kept at the hub's head. They decide what the user may see in streams.

All streams of a user in this process share one viewer. It decides by the table of
`stream_server.events.visibility.decide_visibility`, which the Lua scripts use too.
"""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Protocol
from weakref import WeakValueDictionary

from stream_server.events import visibility
from stream_server.events.entry import Entry
from stream_server.events.kinds import CREATION_KINDS, PUBLIC_AUDIENCE
from stream_server.events.position import LOG_START, Position, created_ms
from stream_server.events.visibility import VisibilityFact
from stream_server.hub.visibility.account_status import AccountStatus
from stream_server.hub.visibility.sent_subjects import SentSubjects

RELATION_KINDS = frozenset({"follow", "unfollow", "block", "unblock", "mute", "unmute"})
"""Kinds of entries that change a relation between two users."""

GROUP_KINDS = frozenset({"group_create", "group_join", "group_leave", "group_delete"})
"""Kinds of entries that change who is a member of a group."""

ACCOUNT_STATUS_KINDS = frozenset({"protect", "unprotect", "suspend", "reinstate"})
"""Kinds of entries that change the status of an account."""

TODAY_MS = 1 << 62
"""A time in ms later than every real one. As the time of a question it means "today"."""

NEVER_MS = TODAY_MS + 1
"""A time in ms later than `TODAY_MS`: the begin of a relation that does not exist."""

_IS_SHOWN = tuple(digit == str(visibility.Visibility.VISIBLE.value) for digit in visibility.visibility_table())
"""Whether an author is visible, by the bits of the facts. A table of plain ints, because enum flags are slow."""

# The bits of the facts, in the order in which `VisibilityFact` lists them.
_OWN, _FOLLOWER, _BLOCKED, _MUTED, _SUSPENDED, _PROTECTED, _GROUP, _MEMBER, _MESSAGE, _PARTY = map(int, VisibilityFact)
_GROUP_MEMBER_FACTS, _MESSAGE_PARTY_FACTS = _GROUP | _MEMBER, _MESSAGE | _PARTY


MAX_KEPT_RELATIONS = 100_000
"""Number of relations in the viewers that are kept for users without a stream, at most about 20 MB."""

VIEWER_WEIGHT = 10
"""Number of relations that take as much memory as a viewer without relations."""


class RelationSnapshot(Protocol):
    """A user's relations. Each maps ids to the ms since 1970 when it began. The viewer takes over the dicts.

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
    def applied_from(self) -> Position: ...

    @property
    def head(self) -> Position: ...


class Viewer:
    """The relations of one user. Each relation maps ids to the time at which it began, in ms since 1970.

    The relations are empty until `load` sets them. `apply` changes them; changes that come before `load` are kept and
    applied by it. ``blockers`` are the users who block this user, ``groups`` are this user's user groups. ``read_at``
    is the log's head when the relations had been read: they are exact once the hub has reached it. ``applied_from`` is
    the head before that. `apply` skips the entries up to there.
    ``sent_subjects`` is what the streams of this process were sent.
    """

    __slots__ = (
        "__weakref__", "_account_status", "_entries_before_load", "applied_from", "blockers", "blocks", "following",
        "groups", "is_loaded", "mutes", "read_at", "sent_subjects", "user_id",
    )  # fmt: skip

    def __init__(self, user_id: str, account_status: AccountStatus, sent_subjects: SentSubjects | None = None) -> None:
        self.user_id = user_id
        self.sent_subjects = SentSubjects() if sent_subjects is None else sent_subjects
        self.following: dict[str, int] = {}
        self.blocks: dict[str, int] = {}
        self.blockers: dict[str, int] = {}
        self.mutes: dict[str, int] = {}
        self.groups: dict[str, int] = {}
        self.applied_from = self.read_at = LOG_START
        self.is_loaded = False
        self._account_status = account_status
        self._entries_before_load: list[Entry] = []

    def load(self, relations: RelationSnapshot) -> None:
        """Set the relations that were read from the store, and apply the entries that `apply` stored meanwhile."""
        self.following, self.groups = relations.following, relations.groups
        self.blocks, self.blockers, self.mutes = relations.blocks, relations.blockers, relations.mutes
        self.applied_from, self.read_at, self.is_loaded = relations.applied_from, relations.head, True
        for entry in self._entries_before_load:
            self.apply(entry)
        self._entries_before_load.clear()

    @property
    def weight(self) -> int:
        """The memory of this viewer, in relations."""
        relations = (self.following, self.blocks, self.blockers, self.mutes, self.groups)
        return VIEWER_WEIGHT + sum(map(len, relations))

    @property
    def sees_public_view(self) -> bool:
        """Whether this user sees the public view: no blocks, no mutes, not protected, and follows no protected user."""
        if self.blocks or self.blockers or self.mutes:
            return False
        protected = self._account_status.protected
        return not protected or (self.user_id not in protected and self.following.keys().isdisjoint(protected))

    def may_read_followers_only(self, owner: str, at_ms: int = TODAY_MS) -> bool:
        """Return whether the user is ``owner``, or a follower of ``owner`` now who was one at ``at_ms`` already."""
        return owner == self.user_id or self.following.get(owner, NEVER_MS) <= at_ms

    # Rendering.

    def render_if_visible(self, entry: Entry, *, own_stream: bool = False) -> Entry | None:
        """Return the entry as this user may see it today, None if it is hidden from this user.

        If only the author of the quoted original is hidden, the entry comes without the original. On the user's own
        stream (``own_stream``) a `follow` of or by the user is shown even if the other user is protected.
        """
        if not self._is_in_audience(entry, TODAY_MS):
            return None
        context_facts = self._context_facts(entry, own_stream=own_stream)
        return _without_hidden(entry, self._hidden_users(entry, TODAY_MS, context_facts))

    def render_today(self, entry: Entry) -> Entry | None:
        """Return the entry as this user's streams without a private view show it, None if it is hidden.

        A `delete` or `uncomment` is shown if its status or comment was visible to this user when it was written.
        Entries for a user group or named users are hidden: only the user's own stream has them.
        """
        if entry.audience != PUBLIC_AUDIENCE and entry.audience_owner is None:
            return None
        if entry.kind in CREATION_KINDS:
            return self.render_removal(entry) if self.render_at_post_time(entry) is not None else None
        return self.render_if_visible(entry)

    def render_removal(self, entry: Entry, *, own_stream: bool = False) -> Entry:
        """Return a `delete` or `uncomment` as this user may see it.

        Call it only if the user was sent the removed status or comment, or could see it when it was written. An
        `uncomment` whose status is hidden now keeps only its ids. The `delete` of a quote contains the original only if
        this user could see the original when the quote was written.
        """
        if entry.kind == "delete":
            return entry if entry.quoted_author is None else self.render_at_post_time(entry) or entry.without_original()
        return entry if self.render_if_visible(entry, own_stream=own_stream) is not None else entry.without_status()

    def render_at_post_time(self, entry: Entry) -> Entry | None:
        """Return the entry as this user could see it when its status was written, None if it was hidden then.

        Relations that have ended since then do not count: only today's relations and their begin are known.
        """
        then_ms = created_ms(int(entry.subject_id or 0))
        if not self._is_in_audience(entry, then_ms):
            return None
        return _without_hidden(entry, self._hidden_users(entry, then_ms, self._context_facts(entry, own_stream=False)))

    def _hidden_users(self, entry: Entry, at_ms: int, context_facts: int) -> list[str]:
        return [uid for uid in entry.actors if not _IS_SHOWN[self._relation_facts(uid, at_ms) | context_facts]]

    def _is_in_audience(self, entry: Entry, at_ms: int) -> bool:
        if entry.audience == PUBLIC_AUDIENCE:
            return True
        if (owner := entry.audience_owner) is not None:
            return self.may_read_followers_only(owner, at_ms)
        if (group := entry.audience_group) is not None:
            is_own_change = entry.kind in {"group_join", "group_leave", "group_create"}
            is_own_change = is_own_change and entry.event.author == self.user_id
            return is_own_change or self.groups.get(group, NEVER_MS) <= at_ms
        return self.user_id in entry.audience_users

    def _context_facts(self, entry: Entry, *, own_stream: bool) -> int:
        """Return the `VisibilityFact` bits of the entry's audience and kind, which hold for each user that it names."""
        if entry.audience == PUBLIC_AUDIENCE:
            is_own_follow = own_stream and entry.kind in ("follow", "unfollow") and self.user_id in entry.actors
            return _PARTY if is_own_follow else 0
        if entry.audience_owner is not None:
            return 0
        return _MESSAGE_PARTY_FACTS if entry.audience_group is None else _GROUP_MEMBER_FACTS

    def _relation_facts(self, uid: str, at_ms: int) -> int:
        """Return the `VisibilityFact` bits between this user and ``uid``. `TODAY_MS` adds suspension and protection."""
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
        """Apply an entry that changes the relations of this user. Before `load`, store the entry for `load`."""
        if not self.is_loaded:
            self._entries_before_load.append(entry)
        elif entry.position.n > self.applied_from.n:
            self._apply_change(entry)

    def _apply_change(self, entry: Entry) -> None:
        kind, author, when = entry.kind, entry.event.author or "", entry.position.ms
        if kind.startswith("group_"):
            ended = kind in {"group_leave", "group_delete"}
            _set_relation(self.groups, entry.audience_group or "", None if ended else when)
            return
        other = next(iter(entry.event.user_ids - {self.user_id}), "")
        began = None if kind.startswith("un") else when
        if kind in ("follow", "unfollow") and author == self.user_id:
            _set_relation(self.following, other, began)
        elif kind in ("block", "unblock"):
            _set_relation(self.blocks if author == self.user_id else self.blockers, other, began)
        elif kind in ("mute", "unmute") and author == self.user_id:
            _set_relation(self.mutes, other, began)


class ViewerCache:
    """The viewers of the users who have streams in this process, and of those who had one lately.

    The log's entries keep all of them current. So a user who returns is not read again. A viewer is dropped when no
    stream refers to it and ``max_kept_relations`` are kept for other users who were here later.
    """

    def __init__(
        self, account_status: AccountStatus, read_relations: Callable[[str], Awaitable[RelationSnapshot]],
        max_kept_relations: int = MAX_KEPT_RELATIONS,
    ) -> None:  # fmt: skip
        self.sent_subjects = SentSubjects()
        self._account_status = account_status
        self._read_relations = read_relations
        self._max_kept_relations = max_kept_relations
        self._viewers: WeakValueDictionary[str, Viewer] = WeakValueDictionary()
        self._reads: dict[str, asyncio.Future[Viewer | None]] = {}
        self._kept: dict[str, tuple[Viewer, int]] = {}
        self._kept_relations = 0

    def __len__(self) -> int:
        return len(self._viewers)

    @property
    def kept_count(self) -> int:
        """Number of viewers that are kept whether or not a stream refers to them."""
        return len(self._kept)

    def get_loaded(self, user_id: str) -> Viewer | None:
        """Return the viewer of a user if the user's relations are loaded, otherwise None."""
        viewer = self._viewers.get(user_id)
        if viewer is None or not viewer.is_loaded:
            return None
        self._keep(viewer)
        return viewer

    async def get(self, user_id: str) -> Viewer:
        """Return the viewer of a user, and read the user's relations first if they are not loaded.

        The cache has the viewer before its relations are read, so it misses no entry that is published meanwhile.
        """
        while True:
            loaded = self.get_loaded(user_id)
            if loaded is not None:
                return loaded
            read = self.start_reading(user_id)
            viewer = read.result() if read.done() else await asyncio.shield(read)
            if viewer is not None and self.is_current(viewer):
                self._keep(viewer)
                return viewer

    def start_reading(self, user_id: str) -> "asyncio.Future[Viewer | None]":
        """Begin to read the relations of a user for all callers that ask meanwhile. No caller may cancel the future.

        The cache does not keep the viewer until :meth:`get` returns it. The future gives None if the relations must be
        read again.
        """
        read = self._reads.get(user_id)
        if read is None:
            viewer = self._viewers.get(user_id)
            if viewer is None:
                viewer = self._viewers[user_id] = Viewer(user_id, self._account_status, self.sent_subjects)
            read = self._reads[user_id] = asyncio.get_running_loop().create_future()
            relations = asyncio.ensure_future(self._read_relations(user_id))
            if relations.done():
                self._end_read(viewer, read, relations)
            else:
                relations.add_done_callback(partial(self._end_read, viewer, read))
        return read

    def _end_read(
        self, viewer: Viewer, read: "asyncio.Future[Viewer | None]", relations: "asyncio.Future[RelationSnapshot]"
    ) -> None:
        del self._reads[viewer.user_id]
        is_valid = not relations.cancelled() and self.is_current(viewer)
        error = None if relations.cancelled() else relations.exception()
        if is_valid and error is None:
            try:
                viewer.load(relations.result())
            except Exception as invalid:  # noqa: BLE001 - it belongs to those who wait
                error = invalid
        if error is None:
            read.set_result(viewer if is_valid else None)
        else:
            read.set_exception(error)
            read.exception()  # else asyncio logs the error if nobody waits

    def _keep(self, viewer: Viewer) -> None:
        """Keep a viewer as the one that was used last. Let go of those that were unused for longest."""
        kept = self._kept
        known = kept.pop(viewer.user_id, None)
        weight = viewer.weight if known is None else known[1]
        kept[viewer.user_id] = viewer, weight
        if known is None:
            self._kept_relations += weight
            while self._kept_relations > self._max_kept_relations:
                self._kept_relations -= kept.pop(next(iter(kept)))[1]

    def is_current(self, viewer: Viewer) -> bool:
        """Return whether the viewer is still in the cache, so that it gets all changes of its user's relations."""
        return self._viewers.get(viewer.user_id) is viewer

    def clear(self) -> None:
        """Drop all viewers: their relations may be wrong after a loss of entries. Later streams read new ones."""
        self._viewers = WeakValueDictionary()
        self._kept.clear()
        self._kept_relations = 0

    def forget_read_between(self, start: Position, end: Position) -> None:
        """Drop the viewers whose relations may have been read between two positions, where the log lost its entries.

        Those that are still being read are dropped, too: some of their pages may show a lost entry.
        """
        for viewer in list(self._viewers.values()):
            if not viewer.is_loaded or (start < viewer.read_at and viewer.applied_from < end):
                del self._viewers[viewer.user_id]
                self._kept_relations -= self._kept.pop(viewer.user_id, (viewer, 0))[1]

    def affected_by(self, entry: Entry) -> list[Viewer]:
        """Return the viewers whose relations or view the entry may change. Raises `MalformedEntry` if undecodable."""
        if not self._viewers:
            return []
        if entry.kind == "group_delete":
            group = entry.audience_group  # a viewer that is not loaded may be a member
            return [viewer for viewer in list(self._viewers.values()) if not viewer.is_loaded or group in viewer.groups]
        if entry.kind in RELATION_KINDS | GROUP_KINDS:
            user_ids = entry.event.user_ids if entry.kind in RELATION_KINDS else {entry.event.author or ""}
            return [viewer for user_id in user_ids if (viewer := self._viewers.get(user_id)) is not None]
        return self.readers_of(entry.event.author or "") if entry.kind == "protect" else []

    def readers_of(self, owner: str) -> list[Viewer]:
        """Return the `Viewer` objects of ``owner`` and of the followers of ``owner``. Scans all; it may take long."""
        return [viewer for viewer in list(self._viewers.values()) if viewer.may_read_followers_only(owner)]


def _without_hidden(entry: Entry, hidden_users: list[str]) -> Entry | None:
    """Return the entry, without its original if only the quoted author is hidden. None if another user is hidden."""
    if not hidden_users:
        return entry
    is_quoted_alone = hidden_users == [entry.quoted_author] and entry.quoted_author != entry.event.author
    return entry.without_original() if is_quoted_alone else None


def _set_relation(relation: dict[str, int], user_id: str, began_ms: int | None) -> None:
    if began_ms is None:
        relation.pop(user_id, None)
    else:
        relation[user_id] = began_ms
