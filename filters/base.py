"""The contract of a filter. Built-in filters and those of plug-ins implement it in the same way."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Hashable
from typing import Any, ClassVar, Literal, Self, TypeAlias

from filters.error import ParameterError
from filters.event import Event
from filters.grid import box_in_range
from filters.index_keys import Clause, IndexTerms, Key

Role: TypeAlias = Literal["combinable", "standalone", "narrowing"]
"""How a filter combines with others.

A stream matches if one of its ``combinable`` filters matches. A ``standalone`` filter cannot be combined with these. A
``narrowing`` filter must match in addition.
"""

MatchedItem: TypeAlias = dict[str, Any]
"""One item of the member ``matched`` of a message, as JSON."""


class FilterFailure(Exception):
    """A filter raised an exception while the server used it.

    Attributes:
        filter: The filter that raised.
        error: The exception.
        rule_id: Id of the rule that raised, or None if the failure concerns the whole filter.
    """

    def __init__(self, failed_filter: "Filter", error: Exception, rule_id: str | None = None) -> None:
        super().__init__(f"{failed_filter.name} raised {error!r}")
        self.filter = failed_filter
        self.error = error
        self.rule_id = rule_id


def validate_keys(keys: object) -> Clause:
    """Return the index keys from a plug-in as a frozenset. Raises TypeError if they are not a set of strings."""
    if not isinstance(keys, frozenset | set) or not all(isinstance(key, str) for key in keys):
        raise TypeError("keys must be a set of strings")
    return frozenset(keys)


def validate_index_terms(index_terms: object) -> IndexTerms | None:
    """Return a copy of the index terms from a plug-in that cannot change later, or None if there are none.

    Raises TypeError or ValueError if the index cannot hold them.
    """
    if index_terms is None:
        return None
    if not isinstance(index_terms, IndexTerms):
        raise TypeError("index_terms() must return a filters.index_keys.IndexTerms or None")
    proofs, hints = (
        [validate_keys(clause) for clause in clauses] for clauses in (index_terms.exact, index_terms.candidates)
    )
    if index_terms.dynamic and any(len(hint) != 1 for hint in hints):
        raise ValueError("a candidate of dynamic index terms must have exactly one key")
    return IndexTerms(proofs, hints, bool(index_terms.dynamic), [_validate_box(box) for box in index_terms.boxes])


def _validate_box(box: tuple[float, float, float, float]) -> tuple[float, float, float, float]:
    """Return the box as four floats. Raises ValueError if a number is NaN or out of range."""
    west, south, east, north = box
    if not box_in_range(west, south, east, north):
        raise ValueError("a box must be west, south, east, north in degrees")
    return float(west), float(south), float(east), float(north)


class Filter(ABC):
    """One stream parameter, parsed. Immutable. Filters of one class with equal :attr:`canonical_form` are equal.

    To add a filter, register its class in the entry-point group ``stream_server.filters`` under its name, and call
    :func:`filters.testing.check_filter` in its tests.

    Attributes:
        name: Name of the query parameter.
        role: How the filter combines with others (:data:`Role`).
        help: One sentence for the documentation.
        scopes: Scopes that a token needs to use the filter.
        requires: Names of parameters without which the filter is refused.
        usable_in_rules: Whether rules may use the filter as ``name:value``. Rules never use a filter that is
            standalone, or that has ``scopes`` or ``requires``.
        separator: String that joins several values. If it is not a comma, a client may repeat the parameter.
        reports_matches: Whether messages always list the matched items, even without ``explain``.
    """

    __slots__ = ()

    name: ClassVar[str]
    role: ClassVar[Role]
    help: ClassVar[str]
    scopes: ClassVar[frozenset[str]] = frozenset()
    requires: ClassVar[frozenset[str]] = frozenset()
    usable_in_rules: ClassVar[bool] = True
    separator: ClassVar[str] = ","
    reports_matches: ClassVar[bool] = False

    @classmethod
    @abstractmethod
    def parse(cls, value: str) -> Self:
        """Make a filter from the value that a client wrote. Several values are joined by :attr:`separator`.

        Raises :class:`filters.error.ParameterError`, and no other exception, if the value is invalid.
        """

    @abstractmethod
    def matches(self, event: Event) -> bool:
        """Whether the event matches.

        The server calls this for each event that the index cannot decide: be quick, do no I/O.
        """

    @property
    @abstractmethod
    def canonical_form(self) -> Hashable:
        """The value of this filter in one canonical form. Filters with equal forms share the work."""

    def candidate_keys(self) -> frozenset[Key] | None:
        """Return index keys of which each matching event has at least one.

        Compare :attr:`filters.event.Event.index_keys`. None, the default, means that there are no such keys. Then the
        server calls :meth:`matches` for every event.
        """
        return None

    def exact_clauses(self) -> Collection[Clause] | None:
        """Return clauses that describe the filter exactly, or None (the default) if that is impossible.

        Exactly means: an event matches if and only if it has all keys of at least one clause. With None,
        :meth:`matches` decides.
        """
        return None

    def index_terms(self) -> IndexTerms | None:
        """Return how the index finds this filter, or None if the index cannot find it.

        The default uses the exact clauses, or else the candidate keys. Override this method if the filter is exact
        only in part, or needs several keys together. The server calls this method of a plug-in filter once for each
        stream, before the first byte. It refuses the stream if the index cannot hold the result.
        """
        clauses = self.exact_clauses()
        if clauses is not None:
            return IndexTerms(clauses)
        keys = self.candidate_keys()
        return None if keys is None else IndexTerms((), [frozenset((key,)) for key in keys], dynamic=True)

    def matched_items(self, event: Event) -> list[MatchedItem]:  # noqa: ARG002 - the contract fixes the signature
        """Return what in this filter matched the event, for the member ``matched`` of a message.

        Empty unless the class sets ``reports_matches``.
        """
        return []

    def explain(self, event: Event) -> list[MatchedItem]:
        """Return why the event matched: one item per reason, each with the member ``filter``.

        Empty if it did not match.
        """
        return [{"filter": self.name}] if self.matches(event) else []

    def without_failed(self, rule_id: str | None) -> "Filter":  # noqa: ARG002 - filters of several parts use it
        """Return this filter without its failed part.

        ``rule_id`` names the failed rule, or is None for the whole filter.

        By default the result is a filter that matches no event.
        """
        return DisabledFilter(self)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and isinstance(other, Filter) and other.canonical_form == self.canonical_form

    def __hash__(self) -> int:
        return hash((self.name, self.canonical_form))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.canonical_form!r}>"


class DisabledFilter(Filter):
    """The replacement of a filter that raised an exception on a stream. It matches no event."""

    __slots__ = ("failed",)

    name: ClassVar[str] = "disabled"
    role: ClassVar[Role] = "combinable"
    help: ClassVar[str] = "The replacement of a filter that failed."

    def __init__(self, failed: Filter) -> None:
        self.failed = failed

    @classmethod
    def parse(cls, value: str) -> Self:  # noqa: ARG003 - the contract fixes the signature
        raise ParameterError("disabled is no parameter", param="disabled", code="unknown_parameter")

    @property
    def canonical_form(self) -> Hashable:
        return self.failed.name, self.failed.canonical_form

    def candidate_keys(self) -> frozenset[Key]:
        return frozenset()

    def matches(self, event: Event) -> bool:  # noqa: ARG002 - the contract fixes the signature
        return False
