"""Inverted lists: from the keys of an event to the items whose base filters match it.

Three kinds of lists, by how much finding says: in ``sure`` the key alone proves the match; in ``clauses`` all keys of
the clause do, and who shares a clause shares its check; ``open`` and ``scanned`` have to be asked.
"""

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from filters.combine import Subscription
from filters.event import Event
from filters.key import Clause, Key, rarest

T = TypeVar("T", bound=Hashable)
_K = TypeVar("_K", bound=Hashable)


class Postings(Generic[T]):
    """The items of subscriptions whose narrowing is the same, and is looked at elsewhere."""

    def __init__(self) -> None:
        self.scanned: set[T] = set()
        self._sure: dict[Key, set[T]] = {}
        self._clauses: dict[Key, dict[Clause, set[T]]] = {}
        self._open: dict[Key, set[T]] = {}
        self._open_keys: dict[T, set[Key]] = {}

    def add(self, item: T, subscription: Subscription) -> None:
        """List ``item`` under what its bases need."""
        for base in subscription.bases:
            clauses = base.clauses()
            if clauses is not None:
                for clause in clauses:
                    self._add_clause(item, clause)
            elif (keys := base.keys()) is None:
                self.scanned.add(item)
            else:
                for key in keys:
                    self.add_key(item, key)

    def remove(self, item: T, subscription: Subscription) -> None:
        """Undo :meth:`add` of the same two."""
        self.scanned.discard(item)
        for key in self._open_keys.pop(item, ()):
            _drop(self._open, key, item)
        for base in subscription.bases:
            for clause in base.clauses() or ():
                self._remove_clause(item, clause)

    def add_key(self, item: T, key: Key) -> None:
        """Ask ``item`` also about events with ``key``."""
        self._open.setdefault(key, set()).add(item)
        self._open_keys.setdefault(item, set()).add(key)

    def remove_key(self, item: T, key: Key) -> None:
        """Do not ask ``item`` about events with ``key`` any more, unless for another of its keys."""
        keys = self._open_keys.get(item)
        if keys is not None and key in keys:
            keys.discard(key)
            _drop(self._open, key, item)

    def find(self, event: Event, ask: Callable[[T], bool]) -> set[T]:
        """The items that match; ``ask`` has the last word where the keys do not."""
        keys = event.keys
        found: set[T] = set()
        for key in self._sure.keys() & keys:
            found |= self._sure[key]
        for key in self._clauses.keys() & keys:
            for clause, items in self._clauses[key].items():
                if clause <= keys:
                    found |= items
        if self._open:
            for key in self._open.keys() & keys:
                found.update([item for item in self._open[key] if item not in found and ask(item)])
        if self.scanned:
            found.update([item for item in self.scanned if item not in found and ask(item)])
        return found

    def _add_clause(self, item: T, clause: Clause) -> None:
        key = rarest(clause)
        if len(clause) == 1:
            self._sure.setdefault(key, set()).add(item)
        else:
            self._clauses.setdefault(key, {}).setdefault(clause, set()).add(item)

    def _remove_clause(self, item: T, clause: Clause) -> None:
        key = rarest(clause)
        if len(clause) == 1:
            _drop(self._sure, key, item)
        elif key in self._clauses:
            _drop(self._clauses[key], clause, item)
            if not self._clauses[key]:
                del self._clauses[key]


def _drop(lists: dict[_K, set[T]], key: _K, item: T) -> None:
    """Take ``item`` off a list, and the list away with its last one: churn must not leave a trace."""
    items = lists.get(key)
    if items is not None:
        items.discard(item)
        if not items:
            del lists[key]
