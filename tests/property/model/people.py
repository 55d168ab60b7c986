"""Users: made, changed, suspended."""

from tests.property.model.ground import Ground, Person, Refused
from tests.property.model.sight import Eyes


class People:
    """The users of the model."""

    def __init__(self, ground: Ground, eyes: Eyes) -> None:
        self._ground = ground
        self._eyes = eyes

    def create(self, uid: str, login: str) -> None:
        """A new user; a login is taken whatever its case."""
        if any(person.login.lower() == login.lower() for person in self._ground.people.values()):
            raise Refused("login_taken")
        self._ground.people[uid] = Person(uid, login, login)

    def update(self, uid: str, changes: dict[str, str | bool | None]) -> None:
        """Change oneself. What is already so makes no event; protection has a kind of its own."""
        person = self._ground.writer(uid)
        changed = {name for name, value in changes.items() if getattr(person, name) != value}
        for name in changed:
            setattr(person, name, changes[name])
        if changed - {"protected"}:
            self._ground.tell("user_update", "public", user=uid)
        if "protected" in changed:
            self._ground.tell("protect" if person.protected else "unprotect", "public", user=uid)

    def suspend(self, uid: str) -> None:
        """Take somebody out of sight."""
        person = self._ground.person(uid)
        if not person.suspended:
            person.suspended = True
            self._ground.tell("suspend", "-", uid=uid)

    def reinstate(self, uid: str) -> None:
        """Bring somebody back."""
        person = self._ground.person(uid)
        if person.suspended:
            person.suspended = False
            self._ground.tell("reinstate", "-", uid=uid)

    def get(self, viewer: str, uid: str) -> Person:
        """A user as ``viewer`` may know them."""
        self._eyes.need_person(viewer, uid)
        return self._ground.people[uid]

    def counts(self, uid: str) -> tuple[int, int, int]:
        """Followers, following and posts: the cardinalities of the sets."""
        follows = self._ground.follows
        return (
            sum(target == uid for _, target in follows),
            sum(source == uid for source, _ in follows),
            sum(status.uid == uid and status.group is None for status in self._ground.statuses.values()),
        )
