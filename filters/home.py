"""``home``: what somebody's own stream is made of; no parameter of a stream, but the base of that one."""

from collections.abc import Collection, Hashable
from typing import ClassVar, Self

from filters.base import Filter, Role
from filters.error import ParameterError
from filters.event import Event
from filters.key import Key, person

_BY = frozenset({"post", "delete", "user_update", "protect", "unprotect"})
_WITH = frozenset({"follow", "unfollow", "like", "unlike", "comment", "uncomment"})


class Home(Filter):
    """By oneself and those whom one follows: posts and changes of the profile. To or by oneself: follows and deeds.

    ``following`` is a set that its owner goes on changing. What is addressed to one finds one without a filter.
    """

    __slots__ = ("_following", "_me")

    name: ClassVar[str] = "home"
    role: ClassVar[Role] = "any"
    help: ClassVar[str] = "What concerns the asking user."

    def __init__(self, me: str, following: Collection[str]) -> None:
        self._me = me
        self._following = following

    @classmethod
    def parse(cls, value: str) -> Self:  # noqa: ARG003 - a filter's signature
        raise ParameterError("home is a stream of its own, not a parameter", param="home", code="unknown_parameter")

    @property
    def key(self) -> Hashable:
        return self._me, id(self._following)

    def keys(self) -> frozenset[Key]:
        """One's own, and those of the followed of this moment."""
        return frozenset(map(person, (self._me, *self._following)))

    def matches(self, event: Event) -> bool:
        if event.kind in _BY:
            return event.author == self._me or event.author in self._following
        return event.kind in _WITH and self._me in event.people
