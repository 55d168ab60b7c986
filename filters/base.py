"""The contract of a filter: what third parties implement, and what the built-in filters implement no less."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Hashable
from typing import Any, ClassVar, Literal, Self, TypeAlias

from filters.error import ParameterError
from filters.event import Event
from filters.index_keys import Clause, IndexTerms, Key

Role: TypeAlias = Literal["any", "whole", "narrow"]
"""How a filter combines: several ``any`` are OR-ed together, ``whole`` stands alone, ``narrow`` is AND-ed to them."""

MatchedItem: TypeAlias = dict[str, Any]
"""One item of ``matched``, as it stands in the JSON of a message."""


class FilterFailure(Exception):
    """A filter raised where it had to answer: ``filter`` is it, ``error`` is what it raised.

    ``rule_id`` is the id of the rule in which it happened, None where the whole filter is concerned.
    """

    def __init__(self, failed_filter: "Filter", error: Exception, rule_id: str | None = None) -> None:
        super().__init__(f"{failed_filter.name} raised {error!r}")
        self.filter = failed_filter
        self.error = error
        self.rule_id = rule_id


def validate_keys(keys: object) -> Clause:
    """What a third party calls a set of keys, as nobody changes it any more; raises TypeError where it is none."""
    if not isinstance(keys, frozenset | set) or not all(isinstance(key, str) for key in keys):
        raise TypeError("keys are a set of strings")
    return frozenset(keys)


def validate_index_terms(index_terms: object) -> IndexTerms | None:
    """What a third party calls its leads, the same way; raises TypeError or ValueError for what no index can hold."""
    if index_terms is None:
        return None
    if not isinstance(index_terms, IndexTerms):
        raise TypeError("leads are a filters.index_keys.IndexTerms, or None")
    proofs, hints = (
        [validate_keys(clause) for clause in clauses] for clauses in (index_terms.exact, index_terms.candidates)
    )
    if index_terms.dynamic and any(len(hint) != 1 for hint in hints):
        raise ValueError("a live hint has one key")
    return IndexTerms(proofs, hints, bool(index_terms.dynamic), [_validate_box(box) for box in index_terms.boxes])


def _validate_box(box: tuple[float, float, float, float]) -> tuple[float, float, float, float]:
    """NaN is within no bounds, so it is no degree either."""
    west, south, east, north = box
    if not (abs(west) <= 180 and abs(east) <= 180 and abs(south) <= 90 and abs(north) <= 90):
        raise ValueError("a box is west, south, east, north in degrees")
    return float(west), float(south), float(east), float(north)


class Filter(ABC):
    """One parameter of a stream, parsed. Immutable; equal if of one class with equal :attr:`canonical_form`.

    ``name`` is the query parameter, ``help`` one sentence for the documentation. ``scopes`` are what a token
    needs to use it, ``requires`` the parameters without which it makes no sense. ``usable_in_rules`` says that rules may use it
    as ``name:value``, which goes for the roles ``any`` and ``narrow``. ``separator`` is what joins several values; one
    that is no comma says that the parameter may be given several times. ``reports_matches`` says that messages name what of it
    matched, also where nobody asks for an explanation.
    Register a class in the entry-point group ``stream_server.filters`` under its name, and call
    :func:`filters.testing.check_filter` in its tests.
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
        """The filter that a client asks for by ``value``, whose parts are joined by its ``separator``.

        Raises :class:`filters.error.ParameterError`, and nothing else, for what it cannot be.
        """

    @abstractmethod
    def matches(self, event: Event) -> bool:
        """Whether ``event`` passes. Called for each event that the index did not rule out: be quick, do no I/O."""

    @property
    @abstractmethod
    def canonical_form(self) -> Hashable:
        """What this filter asks for in its one canonical form: clients that ask the same share the work."""

    def candidate_keys(self) -> frozenset[Key] | None:
        """Keys of which each event that matches has at least one (:attr:`filters.event.Event.index_keys`).

        None, the default, means that there are no such keys: then every event is asked about.
        """
        return None

    def exact_clauses(self) -> Collection[Clause] | None:
        """The filter said exactly: an event matches if, and only if, it has all keys of one of these clauses.

        None, the default, means that it cannot be said so, and :meth:`matches` has the last word.
        """
        return None

    def index_terms(self) -> IndexTerms | None:
        """How events find this filter: by its clauses, else by its keys, else, None, not at all.

        What is exact in part, or needs several keys at once, says more here than by these two. A third party's filter
        is asked for these once a stream, before its first byte, and refused where no index can hold the answer.
        """
        clauses = self.exact_clauses()
        if clauses is not None:
            return IndexTerms(clauses)
        keys = self.candidate_keys()
        return None if keys is None else IndexTerms((), [frozenset((key,)) for key in keys], dynamic=True)

    def matched_items(self, event: Event) -> list[MatchedItem]:  # noqa: ARG002 - a filter's signature
        """What of this filter matched ``event``, for the ``matched_items`` of a message; nothing unless it ``reports_matches``."""
        return []

    def explain(self, event: Event) -> list[MatchedItem]:
        """Why ``event`` matched, one item a reason with the member ``filter``; empty if it did not."""
        return [{"filter": self.name}] if self.matches(event) else []

    def without_failed(self, rule_id: str | None) -> "Filter":  # noqa: ARG002 - those that have parts look at it
        """What is left of this filter once it has failed on a stream: by default, nothing."""
        return DisabledFilter(self)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and isinstance(other, Filter) and other.canonical_form == self.canonical_form

    def __hash__(self) -> int:
        return hash((self.name, self.canonical_form))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.canonical_form!r}>"


class DisabledFilter(Filter):
    """In the place of a filter that failed: it matches nothing, and nothing finds it."""

    __slots__ = ("failed",)

    name: ClassVar[str] = "disabled"
    role: ClassVar[Role] = "any"
    help: ClassVar[str] = "Stands where a filter has failed."

    def __init__(self, failed: Filter) -> None:
        self.failed = failed

    @classmethod
    def parse(cls, value: str) -> Self:  # noqa: ARG003 - a filter's signature
        raise ParameterError("disabled is no parameter", param="disabled", code="unknown_parameter")

    @property
    def canonical_form(self) -> Hashable:
        return self.failed.name, self.failed.canonical_form

    def candidate_keys(self) -> frozenset[Key]:
        return frozenset()

    def matches(self, event: Event) -> bool:  # noqa: ARG002 - a filter's signature
        return False
