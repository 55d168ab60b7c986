"""The condition of an operator: what it checks in an event."""

import re
from abc import ABC, abstractmethod
from collections.abc import Collection
from typing import NamedTuple

from filters.entities import Indices
from filters.event import Event
from filters.index_keys import Clause, Key

_PLAIN = re.compile(r'[^\s()"\[\]]+')


class OperatorValue(NamedTuple):
    """The value of an operator as the client wrote it.

    Attributes:
        text: The value without quotes.
        column: Column at which the value begins, in code points from 1.
        quoted: Whether the value had quotes.
    """

    text: str
    column: int
    quoted: bool


class Condition(ABC):
    """The condition of one operator with its value. Immutable; ``text`` is its canonical form in a rule."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text

    @abstractmethod
    def matches(self, event: Event) -> bool:
        """Whether the event fulfils the condition."""

    def candidate_keys(self) -> frozenset[Key] | None:
        """Return index keys of which each matching event has at least one, or None (the default) if there are none."""
        return None

    def exact_clauses(self) -> Collection[Clause] | None:
        """Return clauses that describe the condition exactly, or None.

        See :meth:`filters.base.Filter.exact_clauses`.
        """
        return None

    @abstractmethod
    def describe(self, event: Event) -> str:
        """Return what the condition found or did not find, in a few words without a full stop."""

    def indices(self, event: Event) -> list[Indices]:  # noqa: ARG002 - those that look at the text do
        """Return the positions in the text of the event that fulfil the condition, in code points."""
        return []


def format_value(value: str) -> str:
    """Return the value as it stands after the colon of an operator, in quotes if it needs them."""
    return value if _PLAIN.fullmatch(value) else quote_value(value)


def quote_value(value: str) -> str:
    """Return the value in quotes. Quotes and backslashes inside it are escaped."""
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
