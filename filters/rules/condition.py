"""What one operator of a rule asks of an event."""

import re
from abc import ABC, abstractmethod
from collections.abc import Collection
from typing import NamedTuple

from filters.entities import Indices
from filters.event import Event
from filters.index_keys import Clause, Key

_PLAIN = re.compile(r'[^\s()"\[\]]+')


class OperatorValue(NamedTuple):
    """The value of an operator as a client wrote it, without its quotes, and the column at which it begins."""

    text: str
    column: int
    quoted: bool


class Condition(ABC):
    """One operator with its value. Immutable; ``text`` is its one canonical form, as it stands in a rule."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text

    @abstractmethod
    def matches(self, event: Event) -> bool:
        """Whether ``event`` is so."""

    def candidate_keys(self) -> frozenset[Key] | None:
        """Keys of which each event that matches has at least one; None, the default, where there are none."""
        return None

    def exact_clauses(self) -> Collection[Clause] | None:
        """The condition said exactly, as by :meth:`filters.base.Filter.exact_clauses`; None where that cannot be."""
        return None

    @abstractmethod
    def describe(self, event: Event) -> str:
        """What was found, or was not, in a few words without a full stop."""

    def indices(self, event: Event) -> list[Indices]:  # noqa: ARG002 - those that look at the text do
        """Where in the text of ``event`` it was found, in code points; empty where that is no place in the text."""
        return []


def format_value(value: str) -> str:
    """``value`` as it stands behind the colon of an operator: in quotes where it needs them."""
    return value if _PLAIN.fullmatch(value) else quote_value(value)


def quote_value(value: str) -> str:
    """``value`` in quotes."""
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
