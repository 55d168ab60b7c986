"""Inverted lists: from the keys of an event to the items whose base filters match it.

What says exactly what it needs is found by its clauses, and finding is proof; what does not is found by a key, or is
asked about every event, and has to be asked.
"""

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from filters.combine import Subscription
from filters.event import Event
from filters.key import Key
from filters.trie import Trie

T = TypeVar("T", bound=Hashable)


class Postings(Generic[T]):
    """The items of subscriptions whose narrowing is the same, and is looked at elsewhere."""

    def __init__(self) -> None:
        self.scanned: set[T] = set()
        self._clauses: Trie[T] = Trie()
        self._open: dict[Key, set[T]] = {}
        self._open_keys: dict[T, set[Key]] = {}

    def add(self, item: T, subscription: Subscription) -> None:
        """List ``item`` under what its bases need."""
        for base in subscription.bases:
            clauses = base.clauses()
            if clauses is not None:
                for clause in clauses:
                    self._clauses.add(clause, item)
            elif (keys := base.keys()) is None:
                self.scanned.add(item)
            else:
                for key in keys:
                    self.add_key(item, key)

    def remove(self, item: T, subscription: Subscription) -> None:
        """Undo :meth:`add` of the same two."""
        self.scanned.discard(item)
        for key in self._open_keys.pop(item, ()):
            self._close(item, key)
        for base in subscription.bases:
            for clause in base.clauses() or ():
                self._clauses.remove(clause, item)

    def add_key(self, item: T, key: Key) -> None:
        """Ask ``item`` also about events with ``key``."""
        self._open.setdefault(key, set()).add(item)
        self._open_keys.setdefault(item, set()).add(key)

    def remove_key(self, item: T, key: Key) -> None:
        """Do not ask ``item`` about events with ``key`` any more, unless for another of its keys."""
        keys = self._open_keys.get(item)
        if keys is not None and key in keys:
            keys.discard(key)
            self._close(item, key)

    def find(self, event: Event, ask: Callable[[T], bool]) -> set[T]:
        """The items that match; ``ask`` has the last word where the keys do not."""
        keys = event.keys
        found: set[T] = set()
        self._clauses.find(keys, found)
        if self._open:
            for key in self._open.keys() & keys:
                found.update([item for item in self._open[key] if item not in found and ask(item)])
        if self.scanned:
            found.update([item for item in self.scanned if item not in found and ask(item)])
        return found

    def _close(self, item: T, key: Key) -> None:
        """Take ``item`` off a list, and the list away with its last one: churn must not leave a trace."""
        items = self._open[key]
        items.discard(item)
        if not items:
            del self._open[key]
