"""Groups: public, private, and for announcements of the owner."""

from tests.property.model.noun import Noun
from tests.property.model.state import Group, Refused


class Groups(Noun):
    """The groups of the model."""

    def create(self, gid: str, uid: str, name: str, kind: str) -> None:
        self._state.writer(uid)
        group = Group(gid, uid, name, kind, {uid: self._state.tick()})
        self._state.groups[gid] = group
        self._log("group_create", group)

    def update(self, uid: str, gid: str, name: str) -> None:
        group = self._mine(uid, gid)
        if group.name != name:
            group.name = name
            self._log("group_update", group)

    def delete(self, uid: str, gid: str) -> None:
        group = self._mine(uid, gid)
        del self._state.groups[gid]
        self._log("group_delete", group)

    def join(self, uid: str, gid: str) -> None:
        self._state.writer(uid)
        self._put(self.get(uid, gid), uid)

    def add(self, uid: str, gid: str, member: str) -> None:
        """Add a member. Only the owner of a private group may; users join other groups themselves."""
        if uid == member:
            self.join(uid, gid)
            return
        group = self._mine(uid, gid)
        self._access.need_person(uid, member)
        if self._access.blocked(uid, member):
            raise Refused("not_found")
        if group.kind != "private":
            raise Refused("invalid_parameter")
        self._put(group, member)

    def remove(self, uid: str, gid: str, member: str) -> None:
        """Leave, or remove a member as the owner. The owner cannot leave."""
        self._state.writer(uid)
        group = self.get(uid, gid)
        if uid not in {member, group.uid}:
            raise Refused("not_yours")
        if member == group.uid:
            raise Refused("invalid_parameter")
        if member not in group.members:
            self._access.need_person(uid, member)
        if group.members.pop(member, None) is not None:
            self._log("group_leave", group, member)

    def get(self, viewer: str, gid: str) -> Group:
        if not self._access.group(viewer, gid):
            raise Refused("not_found")
        return self._state.groups[gid]

    def of(self, viewer: str) -> list[str]:
        """The groups of a member, newest membership first."""
        mine = [one for one in self._state.groups.values() if viewer in one.members]
        return [one.id for one in sorted(mine, key=lambda one: -one.members[viewer])]

    def members(self, viewer: str, gid: str) -> list[str]:
        group = self.get(viewer, gid)
        ordered = sorted(group.members, key=lambda uid: -group.members[uid])
        return [uid for uid in ordered if self._access.knows(viewer, uid)]

    def _mine(self, uid: str, gid: str) -> Group:
        self._state.writer(uid)
        group = self.get(uid, gid)
        if group.uid != uid:
            raise Refused("not_yours")
        return group

    def _put(self, group: Group, member: str) -> None:
        if member not in group.members:
            group.members[member] = self._state.tick()
            self._log("group_join", group, member)

    def _log(self, kind: str, group: Group, user: str | None = None) -> None:
        about = {"group": group.id} if user is None else {"group": group.id, "user": user}
        self._state.log_event(kind, f"group:{group.id}", **about)
