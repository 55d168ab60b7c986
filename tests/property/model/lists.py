"""Named lists of people."""

from tests.property.model.noun import Noun
from tests.property.model.state import NamedList, Refused, among


class Lists(Noun):
    """The lists of the model."""

    def create(self, list_id: str, uid: str, name: str, *, private: bool) -> None:
        self._state.writer(uid)
        self._state.lists[list_id] = NamedList(list_id, uid, name, private)
        self._log("list_create", self._state.lists[list_id])

    def update(self, uid: str, list_id: str, name: str, *, private: bool) -> None:
        named = self.mine(uid, list_id)
        if (named.name, named.private) != (name, private):
            named.name, named.private = name, private
            self._log("list_update", named)

    def delete(self, uid: str, list_id: str) -> None:
        named = self.mine(uid, list_id)
        del self._state.lists[list_id]
        self._timelines.dropped(list_id)
        self._log("list_delete", named)

    def add(self, uid: str, list_id: str, member: str) -> None:
        """Put a member on a list. Blocked users, in either direction, are unknown."""
        named = self.mine(uid, list_id)
        if member in named.members and self._access.knows(uid, member) and not self._access.blocked(uid, member):
            return
        self._may_be_put(uid, member)
        self.put(named, member)

    def remove(self, uid: str, list_id: str, member: str) -> None:
        named = self.mine(uid, list_id)
        self._access.need_person(uid, member)
        self.take(named, member)

    def put(self, named: NamedList, member: str) -> None:
        if member not in named.members:
            named.members[member] = self._state.tick()
            self._log("list_add", named, member)
            self._timelines.listed(named.id, member)

    def take(self, named: NamedList, member: str) -> None:
        if named.members.pop(member, None) is not None:
            self._log("list_remove", named, member)
            self._timelines.unlisted(named.id, member)

    def mine(self, uid: str, list_id: str) -> NamedList:
        """A list of the user's own. Refused as another's, or as unknown if it is hidden."""
        self._state.writer(uid)
        named = self.get(uid, list_id)
        if named.uid != uid:
            raise Refused("not_yours")
        return named

    def get(self, viewer: str, list_id: str) -> NamedList:
        named = self._state.lists.get(list_id)
        if named is None or not self._seen(viewer, named):
            raise Refused("not_found")
        return named

    def of(self, viewer: str, uid: str) -> list[str]:
        """The visible lists of a user, newest first."""
        self._access.need_person(viewer, uid)
        found = (one.id for one in self._state.lists.values() if one.uid == uid and self._seen(viewer, one))
        return sorted(found, key=int, reverse=True)

    def listed(self, viewer: str, uid: str) -> list[str]:
        """The visible lists with a user, newest membership first. Others' lists need an owner without a block."""
        self._access.need_person(viewer, uid)
        on = [one for one in self._state.lists.values() if uid in one.members and self._seen(viewer, one)]
        found = [one for one in on if one.uid == uid or not self._access.blocked(viewer, one.uid)]
        return [one.id for one in sorted(found, key=lambda one: -one.members[uid])]

    def members(self, viewer: str, list_id: str) -> list[str]:
        named = self.get(viewer, list_id)
        ordered = sorted(named.members, key=lambda uid: -named.members[uid])
        return [uid for uid in ordered if self._access.knows(viewer, uid)]

    def _seen(self, viewer: str, named: NamedList) -> bool:
        return self._access.knows(viewer, named.uid) and (not named.private or named.uid == viewer)

    def _may_be_put(self, uid: str, member: str) -> None:
        self._access.need_person(uid, member)
        if self._access.blocked(uid, member):
            raise Refused("not_found")

    def _log(self, kind: str, named: NamedList, member: str | None = None) -> None:
        if member is None:
            self._state.log_event(kind, among(named.uid), list=named.id)
        else:
            receivers = (named.uid,) if named.private else (named.uid, member)
            self._state.log_event(kind, among(*receivers), list=named.id, user=member)
