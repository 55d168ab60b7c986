"""Who sees what: the agreed rule, written anew."""

from tests.property.model.ground import Ground, Refused, Status

HIDDEN, QUIET, SHOWN = 0, 1, 2


class Eyes:
    """Looks at the ground with somebody's eyes."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground

    def blocked(self, one: str, other: str) -> bool:
        """Whether either blocks the other."""
        return (one, other) in self._ground.blocks or (other, one) in self._ground.blocks

    def knows(self, viewer: str, uid: str) -> bool:
        """Whether ``viewer`` may know that there is such a user: those who block hide, those who are blocked do not."""
        person = self._ground.people.get(uid)
        return person is not None and not person.suspended and (uid, viewer) not in self._ground.blocks

    def need_person(self, viewer: str, uid: str) -> None:
        """Refused for whom the viewer may not know of."""
        if not self.knows(viewer, uid):
            raise Refused("not_found")

    def group(self, viewer: str, gid: str) -> bool:
        """Whether ``viewer`` may know that there is such a group: its members do."""
        group = self._ground.groups.get(gid)
        if group is None:
            return False
        return viewer in group.members or (group.kind != "private" and self.knows(viewer, group.uid))

    def author(self, viewer: str, uid: str, gid: str | None = None, *, party: bool = False) -> int:
        """How much ``viewer`` sees of what ``uid`` wrote, in a group or a talk perhaps."""
        author = self._ground.people.get(uid)
        if author is None or author.suspended:
            return HIDDEN
        if viewer == uid:
            return SHOWN
        if self.blocked(viewer, uid):
            return HIDDEN
        group = self._ground.groups.get(gid) if gid is not None else None
        member = group is not None and viewer in group.members
        if gid is not None and (group is None or group.kind == "private") and not member:
            return HIDDEN
        follower = (viewer, uid) in self._ground.follows
        if author.protected and not (follower or member or party):
            return HIDDEN
        return QUIET if (viewer, uid) in self._ground.mutes else SHOWN

    def status(self, viewer: str, sid: str) -> int:
        """How much ``viewer`` sees of a status; of a repost without words, as much as of the less seen of the two."""
        status = self._ground.statuses.get(sid)
        if status is None:
            return HIDDEN
        level = self.author(viewer, status.uid, status.group)
        original = self._ground.statuses.get(status.origin or "")
        if status.wordless and original is not None:
            level = min(level, self.author(viewer, original.uid, original.group))
        return level

    def need(self, viewer: str, sid: str) -> Status:
        """A status that ``viewer`` sees; refused otherwise."""
        if self.status(viewer, sid) == HIDDEN:
            raise Refused("not_found")
        return self._ground.statuses[sid]

    def need_member(self, uid: str, status: Status) -> None:
        """What stands in a group is liked and commented by its members."""
        if status.group is not None and uid not in self._members(status.group):
            raise Refused("not_yours")

    def _members(self, gid: str) -> dict[str, int]:
        group = self._ground.groups.get(gid)
        return {} if group is None else group.members
