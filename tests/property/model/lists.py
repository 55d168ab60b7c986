"""Named lists of people."""

from tests.property.model.ground import Ground, Refused, Roll, among
from tests.property.model.sight import Eyes
from tests.property.model.timelines import Timelines


class Lists:
    """The lists of the model."""

    def __init__(self, ground: Ground, eyes: Eyes, timelines: Timelines) -> None:
        self._ground = ground
        self._eyes = eyes
        self._timelines = timelines

    def create(self, list_id: str, uid: str, name: str, *, private: bool) -> None:
        self._ground.writer(uid)
        self._ground.lists[list_id] = Roll(list_id, uid, name, private)
        self._tell("list_create", self._ground.lists[list_id])

    def update(self, uid: str, list_id: str, name: str, *, private: bool) -> None:
        roll = self.mine(uid, list_id)
        if (roll.name, roll.private) != (name, private):
            roll.name, roll.private = name, private
            self._tell("list_update", roll)

    def delete(self, uid: str, list_id: str) -> None:
        roll = self.mine(uid, list_id)
        del self._ground.lists[list_id]
        self._timelines.dropped(list_id)
        self._tell("list_delete", roll)

    def add(self, uid: str, list_id: str, member: str) -> None:
        """Put somebody on a list; who is blocked, either way, is nobody here."""
        roll = self.mine(uid, list_id)
        if member in roll.members and self._eyes.knows(uid, member) and not self._eyes.blocked(uid, member):
            return
        self._may_be_put(uid, member)
        self.put(roll, member)

    def remove(self, uid: str, list_id: str, member: str) -> None:
        roll = self.mine(uid, list_id)
        self._eyes.need_person(uid, member)
        self.take(roll, member)

    def put(self, roll: Roll, member: str) -> None:
        """Somebody comes on a list, once."""
        if member not in roll.members:
            roll.members[member] = self._ground.tick()
            self._tell("list_add", roll, member)
            self._timelines.listed(roll.id, member)

    def take(self, roll: Roll, member: str) -> None:
        """Somebody goes from a list."""
        if roll.members.pop(member, None) is not None:
            self._tell("list_remove", roll, member)
            self._timelines.unlisted(roll.id, member)

    def mine(self, uid: str, list_id: str) -> Roll:
        """A list of one's own; refused as another's, or as none, if it may not be seen."""
        self._ground.writer(uid)
        roll = self.get(uid, list_id)
        if roll.uid != uid:
            raise Refused("not_yours")
        return roll

    def get(self, viewer: str, list_id: str) -> Roll:
        roll = self._ground.lists.get(list_id)
        if roll is None or not self._seen(viewer, roll):
            raise Refused("not_found")
        return roll

    def of(self, viewer: str, uid: str) -> list[str]:
        """The lists of somebody that ``viewer`` may see, newest first."""
        self._eyes.need_person(viewer, uid)
        found = (one.id for one in self._ground.lists.values() if one.uid == uid and self._seen(viewer, one))
        return sorted(found, key=int, reverse=True)

    def listed(self, viewer: str, uid: str) -> list[str]:
        """The lists that somebody is on, as far as ``viewer`` may see them, the newest first."""
        self._eyes.need_person(viewer, uid)
        on = [one for one in self._ground.lists.values() if uid in one.members and self._seen(viewer, one)]
        return [one.id for one in sorted(on, key=lambda one: -one.members[uid])]

    def members(self, viewer: str, list_id: str) -> list[str]:
        roll = self.get(viewer, list_id)
        ordered = sorted(roll.members, key=lambda uid: -roll.members[uid])
        return [uid for uid in ordered if self._eyes.knows(viewer, uid)]

    def _seen(self, viewer: str, roll: Roll) -> bool:
        return self._eyes.knows(viewer, roll.uid) and (not roll.private or roll.uid == viewer)

    def _may_be_put(self, uid: str, member: str) -> None:
        self._eyes.need_person(uid, member)
        if self._eyes.blocked(uid, member):
            raise Refused("not_found")

    def _tell(self, kind: str, roll: Roll, member: str | None = None) -> None:
        if member is None:
            self._ground.tell(kind, among(roll.uid), list=roll.id)
        else:
            told = (roll.uid,) if roll.private else (roll.uid, member)
            self._ground.tell(kind, among(*told), list=roll.id, user=member)
