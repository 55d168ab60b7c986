"""Operators for the users of a status: its author, the user whom it answers, and the author whom it reposts."""

import re
from abc import abstractmethod

from filters import index_keys
from filters.event import Event
from filters.follow import USER_ID
from filters.index_keys import Key, user_key
from filters.rules.condition import Condition, OperatorValue
from filters.rules.error import RuleError
from filters.tokens import fold

_LOGIN = re.compile(r"[A-Za-z0-9_]{1,20}")


class UserCondition(Condition):
    """The base class of conditions on one user, by id or by login. A value of digits only is an id."""

    __slots__ = ("_is_id", "user")

    name: str
    verb: str
    """What the status does with this user, for :meth:`describe`."""

    def __init__(self, user: str) -> None:
        super().__init__(f"{self.name}:{user}")
        self.user = user
        self._is_id = USER_ID.fullmatch(user) is not None

    @classmethod
    def parse(cls, value: OperatorValue) -> Condition:
        """Make the condition from the value of the operator. Raises RuleError."""
        if not _LOGIN.fullmatch(value.text):
            raise RuleError(
                f"{value.text[:40]!r} is not a user id or login",
                column=value.column,
                expected="a user's id, or a login without @",
            )
        return cls(fold(value.text))

    @abstractmethod
    def user_of(self, event: Event) -> tuple[str | None, str | None]:
        """Return the id and the login of the user whom the operator checks. Each is None if it is unknown."""

    def matches(self, event: Event) -> bool:
        uid, login = self.user_of(event)
        return uid == self.user if self._is_id else login is not None and fold(login) == self.user

    def candidate_keys(self) -> frozenset[Key]:
        return frozenset((user_key(self.user) if self._is_id else index_keys.login_key(self.user),))

    def describe(self, event: Event) -> str:
        uid, login = self.user_of(event)
        named = uid if self._is_id or login is None else login
        if named is None:
            return f"{self.verb} no known user"
        return f"{self.verb} {named}" + ("" if self.matches(event) else f", not {self.user}")


class FromCondition(UserCondition):
    """The operator ``from:``. The author."""

    __slots__ = ()

    name = "from"
    verb = "written by"

    def user_of(self, event: Event) -> tuple[str | None, str | None]:
        return event.author, event.author_login


class ToCondition(UserCondition):
    """The operator ``to:``. The user whom the status answers."""

    __slots__ = ()

    name = "to"
    verb = "it answers"

    def user_of(self, event: Event) -> tuple[str | None, str | None]:
        return event.reply_to, event.reply_to_login


class RepostsOfCondition(UserCondition):
    """The operator ``retweets_of:``. The author of the status that this one reposts without words of its own."""

    __slots__ = ()

    name = "retweets_of"
    verb = "it reposts"

    def user_of(self, event: Event) -> tuple[str | None, str | None]:
        return event.reposted_author, event.reposted_author_login
