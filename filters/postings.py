"""Inverted lists: from the keys and the location of an event to the items whose base filters match it.

Each filter gives its index terms. An item found by an exact clause or by a box matches. An item found by a candidate
clause, or an item without index terms, must be verified.
"""

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Generic, TypeVar

from filters.box_index import BoxIndex
from filters.event import Event
from filters.index_keys import RULE_KEY_PREFIX, Clause, IndexTerms, Key
from filters.subscription import Subscription
from filters.trie import CompactSet, Trie, with_item, without_item
from filters.verification import Verification

T = TypeVar("T", bound=Hashable)


class Postings(Generic[T]):
    """An index of items, such as clients. It finds those whose combinable or standalone filters match an event.

    The caller checks the narrowing filters. ``unindexed`` holds the items with a filter without index terms;
    :meth:`find` calls the filters of these items for every event.
    """

    def __init__(self, verification: Verification[T]) -> None:
        self.unindexed: set[T] = set()
        self._verification = verification
        self._clauses: Trie[T] = Trie()
        self._boxes: BoxIndex[T] = BoxIndex()
        self._by_dynamic_key: dict[Key, CompactSet[T]] = {}
        self._dynamic_keys: dict[T, set[Key]] = {}
        self._verifiers: dict[T, Callable[[Event], bool]] = {}  # of the items not found by exact terms alone
        # Number of clauses with a key that only rules use. While it is 0, events need not compute these keys.
        self._rule_key_clauses = 0

    def add(self, item: T, subscription: Subscription, index_terms: Sequence[IndexTerms | None]) -> None:
        """Add an item. ``index_terms`` are those of the filters in ``subscription.bases``, in the same order."""
        for base, terms in zip(subscription.bases, index_terms, strict=True):
            if not self._add_filter(item, terms):
                self._verifiers[item] = base.matches if len(subscription.bases) == 1 else subscription.matches_base

    def remove(self, item: T, subscription: Subscription) -> None:
        """Remove an item. Its subscription must have the same index terms as when :meth:`add` added the item."""
        self.unindexed.discard(item)
        self._verifiers.pop(item, None)
        self._remove_dynamic(item, self._dynamic_keys.pop(item, ()))
        for terms in subscription.index_terms():
            if terms is not None:
                self._remove_filter(item, terms)

    def add_key(self, item: T, key: Key) -> None:
        """Add an index key to an item. For events with this key, :meth:`find` then calls the item's filters."""
        self._add_dynamic(item, (key,))

    def remove_key(self, item: T, key: Key) -> None:
        """Remove an index key that :meth:`add_key` added to the item. The item keeps its other keys."""
        keys = self._dynamic_keys.get(item, set())
        if key in keys:
            keys.discard(key)
            self._remove_dynamic(item, (key,))

    def find(self, event: Event, verify: Callable[[T, Event], bool]) -> set[T]:
        """Return the items with a combinable or standalone filter that matches the event.

        If index terms do not prove that an item matches, the method calls the item's filters. If one filter raises, it
        asks ``verify(item, event)`` about each of these items instead: whether the item matches. ``verify`` must not
        raise.
        """
        found: set[T] = set()
        if self._boxes:
            self._boxes.find(event, found)
        candidates: set[T] = set(self.unindexed) if self.unindexed else set()
        if self._clauses or self._by_dynamic_key:
            keys = event.index_keys if self._rule_key_clauses else event.common_keys
            self._clauses.find(keys, found, candidates)
            for key in self._by_dynamic_key.keys() & keys:
                candidates.update(self._by_dynamic_key[key])
        if candidates:
            candidates -= found
            found.update(self._verification.verify(list(candidates), lambda items: self._verify(items, event, verify)))
        return found

    def _verify(self, items: Iterable[T], event: Event, fallback: Callable[[T, Event], bool]) -> list[T]:
        """Return the items whose filters match the event. If any filter raises, ask ``fallback`` about all items."""
        checks = self._verifiers
        try:
            return [item for item in items if checks[item](event)]
        except Exception:  # noqa: BLE001 - a plug-in filter may raise anything
            return [item for item in items if fallback(item, event)]

    def _add_filter(self, item: T, index_terms: IndexTerms | None) -> bool:
        """List the item under the index terms of one filter. Return whether these terms alone prove a match."""
        if index_terms is None:
            self.unindexed.add(item)
            return False
        if index_terms.boxes:
            self._boxes.add(item, index_terms.boxes)
        for clause in index_terms.exact:
            self._add_clause(clause, item, exact=True)
        for clause in index_terms.candidates:
            self._add_clause(clause, item, exact=False)
        if index_terms.dynamic_keys is not None:
            self._add_dynamic(item, index_terms.dynamic_keys)
        return not index_terms.candidates and index_terms.dynamic_keys is None

    def _remove_filter(self, item: T, index_terms: IndexTerms) -> None:
        if index_terms.boxes:
            self._boxes.remove(item, index_terms.boxes)
        for clause in index_terms.exact:
            self._remove_clause(clause, item, exact=True)
        for clause in index_terms.candidates:
            self._remove_clause(clause, item, exact=False)

    def _add_dynamic(self, item: T, keys: Iterable[Key]) -> None:
        """Add keys. They may be twenty thousand (the users whom a user follows), so the loop makes few calls."""
        known, by_key = self._dynamic_keys.setdefault(item, set()), self._by_dynamic_key
        alone = (item,)
        for key in keys:
            if key not in known:
                known.add(key)
                by_key[key] = with_item(by_key[key], item) if key in by_key else alone
                self._rule_key_clauses += key[:1] == RULE_KEY_PREFIX

    def _remove_dynamic(self, item: T, keys: Iterable[Key]) -> None:
        by_key = self._by_dynamic_key
        for key in keys:
            if len(by_key[key]) == 1:
                del by_key[key]
            else:
                by_key[key] = without_item(by_key[key], item)
            self._rule_key_clauses -= key[:1] == RULE_KEY_PREFIX

    def _add_clause(self, clause: Clause, item: T, *, exact: bool) -> None:
        self._clauses.add(clause, item, exact=exact)
        self._rule_key_clauses += _has_rule_key(clause)

    def _remove_clause(self, clause: Clause, item: T, *, exact: bool) -> None:
        self._clauses.remove(clause, item, exact=exact)
        self._rule_key_clauses -= _has_rule_key(clause)


def _has_rule_key(clause: Clause) -> bool:
    for key in clause:  # noqa: SIM110 - a generator takes twice as long
        if key[:1] == RULE_KEY_PREFIX:
            return True
    return False
