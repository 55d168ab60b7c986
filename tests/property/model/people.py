"""Users: created, changed, suspended."""

from tests.property.model.noun import Noun
from tests.property.model.state import Person, Refused


class People(Noun):
    """The users of the model."""

    def create(self, uid: str, login: str) -> None:
        """Create a user. Logins ignore case."""
        if any(person.login.lower() == login.lower() for person in self._state.people.values()):
            raise Refused("login_taken")
        self._state.people[uid] = Person(uid, login, login)

    def update(self, uid: str, changes: dict[str, str | bool | None]) -> None:
        """Change the profile. Only a change makes an event, and protection has a separate kind."""
        person = self._state.writer(uid)
        changed = {name for name, value in changes.items() if getattr(person, name) != value}
        for name in changed:
            setattr(person, name, changes[name])
        if changed - {"protected"}:
            self._state.log_event("user_update", "public", user=uid)
        if "protected" in changed:
            self._state.log_event("protect" if person.protected else "unprotect", "public", user=uid)
            self._state.note_opened()

    def suspend(self, uid: str) -> None:
        self._judge("suspend", uid, suspended=True)

    def reinstate(self, uid: str) -> None:
        self._judge("reinstate", uid, suspended=False)

    def _judge(self, kind: str, uid: str, *, suspended: bool) -> None:
        person = self._state.person(uid)
        if person.suspended != suspended:
            person.suspended = suspended
            self._state.log_event(kind, "-", uid=uid)

    def get(self, viewer: str, uid: str) -> Person:
        self._access.need_person(viewer, uid)
        return self._state.people[uid]

    def counts(self, uid: str) -> tuple[int, int, int]:
        """The numbers of followers, following and posts."""
        follows = self._state.follows
        return (
            sum(target == uid for _, target in follows),
            sum(source == uid for source, _ in follows),
            sum(status.uid == uid and status.group is None for status in self._state.statuses.values()),
        )
