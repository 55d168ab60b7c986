"""The filter ``kinds``: narrows the result to certain kinds of events."""

from collections.abc import Collection, Hashable
from typing import ClassVar, Self

from filters.base import Filter, Role
from filters.error import ParameterError, split_list
from filters.event import Event

KINDS = (
    "post", "delete", "follow", "unfollow", "like", "unlike", "comment", "uncomment", "user_update", "protect",
    "unprotect",
)  # fmt: skip
"""The kinds of events that any stream can ask for."""

PERSONAL_KINDS = (
    "request", "unrequest", "block", "unblock", "mute", "unmute", "message", "notification", "list_create",
    "list_update", "list_delete", "list_add", "list_remove", "group_create", "group_update", "group_delete",
    "group_join", "group_leave",
)  # fmt: skip
"""Kinds that only the users concerned receive, on their own stream."""
DEFAULT_KINDS = "post,delete"  # for a stream without the parameter ``kinds``


class Kinds(Filter):
    """The filter ``kinds``: only events of the given kinds, such as ``post``."""

    __slots__ = ("kinds",)

    name: ClassVar[str] = "kinds"
    role: ClassVar[Role] = "narrowing"
    help: ClassVar[str] = f"Kinds of events, comma-joined, of {', '.join(KINDS)}; `{DEFAULT_KINDS}` if absent."

    def __init__(self, kinds: Collection[str]) -> None:
        self.kinds = frozenset(kinds)

    @classmethod
    def parse(cls, value: str) -> Self:
        return cls.parse_known(value, KINDS)

    @classmethod
    def parse_known(cls, value: str, known: Collection[str]) -> Self:
        """Make the filter from a comma-separated list of kinds. Raises ParameterError for a kind outside ``known``."""
        kinds = split_list(value, param="kinds", max_items=len(known), noun="kinds")
        for kind in kinds:
            if kind not in known:
                raise ParameterError(f"kinds takes {', '.join(known)}, not {kind[:40]!r}", param="kinds")
        return cls(kinds)

    @property
    def canonical_form(self) -> Hashable:
        return self.kinds

    def matches(self, event: Event) -> bool:
        return event.kind in self.kinds
