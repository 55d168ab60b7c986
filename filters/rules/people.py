"""Operators that look at who wrote a status, whom it answers and whose it repeats."""

import re
from abc import abstractmethod

from filters import key
from filters.event import Event
from filters.key import Key, person
from filters.rules.condition import Condition, Written
from filters.rules.error import RuleError
from filters.tokens import fold

_LOGIN = re.compile(r"[A-Za-z0-9_]{1,20}")
_ID = re.compile(r"0|[1-9][0-9]{0,19}")


class Person(Condition):
    """One user, by id or by login; what is all digits is an id."""

    __slots__ = ("_id", "who")

    name: str
    verb: str
    """What a status does with whom this operator looks at."""

    def __init__(self, who: str) -> None:
        super().__init__(f"{self.name}:{who}")
        self.who = who
        self._id = _ID.fullmatch(who) is not None

    @classmethod
    def parse(cls, written: Written) -> Condition:
        """The condition of this value; raises RuleError."""
        if not _LOGIN.fullmatch(written.text):
            raise RuleError(
                f"{written.text[:40]!r} names nobody",
                column=written.column,
                expected="a user's id, or a login without @",
            )
        return cls(fold(written.text))

    @abstractmethod
    def found(self, event: Event) -> tuple[str | None, str | None]:
        """The id and the login of whom this operator looks at, None for what is not known."""

    def matches(self, event: Event) -> bool:
        uid, login = self.found(event)
        return uid == self.who if self._id else login is not None and fold(login) == self.who

    def keys(self) -> frozenset[Key]:
        return frozenset((person(self.who) if self._id else key.login(self.who),))

    def why(self, event: Event) -> str:
        uid, login = self.found(event)
        named = uid if self._id or login is None else login
        if named is None:
            return f"{self.verb} nobody"
        return f"{self.verb} {named}" + ("" if self.matches(event) else f", not {self.who}")


class From(Person):
    """``from:`` — the author."""

    __slots__ = ()

    name = "from"
    verb = "written by"

    def found(self, event: Event) -> tuple[str | None, str | None]:
        return event.author, event.login


class To(Person):
    """``to:`` — whom it answers."""

    __slots__ = ()

    name = "to"
    verb = "it answers"

    def found(self, event: Event) -> tuple[str | None, str | None]:
        return event.reply_to, event.reply_to_login


class RepostsOf(Person):
    """``retweets_of:`` — whose status it repeats without a word of its own."""

    __slots__ = ()

    name = "retweets_of"
    verb = "it reposts"

    def found(self, event: Event) -> tuple[str | None, str | None]:
        return event.reposted, event.reposted_login
