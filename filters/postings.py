"""Inverted lists: from the keys and the location of an event to the items whose base filters match it.

Each filter gives its index terms. An item found by an exact clause or by a box matches. An item found by a candidate
clause, or an item without index terms, must be verified.
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
    """The items of subscriptions with equal narrowing filters. The caller checks the narrowing filters itself.

    Attributes:
        unindexed: Items without index terms. They are verified for every event.
    """

    def __init__(self) -> None:
        self.unindexed: set[T] = set()
        self._clauses: Trie[T] = Trie()
        self._boxes: BoxIndex[T] = BoxIndex()
        self._dynamic_keys: dict[T, set[Key]] = {}
        self._verifiers: dict[T, Callable[[Event], bool]] = {}
        """The function that verifies each item which is not found by exact terms alone."""
        self._rule_key_clauses = 0
        """Number of clauses with a key that only rules use. While it is 0, events need not compute these keys."""

    def add(self, item: T, subscription: Subscription, index_terms: Sequence[IndexTerms | None]) -> None:
        """Add the item under the index terms of each base of its subscription."""
        for base, terms in zip(subscription.bases, index_terms, strict=True):
            if not self._add_filter(item, terms):
                self._verifiers[item] = base.matches if len(subscription.bases) == 1 else subscription.matches_base

    def remove(self, item: T, subscription: Subscription) -> None:
        """Undo :meth:`add`. The index terms of the subscription must be the same as then."""
        self.unindexed.discard(item)
        self._verifiers.pop(item, None)
        for key in self._dynamic_keys.pop(item, ()):
            self._remove_clause(frozenset((key,)), item, exact=False)
        for terms in subscription.index_terms():
            if terms is not None:
                self._remove_filter(item, terms)

    def add_key(self, item: T, key: Key) -> None:
        """Verify the item for events with ``key`` from now on."""
        keys = self._dynamic_keys.setdefault(item, set())
        if key not in keys:
            keys.add(key)
            self._add_clause(frozenset((key,)), item, exact=False)

    def remove_key(self, item: T, key: Key) -> None:
        """Stop verifying the item for events with ``key``. Other keys of the item are not affected."""
        keys = self._dynamic_keys.get(item)
        if keys is not None and key in keys:
            keys.discard(key)
            self._remove_clause(frozenset((key,)), item, exact=False)

    def find(self, event: Event, verify: Callable[[T, Event], bool]) -> set[T]:
        """Return the items that match the event.

        If a verifier raises, ``verify`` checks all items that are not exact again; it must not raise.
        """
        found: set[T] = set()
        if self._boxes:
            self._boxes.find(event, found)
        candidates: set[T] = set(self.unindexed) if self.unindexed else set()
        if self._clauses:
            self._clauses.find(event.index_keys if self._rule_key_clauses else event.common_keys, found, candidates)
        if candidates:
            candidates -= found
            found.update(self._verify(candidates, event, verify))
        return found

    def _verify(self, items: set[T], event: Event, fallback: Callable[[T, Event], bool]) -> list[T]:
        """Return the items that match.

        If one of the verifiers raises, call ``fallback`` for all items, which records the failure.
        """
        checks = self._verifiers
        try:
            return [item for item in items if checks[item](event)]
        except Exception:  # noqa: BLE001 - a third party's filter may raise anything
            return [item for item in items if fallback(item, event)]

    def _add_filter(self, item: T, index_terms: IndexTerms | None) -> bool:
        """Add the item under the terms of one base filter.

        Returns True if no event needs to be verified for this filter.
        """
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
        """Remove the item from the list of the clause. Empty lists are deleted, so churn does not use memory."""
        self._clauses.remove(clause, item, exact=exact)
        self._rule_key_clauses -= _has_rule_key(clause)


def _has_rule_key(clause: Clause) -> bool:
    for key in clause:  # noqa: SIM110 - a generator takes twice as long
        if key[:1] == RULE_KEY_PREFIX:
            return True
    return False
