"""A subscription: what one client's filters ask for together."""

from collections.abc import Collection, Hashable

from filters.base import Filter
from filters.event import Event
from filters.follow import Follow
from filters.key import Key
from filters.kind import KINDS, Kinds


class Subscription:
    """(one of ``bases``) and (all of ``narrows``). Immutable; equal if it asks for the same, in whatever order."""

    __slots__ = ("bases", "key", "kinds", "narrow_key", "narrows")

    def __init__(self, bases: Collection[Filter], narrows: Collection[Filter] = ()) -> None:
        self.bases = tuple(bases)
        self.narrows = tuple(narrows)
        self.narrow_key: Hashable = frozenset(narrows)
        """The canonical form of ``narrows`` alone: the index asks equal ones once an event."""
        self.key: Hashable = (frozenset(bases), self.narrow_key)
        """The canonical form: clients with equal keys get the same events."""
        asked = [narrow.kinds for narrow in narrows if isinstance(narrow, Kinds)]
        self.kinds = frozenset.intersection(*asked) if asked else frozenset(KINDS)
        """The kinds of events that can match."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Subscription) and other.key == self.key

    def __hash__(self) -> int:
        return hash(self.key)

    def __repr__(self) -> str:
        return f"<Subscription {[*self.bases, *self.narrows]!r}>"

    def keys(self) -> frozenset[Key] | None:
        """Keys of which each event that matches has at least one; None if there are no such keys."""
        found: set[Key] = set()
        for base in self.bases:
            keys = base.keys()
            if keys is None:
                return None
            found |= keys
        return frozenset(found)

    def matches(self, event: Event) -> bool:
        """Whether ``event`` is asked for."""
        return self.admits(event) and any(base.matches(event) for base in self.bases)

    def admits(self, event: Event) -> bool:
        """Whether ``event`` passes all that narrows."""
        return all(narrow.matches(event) for narrow in self.narrows)

    @property
    def needs_me(self) -> bool:
        """Whether ``@me`` takes part, so that the subscription is one user's own."""
        return any(isinstance(base, Follow) and base.me for base in self.bases)

    @property
    def impersonal(self) -> bool:
        """Whether it is the same for everyone who asks: public events only, nobody's blocks and mutes."""
        return all(base.role == "whole" for base in self.bases)

    @property
    def scopes(self) -> frozenset[str]:
        """What a token needs for this."""
        return frozenset[str]().union(*(part.scopes for part in (*self.bases, *self.narrows)))

    def with_following(self, following: Collection[str]) -> "Subscription":
        """The same with ``@me`` standing for ``following``, a set that its owner goes on changing.

        After a change an :class:`filters.index.Index` that holds the subscription has to be told.
        """
        bases = [base.with_following(following) if isinstance(base, Follow) else base for base in self.bases]
        return Subscription(bases, self.narrows)
