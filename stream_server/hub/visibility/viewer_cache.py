"""The viewers of the users who have streams on this worker. Each is read once and then changed by the log's entries."""

from collections.abc import Awaitable, Callable
from weakref import WeakValueDictionary

from stream_server.events.entry import Entry
from stream_server.events.position import Position
from stream_server.hub.visibility.account_status import AccountStatus
from stream_server.hub.visibility.viewer import RelationSnapshot, Viewer

RELATION_KINDS = frozenset({"follow", "unfollow", "block", "unblock", "mute", "unmute"})
"""Kinds of entries that change a relation between two users."""

GROUP_KINDS = frozenset({"group_create", "group_join", "group_leave", "group_delete"})
"""Kinds of entries that change who is a member of a group."""

ACCOUNT_STATUS_KINDS = frozenset({"protect", "unprotect", "suspend", "reinstate"})
"""Kinds of entries that change the status of an account."""


class ViewerCache:
    """Viewers by user id, with weak references: a viewer is dropped when no stream of its user refers to it."""

    def __init__(
        self, account_status: AccountStatus, read_relations: Callable[[str], Awaitable[RelationSnapshot]]
    ) -> None:
        self._account_status = account_status
        self._read_relations = read_relations
        self._viewers: WeakValueDictionary[str, Viewer] = WeakValueDictionary()

    def __len__(self) -> int:
        return len(self._viewers)

    async def get(self, user_id: str) -> Viewer:
        """Return the viewer of a user, and read the user's relations if it is not loaded. Raises what reading raises.

        The viewer is in the cache before it is read, so it misses no entry that is published meanwhile.
        """
        while True:
            viewer = self._viewers.get(user_id)
            if viewer is None:
                viewer = self._viewers[user_id] = Viewer(user_id, self._account_status)
            if viewer.is_loaded:
                return viewer
            relations = await self._read_relations(user_id)
            if self._viewers.get(user_id) is viewer and not viewer.is_loaded:
                viewer.load(relations)

    def is_current(self, viewer: Viewer) -> bool:
        """Return whether the viewer is still in the cache. A viewer that was dropped misses all further entries."""
        return self._viewers.get(viewer.user_id) is viewer

    def clear(self) -> None:
        """Drop all viewers, because they may have missed entries or applied lost ones.

        The next stream reads them again.
        """
        self._viewers = WeakValueDictionary()

    def forget_read_between(self, start: Position, end: Position) -> None:
        """Drop the viewers that were read between two positions, because the log lost the entries there."""
        for viewer in list(self._viewers.values()):
            if start < viewer.read_at < end:
                del self._viewers[viewer.user_id]

    def affected_by(self, entry: Entry) -> list[Viewer]:
        """Return the viewers whose sets an entry changes, or who may stop seeing the public view.

        Raises `MalformedEntry`.
        """
        if not self._viewers:
            return []
        if entry.kind in RELATION_KINDS:
            return self._find_all(entry.event.user_ids)
        if entry.kind == "group_delete":
            return self._find_group_members(entry.audience_group)
        if entry.kind in GROUP_KINDS:
            return self._find_all((entry.event.author or "",))
        return self.readers_of(entry.event.author or "") if entry.kind == "protect" else []

    def readers_of(self, owner: str) -> list[Viewer]:
        """Return the viewers who may read the posts of ``owner`` for followers.

        Scans all viewers, but is called rarely.
        """
        return [viewer for viewer in list(self._viewers.values()) if viewer.may_read_followers_only(owner)]

    def _find_all(self, user_ids: frozenset[str] | tuple[str, ...]) -> list[Viewer]:
        """Return the cached viewers of these users."""
        return [viewer for user_id in user_ids if (viewer := self._viewers.get(user_id)) is not None]

    def _find_group_members(self, group: str | None) -> list[Viewer]:
        """Return the viewers who are members of a group, and those that are not loaded and may be members."""
        return [viewer for viewer in list(self._viewers.values()) if not viewer.is_loaded or group in viewer.groups]
