"""Operators that look at who wrote a status, whom it answers and whose it repeats."""

import re
from abc import abstractmethod

from filters import index_keys
from filters.event import Event
from filters.index_keys import Key, user_key
from filters.rules.condition import Condition, OperatorValue
from filters.rules.error import RuleError
from filters.tokens import fold

_LOGIN = re.compile(r"[A-Za-z0-9_]{1,20}")
_ID = re.compile(r"0|[1-9][0-9]{0,19}")


class UserCondition(Condition):
    """One user, by id or by login; what is all digits is an id."""

    __slots__ = ("_is_id", "user")

    name: str
    verb: str
    """What a status does with whom this operator looks at."""

    def __init__(self, user: str) -> None:
        super().__init__(f"{self.name}:{user}")
        self.user = user
        self._is_id = _ID.fullmatch(user) is not None

    @classmethod
    def parse(cls, value: OperatorValue) -> Condition:
        """The condition of this value; raises RuleError."""
        if not _LOGIN.fullmatch(value.text):
            raise RuleError(
                f"{value.text[:40]!r} names nobody",
                column=value.column,
                expected="a user's id, or a login without @",
            )
        return cls(fold(value.text))

    @abstractmethod
    def user_of(self, event: Event) -> tuple[str | None, str | None]:
        """The id and the login of whom this operator looks at, None for what is not known."""

    def matches(self, event: Event) -> bool:
        uid, login = self.user_of(event)
        return uid == self.user if self._is_id else login is not None and fold(login) == self.user

    def candidate_keys(self) -> frozenset[Key]:
        return frozenset((user_key(self.user) if self._is_id else index_keys.login_key(self.user),))

    def describe(self, event: Event) -> str:
        uid, login = self.user_of(event)
        named = uid if self._is_id or login is None else login
        if named is None:
            return f"{self.verb} nobody"
        return f"{self.verb} {named}" + ("" if self.matches(event) else f", not {self.user}")


class FromCondition(UserCondition):
    """``from:`` — the author."""

    __slots__ = ()

    name = "from"
    verb = "written by"

    def user_of(self, event: Event) -> tuple[str | None, str | None]:
        return event.author, event.author_login


class ToCondition(UserCondition):
    """``to:`` — whom it answers."""

    __slots__ = ()

    name = "to"
    verb = "it answers"

    def user_of(self, event: Event) -> tuple[str | None, str | None]:
        return event.reply_to, event.reply_to_login


class RepostsOfCondition(UserCondition):
    """``retweets_of:`` — whose status it repeats without a word of its own."""

    __slots__ = ()

    name = "retweets_of"
    verb = "it reposts"

    def user_of(self, event: Event) -> tuple[str | None, str | None]:
        return event.reposted_author, event.reposted_author_login
