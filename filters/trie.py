"""Sets of keys as paths of a tree, rarest key first: from the keys of an event to all sets that lie within them.

Of a common word with thousands of phrases only those branches are looked at whose next word is in the event too, so
the work grows with the event and with what matches, not with how many phrases share a word.
"""

from collections.abc import Hashable
from typing import Generic, TypeVar

from filters.key import Clause, Key, rarity

T = TypeVar("T", bound=Hashable)


class Trie(Generic[T]):
    """One node: the items of the clause that ends here, and the branches of longer ones."""

    __slots__ = ("branches", "items")

    def __init__(self) -> None:
        self.items: set[T] | None = None
        self.branches: dict[Key, Trie[T]] | None = None

    def __bool__(self) -> bool:
        return bool(self.items or self.branches)

    def add(self, clause: Clause, item: T) -> None:
        """Hold ``item`` under ``clause``."""
        node = self
        for key in _path(clause):
            if node.branches is None:
                node.branches = {}
            child = node.branches.get(key)
            if child is None:
                child = node.branches[key] = Trie()
            node = child
        if node.items is None:
            node.items = set()
        node.items.add(item)

    def remove(self, clause: Clause, item: T) -> None:
        """Undo :meth:`add`, and prune what holds nothing any more: churn must not leave a trace."""
        _remove(self, _path(clause), item)

    def find(self, keys: frozenset[Key], found: set[T]) -> None:
        """Add to ``found`` the items of all clauses that lie within ``keys``."""
        if self.items:
            found |= self.items
        if self.branches:
            _descend(self.branches, keys, found)


def _path(clause: Clause) -> list[Key]:
    return sorted(clause, key=rarity, reverse=True)


def _descend(branches: dict[Key, Trie[T]], keys: frozenset[Key], found: set[T]) -> None:
    # Most branches are leaves, and a call for each would double the cost of a match.
    for key in branches.keys() & keys:
        node = branches[key]
        if node.items:
            found |= node.items
        if node.branches:
            _descend(node.branches, keys, found)


def _remove(node: Trie[T], path: list[Key], item: T) -> None:
    if not path:
        if node.items is not None:
            node.items.discard(item)
        return
    child = node.branches.get(path[0]) if node.branches else None
    if child is not None and node.branches is not None:
        _remove(child, path[1:], item)
        if not child:
            del node.branches[path[0]]
