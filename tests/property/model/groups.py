"""Groups: public ones, private ones, and ones in which only the owner speaks."""

from tests.property.model.ground import Ground, Group, Refused
from tests.property.model.sight import Eyes


class Groups:
    """The groups of the model."""

    def __init__(self, ground: Ground, eyes: Eyes) -> None:
        self._ground = ground
        self._eyes = eyes

    def create(self, gid: str, uid: str, name: str, kind: str) -> None:
        self._ground.writer(uid)
        group = Group(gid, uid, name, kind, {uid: self._ground.tick()})
        self._ground.groups[gid] = group
        self._tell("group_create", group)

    def update(self, uid: str, gid: str, name: str) -> None:
        group = self._mine(uid, gid)
        if group.name != name:
            group.name = name
            self._tell("group_update", group)

    def delete(self, uid: str, gid: str) -> None:
        group = self._mine(uid, gid)
        del self._ground.groups[gid]
        self._tell("group_delete", group)

    def join(self, uid: str, gid: str) -> None:
        """Oneself, where the door is open."""
        self._ground.writer(uid)
        self._put(self.get(uid, gid), uid)

    def add(self, uid: str, gid: str, member: str) -> None:
        """Somebody else, by the owner of a private group; into others people come by themselves."""
        if uid == member:
            self.join(uid, gid)
            return
        group = self._mine(uid, gid)
        self._eyes.need_person(uid, member)
        if self._eyes.blocked(uid, member):
            raise Refused("not_found")
        if group.kind != "private":
            raise Refused("invalid_parameter")
        self._put(group, member)

    def remove(self, uid: str, gid: str, member: str) -> None:
        """Oneself leaves, the owner sends away; the owner cannot leave."""
        self._ground.writer(uid)
        group = self.get(uid, gid)
        if uid not in {member, group.uid}:
            raise Refused("not_yours")
        if member == group.uid:
            raise Refused("invalid_parameter")
        if member not in group.members:
            self._eyes.need_person(uid, member)
        if group.members.pop(member, None) is not None:
            self._tell("group_leave", group, member)

    def get(self, viewer: str, gid: str) -> Group:
        if not self._eyes.group(viewer, gid):
            raise Refused("not_found")
        return self._ground.groups[gid]

    def of(self, viewer: str) -> list[str]:
        """The groups that somebody is in, the newest membership first."""
        mine = [one for one in self._ground.groups.values() if viewer in one.members]
        return [one.id for one in sorted(mine, key=lambda one: -one.members[viewer])]

    def members(self, viewer: str, gid: str) -> list[str]:
        group = self.get(viewer, gid)
        ordered = sorted(group.members, key=lambda uid: -group.members[uid])
        return [uid for uid in ordered if self._eyes.knows(viewer, uid)]

    def _mine(self, uid: str, gid: str) -> Group:
        self._ground.writer(uid)
        group = self.get(uid, gid)
        if group.uid != uid:
            raise Refused("not_yours")
        return group

    def _put(self, group: Group, member: str) -> None:
        if member not in group.members:
            group.members[member] = self._ground.tick()
            self._tell("group_join", group, member)

    def _tell(self, kind: str, group: Group, user: str | None = None) -> None:
        about = {"group": group.id} if user is None else {"group": group.id, "user": user}
        self._ground.tell(kind, f"group:{group.id}", **about)
