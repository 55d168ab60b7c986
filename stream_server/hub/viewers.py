"""The viewers of this worker: each read once, then changed by the entries that pass."""

from collections.abc import Awaitable, Callable
from weakref import WeakValueDictionary

from stream_server.events import Entry, Position
from stream_server.hub.standing import Standing
from stream_server.hub.viewer import Graph, Viewer

GRAPH_KINDS = frozenset({"follow", "unfollow", "block", "unblock", "mute", "unmute"})
GROUP_KINDS = frozenset({"group_create", "group_join", "group_leave", "group_delete"})
STANDING_KINDS = frozenset({"protect", "unprotect", "suspend", "reinstate"})


class Viewers:
    """Viewers by their user. Who refers to one keeps it: nobody has to say that it is not needed any more."""

    def __init__(self, standing: Standing, read: Callable[[str], Awaitable[Graph]]) -> None:
        self._standing = standing
        self._read = read
        self._here: WeakValueDictionary[str, Viewer] = WeakValueDictionary()

    def __len__(self) -> int:
        return len(self._here)

    async def get(self, user_id: str) -> Viewer:
        """The viewer of a user, read if nobody has it; raises what reading raises.

        It is here before it is read, so no entry that passes meanwhile is missed.
        """
        while True:
            viewer = self._here.get(user_id)
            if viewer is None:
                viewer = self._here[user_id] = Viewer(user_id, self._standing)
            if viewer.loaded:
                return viewer
            graph = await self._read(user_id)
            if self._here.get(user_id) is viewer and not viewer.loaded:
                viewer.load(graph)

    def trusts(self, viewer: Viewer) -> bool:
        """Whether this viewer has missed nothing."""
        return self._here.get(viewer.user_id) is viewer

    def forget(self) -> None:
        """The log does not go on: what these sets missed is unknown, so whoever comes next has them read anew."""
        self._here = WeakValueDictionary()

    def forget_read_between(self, start: Position, end: Position) -> None:
        """The same of those that were read from what was lost between these places, ahead of what was heard here."""
        for viewer in list(self._here.values()):
            if start < viewer.known < end:
                del self._here[viewer.user_id]

    def concerned(self, entry: Entry) -> list[Viewer]:
        """Whose sets the entry changes, or whom it may make see what others do not."""
        if not self._here:
            return []
        if entry.kind in GRAPH_KINDS:
            return self._of(entry.event.people)
        if entry.kind == "group_delete":
            return self._in_group(entry.group)
        if entry.kind in GROUP_KINDS:
            return self._of((entry.event.author or "",))
        return self.trusted_by(entry.event.author or "") if entry.kind == "protect" else []

    def trusted_by(self, owner: str) -> list[Viewer]:
        """Who is shown what a user writes for followers; looks at everybody, for what happens rarely."""
        return [viewer for viewer in list(self._here.values()) if viewer.trusted_by(owner)]

    def _of(self, users: frozenset[str] | tuple[str, ...]) -> list[Viewer]:
        return [viewer for user_id in users if (viewer := self._here.get(user_id)) is not None]

    def _in_group(self, group: str | None) -> list[Viewer]:
        return [viewer for viewer in list(self._here.values()) if not viewer.loaded or group in viewer.groups]
