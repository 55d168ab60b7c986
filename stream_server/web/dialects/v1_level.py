"""``filter_level`` of v1.1: who asks for better statuses than this server knows of is sent none."""

from collections.abc import Hashable
from typing import ClassVar, Self

from filters.base import Filter, Role
from filters.event import Event


class Better(Filter):
    """Statuses of a higher ``filter_level`` than that which all have here: none. No parameter of our own streams."""

    __slots__ = ()

    name: ClassVar[str] = "filter_level"
    role: ClassVar[Role] = "narrow"
    help: ClassVar[str] = "Only statuses that are better than most; none is known to be."
    operator: ClassVar[bool] = False

    @classmethod
    def parse(cls, value: str) -> Self:  # noqa: ARG003 - every better level is the same here
        return cls()

    @property
    def key(self) -> Hashable:
        return ()

    def matches(self, event: Event) -> bool:  # noqa: ARG002 - whatever happens
        return False
