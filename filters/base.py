"""The contract of a filter: what third parties implement, and what the built-in filters implement no less."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Hashable
from typing import Any, ClassVar, Literal, Self, TypeAlias

from filters.error import ParameterError
from filters.event import Event
from filters.key import Clause, Key, Leads

Role: TypeAlias = Literal["any", "whole", "narrow"]
"""How a filter combines: several ``any`` are OR-ed together, ``whole`` stands alone, ``narrow`` is AND-ed to them."""

Mark: TypeAlias = dict[str, Any]
"""One item of ``matched``, as it stands in the JSON of a message."""


class Failed(Exception):
    """A filter raised where it had to answer: ``culprit`` is it, ``error`` is what it raised.

    ``part`` is the id of the rule in which it happened, None where the whole filter is concerned.
    """

    def __init__(self, culprit: "Filter", error: Exception, part: str | None = None) -> None:
        super().__init__(f"{culprit.name} raised {error!r}")
        self.culprit = culprit
        self.error = error
        self.part = part


def sound_keys(keys: object) -> Clause:
    """What a third party calls a set of keys, as nobody changes it any more; raises TypeError where it is none."""
    if not isinstance(keys, frozenset | set) or not all(isinstance(key, str) for key in keys):
        raise TypeError("keys are a set of strings")
    return frozenset(keys)


def sound_leads(leads: object) -> Leads | None:
    """What a third party calls its leads, the same way; raises TypeError or ValueError for what no index can hold."""
    if leads is None:
        return None
    if not isinstance(leads, Leads):
        raise TypeError("leads are a filters.key.Leads, or None")
    proofs, hints = ([sound_keys(clause) for clause in clauses] for clauses in (leads.proofs, leads.hints))
    if leads.live and any(len(hint) != 1 for hint in hints):
        raise ValueError("a live hint has one key")
    return Leads(proofs, hints, bool(leads.live), [_sound_box(box) for box in leads.boxes])


def _sound_box(box: tuple[float, float, float, float]) -> tuple[float, float, float, float]:
    """NaN is within no bounds, so it is no degree either."""
    west, south, east, north = box
    if not (abs(west) <= 180 and abs(east) <= 180 and abs(south) <= 90 and abs(north) <= 90):
        raise ValueError("a box is west, south, east, north in degrees")
    return float(west), float(south), float(east), float(north)


class Filter(ABC):
    """One parameter of a stream, parsed. Immutable; equal if of one class with equal :attr:`key`.

    ``name`` is the query parameter, ``help`` one sentence for the documentation. ``scopes`` are what a token
    needs to use it, ``needs`` the parameters without which it makes no sense. ``operator`` says that rules may use it
    as ``name:value``, which goes for the roles ``any`` and ``narrow``. ``separator`` is what joins several values; one
    that is no comma says that the parameter may be given several times. ``marks`` says that messages name what of it
    matched, also where nobody asks for an explanation.
    Register a class in the entry-point group ``stream_server.filters`` under its name, and call
    :func:`filters.testing.check_filter` in its tests.
    """

    __slots__ = ()

    name: ClassVar[str]
    role: ClassVar[Role]
    help: ClassVar[str]
    scopes: ClassVar[frozenset[str]] = frozenset()
    needs: ClassVar[frozenset[str]] = frozenset()
    operator: ClassVar[bool] = True
    separator: ClassVar[str] = ","
    marks: ClassVar[bool] = False

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
    def key(self) -> Hashable:
        """What this filter asks for in its one canonical form: clients that ask the same share the work."""

    def keys(self) -> frozenset[Key] | None:
        """Keys of which each event that matches has at least one (:attr:`filters.event.Event.keys`).

        None, the default, means that there are no such keys: then every event is asked about.
        """
        return None

    def clauses(self) -> Collection[Clause] | None:
        """The filter said exactly: an event matches if, and only if, it has all keys of one of these clauses.

        None, the default, means that it cannot be said so, and :meth:`matches` has the last word.
        """
        return None

    def leads(self) -> Leads | None:
        """How events find this filter: by its clauses, else by its keys, else, None, not at all.

        What is exact in part, or needs several keys at once, says more here than by these two. A third party's filter
        is asked for these once a stream, before its first byte, and refused where no index can hold the answer.
        """
        clauses = self.clauses()
        if clauses is not None:
            return Leads(clauses)
        keys = self.keys()
        return None if keys is None else Leads((), [frozenset((key,)) for key in keys], live=True)

    def matched(self, event: Event) -> list[Mark]:  # noqa: ARG002 - a filter's signature
        """What of this filter matched ``event``, for the ``matched`` of a message; nothing unless it ``marks``."""
        return []

    def explain(self, event: Event) -> list[Mark]:
        """Why ``event`` matched, one item a reason with the member ``filter``; empty if it did not."""
        return [{"filter": self.name}] if self.matches(event) else []

    def without(self, part: str | None) -> "Filter":  # noqa: ARG002 - those that have parts look at it
        """What is left of this filter once it has failed on a stream: by default, nothing."""
        return Disabled(self)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and isinstance(other, Filter) and other.key == self.key

    def __hash__(self) -> int:
        return hash((self.name, self.key))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.key!r}>"


class Disabled(Filter):
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
    def key(self) -> Hashable:
        return self.failed.name, self.failed.key

    def keys(self) -> frozenset[Key]:
        return frozenset()

    def matches(self, event: Event) -> bool:  # noqa: ARG002 - a filter's signature
        return False
