"""The filter of one reader of a shared subscription: the events of its parts."""

from collections.abc import Hashable, Mapping
from typing import ClassVar, Self

from filters.base import Filter, Role
from filters.error import ParameterError
from filters.event import Event
from filters.sample import stable_hash


class Parts(Filter):
    """The parts of a shared subscription that one connection reads. Each author belongs to one of ``count`` parts.

    The server adds it to the stream. It is no parameter: it has no entry point.

    Attributes:
        count: The number of all parts.
        cursors: The cursor of each part that is read, by the part's index from 0.
    """

    __slots__ = ("_newest", "count", "cursors")

    name: ClassVar[str] = "parts"
    role: ClassVar[Role] = "narrowing"
    help: ClassVar[str] = "The parts of a shared subscription that a connection reads."
    usable_in_rules: ClassVar[bool] = False

    def __init__(self, count: int, cursors: Mapping[int, tuple[int, ...]]) -> None:
        self.count = count
        self.cursors = cursors
        self._newest = max(cursors.values(), default=())

    @classmethod
    def parse(cls, value: str) -> Self:  # noqa: ARG003 - the contract fixes the signature
        raise ParameterError("parts is no parameter of a stream", param="parts", code="unknown_parameter")

    @property
    def canonical_form(self) -> Hashable:
        return self.count, tuple(sorted(self.cursors.items()))

    def matches(self, event: Event) -> bool:
        return self._part_of(event) in self.cursors

    def is_handled(self, event: Event, position: tuple[int, ...]) -> bool:
        """Whether an event that matches is not behind the cursor of its part.

        A stream of several parts begins behind the lowest of their cursors, so this may be true of past events only.
        """
        return position <= self._newest and position <= self.cursors[self._part_of(event)]

    def _part_of(self, event: Event) -> int:
        # The key must never change. It differs from that of ``partition``, so that the two are independent.
        return stable_hash(event.author or "", b"stream-server subscription part") % self.count
