"""The rules of visibility, written a second time, independently of the server's."""

from tests.property.model.state import Refused, State, Status

HIDDEN, QUIET, SHOWN = 0, 1, 2


class Access:
    """The rules of visibility over a state."""

    def __init__(self, ground: State) -> None:
        self._state = ground

    def blocked(self, one: str, other: str) -> bool:
        return (one, other) in self._state.blocks or (other, one) in self._state.blocks

    def knows(self, viewer: str, uid: str) -> bool:
        """Whether ``viewer`` may know the user. A user who blocks the viewer is unknown, a blocked user is not."""
        person = self._state.people.get(uid)
        return person is not None and not person.suspended and (uid, viewer) not in self._state.blocks

    def need_person(self, viewer: str, uid: str) -> None:
        if not self.knows(viewer, uid):
            raise Refused("not_found")

    def group(self, viewer: str, gid: str) -> bool:
        """Whether ``viewer`` may know the group."""
        group = self._state.groups.get(gid)
        if group is None:
            return False
        return viewer in group.members or (group.kind != "private" and self.knows(viewer, group.uid))

    def author(self, viewer: str, uid: str, gid: str | None = None, *, party: bool = False) -> int:
        """Return whether ``viewer`` sees texts by ``uid``, in a group or, with ``party``, in a talk."""
        author = self._state.people.get(uid)
        if author is None or author.suspended:
            return HIDDEN
        if viewer == uid:
            return SHOWN
        if self.blocked(viewer, uid):
            return HIDDEN
        group = self._state.groups.get(gid) if gid is not None else None
        member = group is not None and viewer in group.members
        if gid is not None and (group is None or group.kind == "private") and not member:
            return HIDDEN
        follower = (viewer, uid) in self._state.follows
        if author.protected and not (follower or member or party):
            return HIDDEN
        return QUIET if (viewer, uid) in self._state.mutes else SHOWN

    def status(self, viewer: str, sid: str) -> int:
        """Return whether ``viewer`` sees a status. For a repost, return the lesser of repost and original."""
        status = self._state.statuses.get(sid)
        if status is None:
            return HIDDEN
        level = self.author(viewer, status.uid, status.group)
        original = self._state.statuses.get(status.origin or "")
        if status.wordless and original is not None:
            level = min(level, self.author(viewer, original.uid, original.group))
        return level

    def need(self, viewer: str, sid: str) -> Status:
        if self.status(viewer, sid) == HIDDEN:
            raise Refused("not_found")
        return self._state.statuses[sid]

    def need_member(self, uid: str, status: Status) -> None:
        """Only members like and comment on a status of a group."""
        if status.group is not None and uid not in self._members(status.group):
            raise Refused("not_yours")

    def _members(self, gid: str) -> dict[str, int]:
        group = self._state.groups.get(gid)
        return {} if group is None else group.members
