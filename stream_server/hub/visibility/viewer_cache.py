"""The viewers of this worker: each read once, then changed by the entries that pass."""

from collections.abc import Awaitable, Callable
from weakref import WeakValueDictionary

from stream_server.events.entry import Entry
from stream_server.events.position import Position
from stream_server.hub.visibility.account_status import AccountStatus
from stream_server.hub.visibility.viewer import RelationSnapshot, Viewer

RELATION_KINDS = frozenset({"follow", "unfollow", "block", "unblock", "mute", "unmute"})
GROUP_KINDS = frozenset({"group_create", "group_join", "group_leave", "group_delete"})
ACCOUNT_STATUS_KINDS = frozenset({"protect", "unprotect", "suspend", "reinstate"})


class ViewerCache:
    """Viewers by their user. Who refers to one keeps it: nobody has to say that it is not needed any more."""

    def __init__(
        self, account_status: AccountStatus, read_relations: Callable[[str], Awaitable[RelationSnapshot]]
    ) -> None:
        self._account_status = account_status
        self._read_relations = read_relations
        self._viewers: WeakValueDictionary[str, Viewer] = WeakValueDictionary()

    def __len__(self) -> int:
        return len(self._viewers)

    async def get(self, user_id: str) -> Viewer:
        """The viewer of a user, read if nobody has it; raises what reading raises.

        It is here before it is read, so no entry that passes meanwhile is missed.
        """
        while True:
            viewer = self._viewers.get(user_id)
            if viewer is None:
                viewer = self._viewers[user_id] = Viewer(user_id, self._account_status)
            if viewer.is_loaded:
                return viewer
            graph = await self._read_relations(user_id)
            if self._viewers.get(user_id) is viewer and not viewer.is_loaded:
                viewer.load(graph)

    def is_current(self, viewer: Viewer) -> bool:
        """Whether this viewer has missed nothing."""
        return self._viewers.get(viewer.user_id) is viewer

    def clear(self) -> None:
        """The log does not go on: what these sets missed is unknown, so whoever comes next has them read anew."""
        self._viewers = WeakValueDictionary()

    def forget_read_between(self, start: Position, end: Position) -> None:
        """The same of those that were read from what was lost between these places, ahead of what was heard here."""
        for viewer in list(self._viewers.values()):
            if start < viewer.read_at < end:
                del self._viewers[viewer.user_id]

    def affected_by(self, entry: Entry) -> list[Viewer]:
        """Whose sets the entry changes, or whom it may make see what others do not."""
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
        """Who is shown what a user writes for followers; looks at everybody, for what happens rarely."""
        return [viewer for viewer in list(self._viewers.values()) if viewer.may_read_followers_only(owner)]

    def _find_all(self, user_ids: frozenset[str] | tuple[str, ...]) -> list[Viewer]:
        return [viewer for user_id in user_ids if (viewer := self._viewers.get(user_id)) is not None]

    def _find_group_members(self, group: str | None) -> list[Viewer]:
        return [viewer for viewer in list(self._viewers.values()) if not viewer.is_loaded or group in viewer.groups]
