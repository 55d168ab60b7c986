"""A subscription: what one client's filters ask for together."""

from collections.abc import Collection, Hashable

from filters.base import Failed, Filter, Mark, sound_leads
from filters.event import Event
from filters.follow import Follow
from filters.key import Key, Leads
from filters.kind import KINDS, Kinds


class Subscription:
    """(one of ``bases``) and (all of ``narrows``). Immutable; equal if it asks for the same, in whatever order.

    ``explain`` asks for the reasons of each match. ``impersonal`` says that it is the same for everyone who asks:
    public events only, nobody's blocks and mutes; if it is not said, a base that stands alone is so.
    """

    __slots__ = ("_costly", "_told", "bases", "explain", "impersonal", "key", "kinds", "marks", "narrow_key", "narrows")

    def __init__(
        self,
        bases: Collection[Filter],
        narrows: Collection[Filter] = (),
        *,
        explain: bool = False,
        impersonal: bool | None = None,
    ) -> None:
        self.bases = tuple(bases)
        self.narrows = tuple(narrows)
        self.explain = explain
        self.impersonal = all(base.role == "whole" for base in self.bases) if impersonal is None else impersonal
        self._costly: list[str] | None = None
        self._told: tuple[tuple[Filter, Leads | None], ...] = ()
        self.marks = explain or any(base.marks for base in self.bases)
        """Whether messages name what matched."""
        self.narrow_key: Hashable = frozenset(narrows)
        """The canonical form of ``narrows`` alone: the index asks equal ones once an event."""
        self.key: Hashable = (frozenset(bases), self.narrow_key, explain, self.impersonal)
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
        """Whether ``event`` is asked for; raises Failed where a filter raises."""
        return self.admits(event) and self.asks_for(event)

    def asks_for(self, event: Event) -> bool:
        """Whether ``event`` matches one of the bases; raises Failed where a filter raises."""
        for base in self.bases:
            try:
                if base.matches(event):
                    return True
            except Exception as error:
                raise _failed(base, error) from error
        return False

    def admits(self, event: Event) -> bool:
        """Whether ``event`` passes all that narrows; raises Failed where a filter raises."""
        for narrow in self.narrows:
            try:
                if not narrow.matches(event):
                    return False
            except Exception as error:
                raise _failed(narrow, error) from error
        return True

    def matched(self, event: Event) -> list[Mark]:
        """What of this matched an ``event`` that does: rules by their names, all filters where reasons are asked for.

        Raises Failed where a filter raises.
        """
        return [mark for base in self.bases for mark in self.marks_of(base, event)]

    def marks_of(self, base: Filter, event: Event) -> list[Mark]:
        """What one of the bases says of that; raises Failed."""
        try:
            return list(base.explain(event) if self.explain else base.matched(event))
        except Exception as error:
            raise _failed(base, error) from error

    @property
    def needs_me(self) -> bool:
        """Whether ``@me`` takes part, so that the subscription is one user's own."""
        return any(isinstance(base, Follow) and base.me for base in self.bases)

    @property
    def scopes(self) -> frozenset[str]:
        """What a token needs for this."""
        return frozenset[str]().union(*(part.scopes for part in (*self.bases, *self.narrows)))

    @property
    def costly(self) -> list[str]:
        """The names of the bases to which nothing leads, so that this has to be asked about every event.

        A base that stands alone is no burden: it is asked once for all who ask for it. Looked at once, since the leads
        of thousands of ids take milliseconds; raises Failed where a filter raises.
        """
        if self._costly is None:
            found = zip(self.bases, self.leads(), strict=True)
            self._costly = [base.name for base, leads in found if base.role == "any" and leads is None]
        return self._costly

    def leads(self) -> list[Leads | None]:
        """How events find each of the bases, in their order.

        A third party is asked once and checked, since it may raise later, or say something else; a filter of this
        package says the same again, and thousands of ids are not kept twice. Raises Failed where a filter raises, or
        says what no index can hold.
        """
        return [self._leads_of(base) for base in self.bases]

    def _leads_of(self, base: Filter) -> Leads | None:
        if _is_ours(base):
            return base.leads()
        for asked, leads in self._told:  # by itself: its key is a third party's too
            if asked is base:
                return leads
        try:
            leads = sound_leads(base.leads())
        except Exception as error:
            raise _failed(base, error) from error
        self._told = (*self._told, (base, leads))
        return leads

    def base(self, name: str) -> Filter | None:
        """The base of this name, None if there is none."""
        return next((base for base in self.bases if base.name == name), None)

    def with_base(self, new: Filter) -> "Subscription":
        """The same with ``new`` in the place of the base that has its name."""
        return self._with([new if base.name == new.name else base for base in self.bases], self.narrows)

    def with_following(self, following: Collection[str]) -> "Subscription":
        """The same with ``@me`` standing for ``following``, a set that its owner goes on changing.

        After a change an :class:`filters.index.Index` that holds the subscription has to be told.
        """
        bases = [base.with_following(following) if isinstance(base, Follow) else base for base in self.bases]
        return self._with(bases, self.narrows)

    def without(self, failed: Failed) -> "Subscription":
        """The same without what has failed: that matches nothing any more, and lets nothing pass that it narrowed."""

        def left(parts: Collection[Filter]) -> list[Filter]:
            return [part.without(failed.part) if part == failed.culprit else part for part in parts]

        return self._with(left(self.bases), left(self.narrows))

    def _with(self, bases: Collection[Filter], narrows: Collection[Filter]) -> "Subscription":
        changed = Subscription(bases, narrows, explain=self.explain, impersonal=self.impersonal)
        changed._told = self._told
        return changed


def _is_ours(base: Filter) -> bool:
    return type(base).__module__.startswith("filters.")


def _failed(part: Filter, error: Exception) -> Failed:
    """A filter of many parts says by itself which of them failed."""
    return Failed(part, error.error, error.part) if isinstance(error, Failed) else Failed(part, error)
