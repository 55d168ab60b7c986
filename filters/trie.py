"""A trie of clauses: finds all clauses whose keys an event has. Along each path the rarest key comes first.

If thousands of phrases share a common word, the search follows only those branches whose next key is in the event too.
So the work grows with the event and the matches, not with the number of phrases that share a word.
"""

from collections.abc import Hashable
from typing import Generic, TypeVar

from filters.compact_set import CompactSet, with_item, without_item
from filters.index_keys import Clause, Key, estimate_rarity

T = TypeVar("T", bound=Hashable)


class Trie(Generic[T]):
    """One node of the trie. Each edge is one key of a clause.

    Most leaves hold exact items only. Then the edge leads to the items themselves, without a node.

    Attributes:
        exact_items: Items whose clause ends here, and which match without verification.
        candidate_items: Items whose clause ends here, and which must be verified.
        children: Nodes or exact items of longer clauses, by the next key.
    """

    __slots__ = ("candidate_items", "children", "exact_items")

    def __init__(self, exact_items: CompactSet[T] = ()) -> None:
        self.exact_items = exact_items
        self.candidate_items: CompactSet[T] = ()
        self.children: dict[Key, Trie[T] | CompactSet[T]] = {}

    def __bool__(self) -> bool:
        return bool(self.exact_items or self.candidate_items or self.children)

    def add(self, clause: Clause, item: T, *, exact: bool) -> None:
        """Add the item under the clause. ``exact`` means that it matches without verification."""
        path = _sorted_path(clause)
        if exact and path:
            node = self._node_at(path[:-1])
            items = node.children.get(path[-1], ())
            if not isinstance(items, Trie):
                node.children[path[-1]] = with_item(items, item)
                return
        _add_item(self._node_at(path), item, exact=exact)

    def remove(self, clause: Clause, item: T, *, exact: bool) -> None:
        """Undo :meth:`add` and delete nodes that have become empty, so churn does not use memory."""
        _remove_path(self, _sorted_path(clause), item, exact=exact)

    def find(self, keys: frozenset[Key], exact_items: set[T], candidate_items: set[T]) -> None:
        """Add the items of all clauses within ``keys`` to ``exact_items`` or to ``candidate_items``."""
        if self.exact_items:
            exact_items.update(self.exact_items)
        if self.candidate_items:
            candidate_items.update(self.candidate_items)
        branches = self.children
        for key in branches.keys() & keys:
            node = branches[key]
            if isinstance(node, Trie):
                node.find(keys, exact_items, candidate_items)
            else:
                exact_items.update(node)

    def _node_at(self, path: list[Key]) -> "Trie[T]":
        """Return the node at the end of the path. Missing nodes are created."""
        node = self
        for key in path:
            child = node.children.get(key, ())
            if not isinstance(child, Trie):
                child = node.children[key] = Trie(child)
            node = child
        return node


def _remove_path(node: Trie[T], path: list[Key], item: T, *, exact: bool) -> None:
    if not path:
        _remove_item(node, item, exact=exact)
        return
    key = path[0]
    child = node.children.get(key, ())
    if isinstance(child, Trie):
        _remove_path(child, path[1:], item, exact=exact)
        child = child if child.candidate_items or child.children else child.exact_items
    elif exact and len(path) == 1:
        child = without_item(child, item)
    if child:
        node.children[key] = child
    else:
        node.children.pop(key, None)


def _add_item(node: Trie[T], item: T, *, exact: bool) -> None:
    if exact:
        node.exact_items = with_item(node.exact_items, item)
    else:
        node.candidate_items = with_item(node.candidate_items, item)


def _remove_item(node: Trie[T], item: T, *, exact: bool) -> None:
    if exact:
        node.exact_items = without_item(node.exact_items, item)
    else:
        node.candidate_items = without_item(node.candidate_items, item)


def _sorted_path(clause: Clause) -> list[Key]:
    return sorted(clause, key=estimate_rarity, reverse=True) if len(clause) > 1 else list(clause)
