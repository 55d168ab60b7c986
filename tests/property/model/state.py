"""The state that all parts of the model share."""

from dataclasses import dataclass, field
from typing import NamedTuple

Pairs = dict[tuple[str, str], int]
"""(source, target) -> the time in ticks of the model's clock."""


class Refused(Exception):
    """A refusal by the model, with the code that the store must answer."""

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
    """A status as posted. ``mentions`` are known users, ``tags`` are folded."""

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
        """Whether it is a repost without a text."""
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
class NamedList:
    """A list of users: its owner, and the members with the time of their addition."""

    id: str
    uid: str
    name: str
    private: bool
    members: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class Group:
    """A group: its owner, and the members with the time of their joining."""

    id: str
    uid: str
    name: str
    kind: str
    members: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class Talk:
    """Direct messages between fixed users. ``messages`` are (id, author, text), oldest first."""

    id: str
    uid: str
    people: frozenset[str]
    name: str | None
    messages: list[tuple[str, str, str]] = field(default_factory=list)
    marks: dict[str, int] = field(default_factory=dict)
    latest: int = 0
    """The id of the last message, also of one that has gone with its author."""


class LoggedEvent(NamedTuple):
    """An expected log entry: its kind, its audience with sorted ids, and the ids in it."""

    kind: str
    audience: str
    about: tuple[tuple[str, str], ...]


class State:
    """The data of the model. Only its parts change it."""

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
        self.audiences: dict[str, str] = {}
        """The audience of each comment."""
        self.opened: set[str] = set()
        """Statuses and comments that were written under a protection which has ended for a time since."""
        self.lists: dict[str, NamedList] = {}
        self.groups: dict[str, Group] = {}
        self.talks: dict[str, Talk] = {}
        self.logged: list[LoggedEvent] = []

    def tick(self) -> int:
        self.clock += 1
        return self.clock

    def log_event(self, kind: str, audience: str, **about: str) -> None:
        self.logged.append(LoggedEvent(kind, audience, tuple(sorted(about.items()))))

    def note_opened(self) -> None:
        """Note what everybody may read now, or could read. Its removal is for everybody, too."""
        for status in self.statuses.values():
            if not self.people[status.uid].protected:
                self.opened.add(status.id)
        for comment in self.comments.values():
            authors = comment.uid, self.statuses[comment.status].uid
            if not any(self.people[uid].protected for uid in authors):
                self.opened.add(comment.id)

    def removal_audience(self, one: str, audience: str) -> str:
        """The audience of the event by which a status or comment goes that was written for ``audience``."""
        return "public" if one in self.opened and not audience.startswith("group:") else audience

    def person(self, uid: str) -> Person:
        if uid not in self.people:
            raise Refused("not_found")
        return self.people[uid]

    def writer(self, uid: str) -> Person:
        person = self.person(uid)
        if person.suspended:
            raise Refused("suspended")
        return person


def among(*uids: str) -> str:
    return "users:" + ",".join(sorted(set(uids)))


def targets(pairs: Pairs, source: str) -> list[str]:
    """The targets of ``source``, newest first, and by id within one moment."""
    found = [(when, int(target)) for (one, target), when in pairs.items() if one == source]
    return [str(target) for _, target in sorted(found, reverse=True)]


def sources(pairs: Pairs, target: str) -> list[str]:
    """The sources of ``target`` in the same order."""
    return targets({(there, back): when for (back, there), when in pairs.items()}, target)
