"""The filter behind a user's own stream. It is not a parameter of other streams."""

from collections.abc import Collection, Hashable
from typing import ClassVar, Self

from filters.base import Filter, Role
from filters.error import ParameterError
from filters.event import Event
from filters.index_keys import Key, user_key

_AUTHORED_KINDS = frozenset({"post", "delete", "user_update", "protect", "unprotect"})
_INVOLVING_KINDS = frozenset({"follow", "unfollow", "like", "unlike", "comment", "uncomment"})


class Home(Filter):
    """Posts and profile changes by the user and the followed users; follows, likes and comments by or to the user.

    ``following`` is a set that its owner may change later. Messages and notifications for the user are delivered
    without a filter.
    """

    __slots__ = ("_following", "_user_id")

    name: ClassVar[str] = "home"
    role: ClassVar[Role] = "combinable"
    help: ClassVar[str] = "Events that concern the asking user."

    def __init__(self, user_id: str, following: Collection[str]) -> None:
        self._user_id = user_id
        self._following = following

    @classmethod
    def parse(cls, value: str) -> Self:  # noqa: ARG003 - a filter's signature
        raise ParameterError(
            "home is not a parameter; it is the base of the user stream", param="home", code="unknown_parameter"
        )

    @property
    def canonical_form(self) -> Hashable:
        return self._user_id, id(self._following)

    def candidate_keys(self) -> frozenset[Key]:
        """Return the keys of the user and of the users followed at present."""
        return frozenset(map(user_key, (self._user_id, *self._following)))

    def matches(self, event: Event) -> bool:
        if event.kind in _AUTHORED_KINDS:
            return event.author == self._user_id or event.author in self._following
        return event.kind in _INVOLVING_KINDS and self._user_id in event.user_ids
