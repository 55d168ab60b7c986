"""Sets of keys as paths of a tree, rarest key first: from the keys of an event to all sets that lie within them.

Of a common word with thousands of phrases only those branches are looked at whose next word is in the event too, so
the work grows with the event and with what matches, not with how many phrases share a word.
"""

from collections.abc import Hashable
from typing import Generic, TypeVar

from filters.items import Items, added, removed
from filters.key import Clause, Key, rarity

T = TypeVar("T", bound=Hashable)


class Trie(Generic[T]):
    """One node: the items of the clause that ends here, and the branches of longer ones.

    Items are ``proven`` (the clause says all that they ask for) or ``asked`` (they have to be asked yet). Most nodes
    hold proven items and nothing else: a branch to such a one leads to the items themselves.
    """

    __slots__ = ("asked", "branches", "proven")

    def __init__(self, proven: Items[T] = ()) -> None:
        self.proven = proven
        self.asked: Items[T] = ()
        self.branches: dict[Key, Trie[T] | Items[T]] = {}

    def __bool__(self) -> bool:
        return bool(self.proven or self.asked or self.branches)

    def add(self, clause: Clause, item: T, *, proof: bool) -> None:
        """Hold ``item`` under ``clause``; ``proof`` says that it need not be asked."""
        path = _path(clause)
        if proof and path:
            node = self._at(path[:-1])
            held = node.branches.get(path[-1], ())
            if not isinstance(held, Trie):
                node.branches[path[-1]] = added(held, item)
                return
        _hold(self._at(path), item, proof=proof)

    def remove(self, clause: Clause, item: T, *, proof: bool) -> None:
        """Undo :meth:`add`, and prune what holds nothing any more: churn must not leave a trace."""
        _remove(self, _path(clause), item, proof=proof)

    def find(self, keys: frozenset[Key], proven: set[T], asked: set[T]) -> None:
        """Add the items of all clauses that lie within ``keys`` to ``proven``, or to ``asked``."""
        if self.proven:
            proven.update(self.proven)
        if self.asked:
            asked.update(self.asked)
        branches = self.branches
        for key in branches.keys() & keys:
            node = branches[key]
            if isinstance(node, Trie):
                node.find(keys, proven, asked)
            else:
                proven.update(node)

    def _at(self, path: list[Key]) -> "Trie[T]":
        """The node at the end of ``path``, made if it is not there."""
        node = self
        for key in path:
            child = node.branches.get(key, ())
            if not isinstance(child, Trie):
                child = node.branches[key] = Trie(child)
            node = child
        return node


def _remove(node: Trie[T], path: list[Key], item: T, *, proof: bool) -> None:
    if not path:
        _drop(node, item, proof=proof)
        return
    key = path[0]
    child = node.branches.get(key, ())
    if isinstance(child, Trie):
        _remove(child, path[1:], item, proof=proof)
        child = child if child.asked or child.branches else child.proven
    elif proof and len(path) == 1:
        child = removed(child, item)
    if child:
        node.branches[key] = child
    else:
        node.branches.pop(key, None)


def _hold(node: Trie[T], item: T, *, proof: bool) -> None:
    if proof:
        node.proven = added(node.proven, item)
    else:
        node.asked = added(node.asked, item)


def _drop(node: Trie[T], item: T, *, proof: bool) -> None:
    if proof:
        node.proven = removed(node.proven, item)
    else:
        node.asked = removed(node.asked, item)


def _path(clause: Clause) -> list[Key]:
    return sorted(clause, key=rarity, reverse=True) if len(clause) > 1 else list(clause)
