"""What there is and what happened: the state that all nouns of the model share."""

from dataclasses import dataclass, field
from typing import NamedTuple

Pairs = dict[tuple[str, str], int]
"""(who, whom or what) -> when, in ticks of the model's clock."""


class Refused(Exception):
    """The model refuses; ``code`` is the code that the store must refuse with."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


@dataclass(slots=True)
class Person:
    """A user."""

    id: str
    login: str
    name: str
    bio: str | None = None
    protected: bool = False
    suspended: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """A status as it was posted; ``mentions`` are the users found, ``tags`` are folded."""

    id: str
    uid: str
    message: str = ""
    mentions: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    in_reply_to: str | None = None
    in_reply_to_uid: str | None = None
    origin: str | None = None
    group: str | None = None
    conversation: str = ""
    audience: str = "public"

    @property
    def wordless(self) -> bool:
        """A repost without words of its own."""
        return self.origin is not None and not self.message


@dataclass(frozen=True, slots=True)
class Comment:
    """A comment on a status."""

    id: str
    uid: str
    status: str
    message: str
    mentions: tuple[str, ...] = ()


@dataclass(slots=True)
class Roll:
    """A named list: whose, and who is on it since when."""

    id: str
    uid: str
    name: str
    private: bool
    members: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class Group:
    """A group: its owner, and who is in it since when."""

    id: str
    uid: str
    name: str
    kind: str
    members: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class Talk:
    """Direct messages among people named beforehand: ``messages`` are (id, author, text), oldest first."""

    id: str
    uid: str
    people: frozenset[str]
    name: str | None
    messages: list[tuple[str, str, str]] = field(default_factory=list)
    marks: dict[str, int] = field(default_factory=dict)


class Told(NamedTuple):
    """What an entry of the log must say: its kind, its audience with the ids in order, and what it is about."""

    kind: str
    audience: str
    about: tuple[tuple[str, str], ...]


class Ground:
    """The state of the model. Nouns change it; nothing else does."""

    def __init__(self, cap: int) -> None:
        self.cap = cap
        self.clock = 0
        self.people: dict[str, Person] = {}
        self.follows: Pairs = {}
        self.asks: Pairs = {}
        self.blocks: Pairs = {}
        self.mutes: Pairs = {}
        self.statuses: dict[str, Status] = {}
        self.likes: Pairs = {}
        self.favorites: Pairs = {}
        self.comments: dict[str, Comment] = {}
        self.lists: dict[str, Roll] = {}
        self.groups: dict[str, Group] = {}
        self.talks: dict[str, Talk] = {}
        self.told: list[Told] = []

    def tick(self) -> int:
        """The next moment."""
        self.clock += 1
        return self.clock

    def tell(self, kind: str, audience: str, **about: str) -> None:
        """Put an event on the model's log."""
        self.told.append(Told(kind, audience, tuple(sorted(about.items()))))

    def person(self, uid: str) -> Person:
        """Somebody who exists; refused otherwise."""
        if uid not in self.people:
            raise Refused("not_found")
        return self.people[uid]

    def writer(self, uid: str) -> Person:
        """Somebody who may write."""
        person = self.person(uid)
        if person.suspended:
            raise Refused("suspended")
        return person


def among(*uids: str) -> str:
    """The audience of exactly these."""
    return "users:" + ",".join(sorted(set(uids)))


def targets(pairs: Pairs, source: str) -> list[str]:
    """What ``source`` is paired with, newest first, and of one moment by id."""
    found = [(when, int(target)) for (one, target), when in pairs.items() if one == source]
    return [str(target) for _, target in sorted(found, reverse=True)]


def sources(pairs: Pairs, target: str) -> list[str]:
    """Who is paired with ``target``, as :func:`targets`."""
    return targets({(there, back): when for (back, there), when in pairs.items()}, target)
