"""Inverted lists: from the keys of an event, and from where it is, to the items whose base filters match it.

A filter gives leads. What is found by a proof or by a box matches; what is found by a hint, or by nothing at all, has
to be asked.
"""

from collections.abc import Callable, Hashable, Sequence
from typing import Generic, TypeVar

from filters.box_index import BoxIndex
from filters.event import Event
from filters.index_keys import RULE_KEY_PREFIX, Clause, IndexTerms, Key
from filters.subscription import Subscription
from filters.trie import Trie

T = TypeVar("T", bound=Hashable)


class Postings(Generic[T]):
    """The items of subscriptions whose narrowing is the same, and is looked at elsewhere."""

    def __init__(self) -> None:
        self.unindexed: set[T] = set()
        self._clauses: Trie[T] = Trie()
        self._boxes: BoxIndex[T] = BoxIndex()
        self._live_keys: dict[T, set[Key]] = {}
        self._verifiers: dict[T, Callable[[Event], bool]] = {}
        """How to ask the items that are not all proof."""
        self._rule_key_clauses = 0
        """How many clauses have a key that an event makes for rules alone."""

    def add(self, item: T, subscription: Subscription, index_terms: Sequence[IndexTerms | None]) -> None:
        """List ``item`` under what its bases need: ``index_terms`` are the subscription's."""
        for base, found_by in zip(subscription.bases, index_terms, strict=True):
            if not self._add_filter(item, found_by):
                self._verifiers[item] = base.matches if len(subscription.bases) == 1 else subscription.matches_base

    def remove(self, item: T, subscription: Subscription) -> None:
        """Undo :meth:`add` of the same two, whose leads are what they were."""
        self.unindexed.discard(item)
        self._verifiers.pop(item, None)
        for key in self._live_keys.pop(item, ()):
            self._remove_clause(frozenset((key,)), item, exact=False)
        for leads in subscription.index_terms():
            if leads is not None:
                self._remove_filter(item, leads)

    def add_key(self, item: T, key: Key) -> None:
        """Ask ``item`` also about events with ``key``."""
        keys = self._live_keys.setdefault(item, set())
        if key not in keys:
            keys.add(key)
            self._add_clause(frozenset((key,)), item, exact=False)

    def remove_key(self, item: T, key: Key) -> None:
        """Do not ask ``item`` about events with ``key`` any more, unless for another of its keys."""
        keys = self._live_keys.get(item)
        if keys is not None and key in keys:
            keys.discard(key)
            self._remove_clause(frozenset((key,)), item, exact=False)

    def find(self, event: Event, verify: Callable[[T, Event], bool]) -> set[T]:
        """The items that match; ``verify`` has the last word where there is no proof."""
        found: set[T] = set()
        if self._boxes:
            self._boxes.find(event, found)
        asked: set[T] = set(self.unindexed) if self.unindexed else set()
        if self._clauses:
            self._clauses.find(event.index_keys if self._rule_key_clauses else event.common_keys, found, asked)
        if asked:
            asked -= found
            found.update(self._verify(asked, event, verify))
        return found

    def _verify(self, items: set[T], event: Event, fallback: Callable[[T, Event], bool]) -> list[T]:
        """Those who match. Their filters are asked at first hand; if one raises, all once more, in earnest."""
        checks = self._verifiers
        try:
            return [item for item in items if checks[item](event)]
        except Exception:  # noqa: BLE001 - a third party's filter may raise anything
            return [item for item in items if fallback(item, event)]

    def _add_filter(self, item: T, index_terms: IndexTerms | None) -> bool:
        """List ``item`` by one of its filters; True if that is found by proofs and boxes alone."""
        if index_terms is None:
            self.unindexed.add(item)
            return False
        if index_terms.boxes:
            self._boxes.add(item, index_terms.boxes)
        for clause in index_terms.exact:
            self._add_clause(clause, item, exact=True)
        for clause in index_terms.candidates:
            if index_terms.dynamic:
                self.add_key(item, *clause)
            else:
                self._add_clause(clause, item, exact=False)
        return not index_terms.candidates and not index_terms.dynamic

    def _remove_filter(self, item: T, index_terms: IndexTerms) -> None:
        if index_terms.boxes:
            self._boxes.remove(item, index_terms.boxes)
        for clause in index_terms.exact:
            self._remove_clause(clause, item, exact=True)
        for clause in () if index_terms.dynamic else index_terms.candidates:
            self._remove_clause(clause, item, exact=False)

    def _add_clause(self, clause: Clause, item: T, *, exact: bool) -> None:
        self._clauses.add(clause, item, exact=exact)
        self._rule_key_clauses += _has_rule_key(clause)

    def _remove_clause(self, clause: Clause, item: T, *, exact: bool) -> None:
        """Take ``item`` off a list, and the list away with its last one: churn must not leave a trace."""
        self._clauses.remove(clause, item, exact=exact)
        self._rule_key_clauses -= _has_rule_key(clause)


def _has_rule_key(clause: Clause) -> bool:
    for key in clause:  # noqa: SIM110 - a generator takes twice as long
        if key[:1] == RULE_KEY_PREFIX:
            return True
    return False
