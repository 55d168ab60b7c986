"""The contract of a filter. Built-in filters and those of plug-ins implement it in the same way."""

from abc import ABC, abstractmethod
from collections.abc import Hashable
from typing import Any, ClassVar, Literal, Self, TypeAlias, get_args

from filters.error import ParameterError
from filters.event import Event
from filters.index_keys import Box, Clause, IndexTerms, Key, box_in_range

Role: TypeAlias = Literal["combinable", "standalone", "narrowing"]
"""The way in which a filter combines with others.

A stream matches if one of its ``combinable`` filters matches. A ``standalone`` filter cannot be combined with these. A
``narrowing`` filter must match in addition.
"""
ROLES: tuple[Role, ...] = get_args(Role)

MatchedItem: TypeAlias = dict[str, Any]
"""One item of the member ``matched`` of a message, as JSON."""


class FilterFailure(Exception):
    """A filter raised an exception while the server used it. ``rule_id`` is the failed rule's id, or None."""

    def __init__(self, failed_filter: "Filter", error: Exception, rule_id: str | None = None) -> None:
        super().__init__(f"{failed_filter.name} raised {error!r}")
        self.filter = failed_filter
        self.error = error
        self.rule_id = rule_id


def split_list(value: str, *, param: str, max_items: int, noun: str) -> list[str]:
    """Split a comma-separated value, and strip the spaces around each item.

    Raises ParameterError ``too_many`` for more than ``max_items`` items, before it splits, so that a list which is too
    long costs almost no work. ``noun`` names the items in the message, such as ``ids``.
    """
    count = value.count(",") + 1
    if count > max_items:
        raise ParameterError(f"{param} takes at most {max_items} {noun}, not {count}", param=param, code="too_many")
    return [item.strip() for item in value.split(",")]


def validate_keys(keys: object) -> Clause:
    """Return a plug-in filter's index keys as a frozenset. Raises TypeError if they are not a set of strings."""
    if not isinstance(keys, frozenset | set) or not all(isinstance(key, str) for key in keys):
        raise TypeError("keys must be a set of strings")
    return frozenset(keys)


def validate_index_terms(index_terms: object) -> IndexTerms | None:
    """Check the index terms that a plug-in filter's ``index_terms()`` returned, and return a copy. None stays None.

    Raises TypeError or ValueError if the index cannot hold the terms.
    """
    if index_terms is None:
        return None
    if not isinstance(index_terms, IndexTerms):
        raise TypeError("index_terms() must return a filters.index_keys.IndexTerms or None")
    exact, candidates = list(map(validate_keys, index_terms.exact)), list(map(validate_keys, index_terms.candidates))
    dynamic_keys = None if index_terms.dynamic_keys is None else validate_keys(index_terms.dynamic_keys)
    boxes: list[Box] = []
    for west, south, east, north in index_terms.boxes:
        if not box_in_range(west, south, east, north):
            raise ValueError("a box must be west, south, east, north in degrees")
        boxes.append((float(west), float(south), float(east), float(north)))
    return IndexTerms(exact, candidates, dynamic_keys, boxes)


class Filter(ABC):
    """The base class of all filters. A filter is a stream parameter with its parsed value. Immutable.

    Filters of one class with equal :attr:`canonical_form` are equal. To add a filter, register its class in the
    entry-point group ``stream_server.filters`` under its name, and test it with :func:`filters.testing.check_filter`.

    Attributes:
        name: Name of the query parameter.
        role: How the filter combines with others: ``combinable``, ``standalone`` or ``narrowing`` (see :data:`Role`).
        help: One sentence for the documentation.
        scopes: Scopes that a token needs to use the filter.
        requires: Names of other parameters that the client must send together with this one.
        usable_in_rules: Whether rules may use the filter as ``name:value``. Rules never use a filter that is
            standalone, or that has ``scopes`` or ``requires``.
        separator: String that joins several values. If it is not a comma, a client may repeat the parameter.
        reports_matches: Whether messages always list the matched items, even if the client did not ask for ``explain``.
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
        """Make a filter from the value of its parameter. :attr:`separator` joins the values of a repeated parameter.

        Raises :class:`filters.error.ParameterError`, and no other exception, if the value is invalid.
        """

    @abstractmethod
    def matches(self, event: Event) -> bool:
        """Whether the event matches this filter. The server calls this method often: it must be fast and do no I/O."""

    @property
    @abstractmethod
    def canonical_form(self) -> Hashable:
        """A hashable value, equal for all spellings of one meaning. Clients with equal forms share matching work."""

    def candidate_keys(self) -> frozenset[Key] | None:
        """Return index keys such that each matching event has at least one of them in ``Event.index_keys``.

        None, the default, means that there are no such keys. Then the server calls :meth:`matches` for every event.
        """
        return None

    def index_terms(self) -> IndexTerms | None:
        """Return how the index finds this filter, or None if the server must call :meth:`matches` for every event.

        The default uses the candidate keys. Override this method if keys prove a match, or if a match needs several
        keys together. It is one method for exact clauses, candidates and boxes, because separate methods could
        contradict each other. The server calls this method once for each stream, before the HTTP answer begins, and
        refuses the stream if a plug-in returns invalid index terms.
        """
        keys = self.candidate_keys()
        return None if keys is None else IndexTerms((), (), keys)

    def matched_items(self, event: Event) -> list[MatchedItem]:  # noqa: ARG002 - the contract fixes the signature
        """Return the matching items, such as rules, for a message's ``matched``. Empty unless ``reports_matches``."""
        return []

    def explain(self, event: Event) -> list[MatchedItem]:
        """Return why the event matches, as JSON objects with a member ``filter``. Empty if the event does not match."""
        return [{"filter": self.name}] if self.matches(event) else []

    def without_failed(self, rule_id: str | None) -> "Filter":  # noqa: ARG002 - filters of several parts use it
        """Return a replacement for this filter, which raised an exception. ``rule_id`` is the failed rule's id, if any.

        By default the replacement matches no event. A filter of several rules leaves out only the failed rule.
        """
        return DisabledFilter(self)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and isinstance(other, Filter) and other.canonical_form == self.canonical_form

    def __hash__(self) -> int:
        return hash((self.name, self.canonical_form))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.canonical_form!r}>"


class DisabledFilter(Filter):
    """The filter that replaces a filter which raised an exception on a stream. It matches no event."""

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
