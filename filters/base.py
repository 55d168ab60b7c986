"""The contract of a filter: what third parties implement, and what the built-in filters implement no less."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Hashable
from typing import ClassVar, Literal, Self, TypeAlias

from filters.event import Event
from filters.key import Clause, Key

Role: TypeAlias = Literal["any", "whole", "narrow"]
"""How a filter combines: several ``any`` are OR-ed together, ``whole`` stands alone, ``narrow`` is AND-ed to them."""


class Filter(ABC):
    """One parameter of a stream, parsed. Immutable; equal if of one class with equal :attr:`key`.

    ``name`` is the query parameter, ``help`` one sentence for the documentation. ``scopes`` are what a token
    needs to use it, ``needs`` the parameters without which it makes no sense.
    Register a class in the entry-point group ``stream_server.filters`` under its name, and call
    :func:`filters.testing.check_filter` in its tests.
    """

    __slots__ = ()

    name: ClassVar[str]
    role: ClassVar[Role]
    help: ClassVar[str]
    scopes: ClassVar[frozenset[str]] = frozenset()
    needs: ClassVar[frozenset[str]] = frozenset()

    @classmethod
    @abstractmethod
    def parse(cls, value: str) -> Self:
        """The filter that a client asks for by ``value``; a parameter given twice comes joined by a comma.

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

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and isinstance(other, Filter) and other.key == self.key

    def __hash__(self) -> int:
        return hash((self.name, self.key))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.key!r}>"
