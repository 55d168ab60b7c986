"""The condition of an operator: what it checks in an event. And the exception for a rule that cannot be read."""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import NamedTuple

from filters.entities import Indices
from filters.error import ParameterError
from filters.event import Event
from filters.index_keys import IndexTerms, Key


class RuleError(ParameterError):
    """A rule is invalid at ``column``, in code points from 1. ``expected`` says what should stand there, or asks it."""

    def __init__(self, problem: str, *, column: int, expected: str) -> None:
        hint = expected if expected.startswith("did you mean ") else f"expected {expected}"
        super().__init__(f"{problem}; column {column}: {hint}", param="rule")
        self.problem = problem
        self.column = column
        self.expected = expected

    def shifted(self, columns: int, prefix: str = "") -> "RuleError":
        """Return a copy with ``columns`` added to ``column``, for a rule that begins so far inside a text."""
        return RuleError(prefix + self.problem, column=self.column + columns, expected=self.expected)


_PLAIN = re.compile(r'[^\s()"\[\]]+')


class OperatorValue(NamedTuple):
    """The value of a rule operator, without quotes. ``column`` is its place in the rule, in code points from 1."""

    text: str
    column: int
    quoted: bool

    def refusal(self, problem: str, expected: str) -> RuleError:
        """Return the RuleError for this invalid value. Its column is the one at which the value begins."""
        return RuleError(problem, column=self.column, expected=expected)


class Condition(ABC):
    """The check that one rule operator with its value makes on an event. Immutable; ``text`` is its canonical form."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text

    @abstractmethod
    def matches(self, event: Event) -> bool:
        """Whether the event fulfils the condition without its minus, if any: the operator applies the minus."""

    def index_terms(self) -> IndexTerms | None:
        """Return how the index finds each matching event, or None (the default) if any event may match."""
        return None

    @abstractmethod
    def describe(self, event: Event) -> str:
        """Return what the condition found or did not find in the event, in a few words without a full stop."""

    def indices(self, event: Event) -> list[Indices]:  # noqa: ARG002 - conditions on the text use it
        """Return start and end, in code points, of each part of the event's text that fulfils the condition."""
        return []


class KeyCondition(Condition):
    """A condition that holds if and only if the event has one of the index keys ``keys``, none of them of ``meta``.

    ``describe`` gets an event and returns two explanations: the first for a match, the second for no match.
    """

    __slots__ = ("_describe", "keys")

    def __init__(self, text: str, keys: Iterable[Key], describe: Callable[[Event], tuple[str, str]]) -> None:
        super().__init__(text)
        self.keys = frozenset(keys)
        self._describe = describe

    def index_terms(self) -> IndexTerms:
        return IndexTerms([frozenset((key,)) for key in self.keys])

    def matches(self, event: Event) -> bool:
        return not self.keys.isdisjoint(event.rule_keys)

    def describe(self, event: Event) -> str:
        matching, different = self._describe(event)
        return matching if self.matches(event) else different


def format_value(value: str) -> str:
    """Return the value as it stands after the colon of an operator: in quotes if it has spaces, quotes or brackets."""
    return value if _PLAIN.fullmatch(value) else quote_value(value)


def quote_value(value: str) -> str:
    """Return the value in double quotes, with a backslash before each quote and backslash inside it."""
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
