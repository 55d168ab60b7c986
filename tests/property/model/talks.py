"""Direct messages between two or several fixed users."""

from tests.property.model.noun import Noun
from tests.property.model.state import Refused, Talk, among


class Talks(Noun):
    """The talks of the model."""

    def check(self, uid: str, others: list[str]) -> None:
        if uid in others:
            raise Refused("invalid_parameter")
        self._state.writer(uid)
        for other in others:
            self._access.need_person(uid, other)
            if self._access.blocked(uid, other):
                raise Refused("not_found")

    def open(self, talk_id: str, uid: str, others: list[str], name: str | None) -> bool:
        """Open a talk. Returns whether it is new: two users have one talk, which has no name."""
        self.check(uid, others)
        people = frozenset((uid, *others))
        if (known := self.of_two(people)) is not None:
            return known.id != talk_id
        self._state.talks[talk_id] = Talk(talk_id, uid, people, name if len(people) > 2 else None)
        return True

    def of_two(self, people: frozenset[str]) -> Talk | None:
        return next((one for one in self._state.talks.values() if one.people == people and len(people) == 2), None)

    def send(self, message_id: str, uid: str, talk_id: str, text: str) -> None:
        """Send a message, which also marks the talk as read. A block between two ends their talk."""
        self._state.writer(uid)
        talk = self.get(uid, talk_id)
        if len(talk.people) == 2 and self._estranged(uid, talk):
            raise Refused("not_found")
        talk.messages.append((message_id, uid, text))
        talk.marks[uid] = talk.latest = int(message_id)
        self._state.log_event("message", among(*talk.people & self._state.people.keys()), message=message_id)

    def read(self, uid: str, talk_id: str, message_id: str) -> None:
        self._state.writer(uid)
        talk = self.get(uid, talk_id)
        if message_id not in self.messages(uid, talk_id):
            raise Refused("not_found")
        talk.marks[uid] = max(talk.marks.get(uid, 0), int(message_id))

    def get(self, viewer: str, talk_id: str) -> Talk:
        talk = self._state.talks.get(talk_id)
        if talk is None or viewer not in talk.people:
            raise Refused("not_found")
        return talk

    def of(self, viewer: str) -> list[str]:
        """The talks of a user, newest message first."""
        mine = [one for one in self._state.talks.values() if viewer in one.people]
        return [one.id for one in sorted(mine, key=lambda one: -(one.latest or int(one.id)))]

    def unread(self, viewer: str, talk_id: str) -> int:
        mark = self._state.talks[talk_id].marks.get(viewer, 0)
        return sum(int(one) > mark for one in self.messages(viewer, talk_id))

    def messages(self, viewer: str, talk_id: str) -> list[str]:
        """The visible messages, newest first."""
        talk = self.get(viewer, talk_id)
        return [mid for mid, uid, _ in reversed(talk.messages) if self._access.author(viewer, uid, party=True) > 0]

    def _estranged(self, uid: str, talk: Talk) -> bool:
        (other,) = talk.people - {uid}
        return self._access.blocked(uid, other) or not self._access.knows(uid, other)
