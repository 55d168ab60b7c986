"""A subscription: what one client's filters ask for together."""

from collections.abc import Collection, Hashable

from filters.base import Filter, FilterFailure, MatchedItem, validate_index_terms
from filters.event import Event
from filters.follow import Follow
from filters.index_keys import IndexTerms, Key
from filters.kind import KINDS, Kinds


class Subscription:
    """(one of ``bases``) and (all of ``narrowing``). Immutable; equal if it asks for the same, in whatever order.

    ``explain`` asks for the reasons of each match. ``viewer_independent`` says that it is the same for everyone who asks:
    public events only, nobody's blocks and mutes; if it is not said, a base that stands alone is so.
    """

    __slots__ = (
        "_plugin_index_terms",
        "_unindexed_bases",
        "bases",
        "canonical_form",
        "explain",
        "kinds",
        "narrowing",
        "narrowing_key",
        "reports_matches",
        "viewer_independent",
    )

    def __init__(
        self,
        bases: Collection[Filter],
        narrowing: Collection[Filter] = (),
        *,
        explain: bool = False,
        viewer_independent: bool | None = None,
    ) -> None:
        self.bases = tuple(bases)
        self.narrowing = tuple(narrowing)
        self.explain = explain
        self.viewer_independent = (
            all(base.role == "whole" for base in self.bases) if viewer_independent is None else viewer_independent
        )
        self._unindexed_bases: list[str] | None = None
        self._plugin_index_terms: tuple[tuple[Filter, IndexTerms | None], ...] = ()
        self.reports_matches = explain or any(base.reports_matches for base in self.bases)
        """Whether messages name what matched."""
        self.narrowing_key: Hashable = frozenset(narrowing)
        """The canonical form of ``narrowing`` alone: the index asks equal ones once an event."""
        self.canonical_form: Hashable = (frozenset(bases), self.narrowing_key, explain, self.viewer_independent)
        """The canonical form: clients with equal keys get the same events."""
        asked = [narrow.kinds for narrow in narrowing if isinstance(narrow, Kinds)]
        self.kinds = frozenset.intersection(*asked) if asked else frozenset(KINDS)
        """The kinds of events that can match."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Subscription) and other.canonical_form == self.canonical_form

    def __hash__(self) -> int:
        return hash(self.canonical_form)

    def __repr__(self) -> str:
        return f"<Subscription {[*self.bases, *self.narrowing]!r}>"

    def candidate_keys(self) -> frozenset[Key] | None:
        """Keys of which each event that matches has at least one; None if there are no such keys."""
        found: set[Key] = set()
        for base in self.bases:
            keys = base.candidate_keys()
            if keys is None:
                return None
            found |= keys
        return frozenset(found)

    def matches(self, event: Event) -> bool:
        """Whether ``event`` is asked for; raises Failed where a filter raises."""
        return self.passes_narrowing(event) and self.matches_base(event)

    def matches_base(self, event: Event) -> bool:
        """Whether ``event`` matches one of the bases; raises Failed where a filter raises."""
        for base in self.bases:
            try:
                if base.matches(event):
                    return True
            except Exception as error:
                raise _as_filter_failure(base, error) from error
        return False

    def passes_narrowing(self, event: Event) -> bool:
        """Whether ``event`` passes all that narrows; raises Failed where a filter raises."""
        for narrow in self.narrowing:
            try:
                if not narrow.matches(event):
                    return False
            except Exception as error:
                raise _as_filter_failure(narrow, error) from error
        return True

    def matched_items(self, event: Event) -> list[MatchedItem]:
        """What of this matched an ``event`` that does: rules by their names, all filters where reasons are asked for.

        Raises Failed where a filter raises.
        """
        return [mark for base in self.bases for mark in self.base_matched_items(base, event)]

    def base_matched_items(self, base: Filter, event: Event) -> list[MatchedItem]:
        """What one of the bases says of that; raises Failed."""
        try:
            return list(base.explain(event) if self.explain else base.matched_items(event))
        except Exception as error:
            raise _as_filter_failure(base, error) from error

    @property
    def uses_me(self) -> bool:
        """Whether ``@me`` takes part, so that the subscription is one user's own."""
        return any(isinstance(base, Follow) and base.includes_me for base in self.bases)

    @property
    def required_scopes(self) -> frozenset[str]:
        """What a token needs for this."""
        return frozenset[str]().union(*(part.scopes for part in (*self.bases, *self.narrowing)))

    @property
    def unindexed_bases(self) -> list[str]:
        """The names of the bases to which nothing leads, so that this has to be asked about every event.

        A base that stands alone is no burden: it is asked once for all who ask for it. Looked at once, since the leads
        of thousands of ids take milliseconds; raises Failed where a filter raises.
        """
        if self._unindexed_bases is None:
            found = zip(self.bases, self.index_terms(), strict=True)
            self._unindexed_bases = [base.name for base, leads in found if base.role == "any" and leads is None]
        return self._unindexed_bases

    def index_terms(self) -> list[IndexTerms | None]:
        """How events find each of the bases, in their order.

        A third party is asked once and checked, since it may raise later, or say something else; a filter of this
        package says the same again, and thousands of ids are not kept twice. Raises Failed where a filter raises, or
        says what no index can hold.
        """
        return [self._index_terms_of(base) for base in self.bases]

    def _index_terms_of(self, base: Filter) -> IndexTerms | None:
        if _is_builtin(base):
            return base.index_terms()
        for asked, leads in self._plugin_index_terms:  # by itself: its key is a third party's too
            if asked is base:
                return leads
        try:
            leads = validate_index_terms(base.index_terms())
        except Exception as error:
            raise _as_filter_failure(base, error) from error
        self._plugin_index_terms = (*self._plugin_index_terms, (base, leads))
        return leads

    def find_base(self, name: str) -> Filter | None:
        """The base of this name, None if there is none."""
        return next((base for base in self.bases if base.name == name), None)

    def replace_base(self, new_base: Filter) -> "Subscription":
        """The same with ``new_base`` in the place of the base that has its name."""
        return self._replace_filters(
            [new_base if base.name == new_base.name else base for base in self.bases], self.narrowing
        )

    def with_following(self, following: Collection[str]) -> "Subscription":
        """The same with ``@me`` standing for ``following``, a set that its owner goes on changing.

        After a change an :class:`filters.subscription_index.SubscriptionIndex` that holds the subscription has to be told.
        """
        bases = [base.with_following(following) if isinstance(base, Follow) else base for base in self.bases]
        return self._replace_filters(bases, self.narrowing)

    def without_failed(self, failed: FilterFailure) -> "Subscription":
        """The same without what has failed: that matches nothing any more, and lets nothing pass that it narrowed."""

        def left(parts: Collection[Filter]) -> list[Filter]:
            return [part.without_failed(failed.rule_id) if part == failed.filter else part for part in parts]

        return self._replace_filters(left(self.bases), left(self.narrowing))

    def _replace_filters(self, bases: Collection[Filter], narrows: Collection[Filter]) -> "Subscription":
        changed = Subscription(bases, narrows, explain=self.explain, viewer_independent=self.viewer_independent)
        changed._plugin_index_terms = self._plugin_index_terms
        return changed


def _is_builtin(base: Filter) -> bool:
    return type(base).__module__.startswith("filters.")


def _as_filter_failure(part: Filter, error: Exception) -> FilterFailure:
    """A filter of many parts says by itself which of them failed."""
    return (
        FilterFailure(part, error.error, error.rule_id)
        if isinstance(error, FilterFailure)
        else FilterFailure(part, error)
    )
