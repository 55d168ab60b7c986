"""``home``: what somebody's own stream is made of; no parameter of a stream, but the base of that one."""

from collections.abc import Collection, Hashable
from typing import ClassVar, Self

from filters.base import Filter, Role
from filters.error import ParameterError
from filters.event import Event
from filters.index_keys import Key, user_key

_AUTHORED_KINDS = frozenset({"post", "delete", "user_update", "protect", "unprotect"})
_INVOLVING_KINDS = frozenset({"follow", "unfollow", "like", "unlike", "comment", "uncomment"})


class Home(Filter):
    """By oneself and those whom one follows: posts and changes of the profile. To or by oneself: follows and deeds.

    ``following`` is a set that its owner goes on changing. What is addressed to one finds one without a filter.
    """

    __slots__ = ("_following", "_user_id")

    name: ClassVar[str] = "home"
    role: ClassVar[Role] = "any"
    help: ClassVar[str] = "What concerns the asking user."

    def __init__(self, user_id: str, following: Collection[str]) -> None:
        self._user_id = user_id
        self._following = following

    @classmethod
    def parse(cls, value: str) -> Self:  # noqa: ARG003 - a filter's signature
        raise ParameterError("home is a stream of its own, not a parameter", param="home", code="unknown_parameter")

    @property
    def canonical_form(self) -> Hashable:
        return self._user_id, id(self._following)

    def candidate_keys(self) -> frozenset[Key]:
        """One's own, and those of the followed of this moment."""
        return frozenset(map(user_key, (self._user_id, *self._following)))

    def matches(self, event: Event) -> bool:
        if event.kind in _AUTHORED_KINDS:
            return event.author == self._user_id or event.author in self._following
        return event.kind in _INVOLVING_KINDS and self._user_id in event.user_ids
