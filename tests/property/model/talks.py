"""Direct messages: between two, or among people named beforehand."""

from tests.property.model.ground import Ground, Refused, Talk, among
from tests.property.model.sight import Eyes


class Talks:
    """The talks of the model."""

    def __init__(self, ground: Ground, eyes: Eyes) -> None:
        self._ground = ground
        self._eyes = eyes

    def check(self, uid: str, others: list[str]) -> None:
        """Whether ``uid`` may open a talk with these."""
        if uid in others:
            raise Refused("invalid_parameter")
        self._ground.writer(uid)
        for other in others:
            self._eyes.need_person(uid, other)
            if self._eyes.blocked(uid, other):
                raise Refused("not_found")

    def open(self, talk_id: str, uid: str, others: list[str], name: str | None) -> bool:
        """A talk, and whether it is new; two people have one, which has no name and is found again."""
        self.check(uid, others)
        people = frozenset((uid, *others))
        if (known := self.of_two(people)) is not None:
            return known.id != talk_id
        self._ground.talks[talk_id] = Talk(talk_id, uid, people, name if len(people) > 2 else None)
        return True

    def of_two(self, people: frozenset[str]) -> Talk | None:
        """The talk of two people."""
        return next((one for one in self._ground.talks.values() if one.people == people and len(people) == 2), None)

    def send(self, message_id: str, uid: str, talk_id: str, text: str) -> None:
        """Say something, having read what was said before; of two, both must be there for the other."""
        self._ground.writer(uid)
        talk = self.get(uid, talk_id)
        if len(talk.people) == 2 and self._estranged(uid, talk):
            raise Refused("not_found")
        talk.messages.append((message_id, uid, text))
        talk.marks[uid] = int(message_id)
        self._ground.tell("message", among(*talk.people), message=message_id)

    def read(self, uid: str, talk_id: str, message_id: str) -> None:
        """One has read up to here; a mark does not go back."""
        self._ground.writer(uid)
        talk = self.get(uid, talk_id)
        if message_id not in self.messages(uid, talk_id):
            raise Refused("not_found")
        talk.marks[uid] = max(talk.marks.get(uid, 0), int(message_id))

    def get(self, viewer: str, talk_id: str) -> Talk:
        talk = self._ground.talks.get(talk_id)
        if talk is None or viewer not in talk.people:
            raise Refused("not_found")
        return talk

    def of(self, viewer: str) -> list[str]:
        """One's talks, that with the newest message first."""
        mine = [one for one in self._ground.talks.values() if viewer in one.people]
        return [one.id for one in sorted(mine, key=lambda one: -int(one.messages[-1][0] if one.messages else one.id))]

    def unread(self, viewer: str, talk_id: str) -> int:
        mark = self._ground.talks[talk_id].marks.get(viewer, 0)
        return sum(int(one) > mark for one in self.messages(viewer, talk_id))

    def messages(self, viewer: str, talk_id: str) -> list[str]:
        """What was said, the newest first, but by those of whom one sees nothing."""
        talk = self.get(viewer, talk_id)
        return [mid for mid, uid, _ in reversed(talk.messages) if self._eyes.author(viewer, uid, party=True) > 0]

    def _estranged(self, uid: str, talk: Talk) -> bool:
        (other,) = talk.people - {uid}
        return self._eyes.blocked(uid, other) or self._ground.people[other].suspended
