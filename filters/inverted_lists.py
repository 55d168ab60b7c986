"""The lists of the index: a trie of clauses, and the squares of the map with the boxes that touch them.

The trie finds all clauses whose keys an event has. Along each path the rarest key comes first. If thousands of phrases
share a common word, the search follows only those branches whose next key is in the event too. So the work grows with
the event and the matches, not with the number of phrases that share a word.

Boxes are found by the point of an event or by its place. If a square lies wholly in a box, the square alone proves the
match. If an edge of the box crosses the square, the index compares coordinates. They are stored beside the item,
because calling each filter would take longer than the rest of the search.
"""

from collections.abc import Collection, Hashable, Iterator
from typing import Generic, TypeAlias, TypeVar

from filters.event import Event
from filters.index_keys import Box, Clause, Key, estimate_rarity, filter_box_squares, split_at_date_line

T = TypeVar("T", bound=Hashable)
H = TypeVar("H", bound=Hashable)

MAX_TUPLE_ITEMS = 8  # up to this size a CompactSet is a tuple, which takes a quarter of the memory of a set

CompactSet: TypeAlias = tuple[T, ...] | set[T]
"""A set of items that uses little memory when it is small."""


def with_item(items: CompactSet[T], item: T) -> CompactSet[T]:
    """Return ``items`` with ``item``: a new tuple while there are few, else a ``set``, which is changed in place."""
    if isinstance(items, set):
        items.add(item)
        return items
    if item in items:
        return items
    return (*items, item) if len(items) < MAX_TUPLE_ITEMS else {*items, item}


def without_item(items: CompactSet[T], item: T) -> CompactSet[T]:
    """Return ``items`` without ``item``: a new tuple if ``items`` is one, else the same ``set``, changed in place."""
    if isinstance(items, set):
        items.discard(item)
        return items if len(items) > MAX_TUPLE_ITEMS else tuple(items)
    if len(items) == 1:
        return () if items[0] == item else items
    return tuple([other for other in items if other != item])


class Trie(Generic[T]):
    """A trie (prefix tree) of clauses, which are sets of index keys. Each object is one node, and each edge is one key.

    To save memory, an edge leads to a set of items instead of a node if the node would have only ``exact_items``.

    Attributes:
        exact_items: Items with an exact clause that ends at this node. An event with all keys of the clause matches.
        candidate_items: Items with a candidate clause that ends at this node. An event with all its keys may match.
    """

    __slots__ = ("candidate_items", "children", "exact_items")

    def __init__(self, exact_items: CompactSet[T] = ()) -> None:
        self.exact_items = exact_items
        self.candidate_items: CompactSet[T] = ()
        self.children: dict[Key, Trie[T] | CompactSet[T]] = {}

    @property
    def is_empty(self) -> bool:
        """Whether no clause ends at this node or below it."""
        return not (self.children or self.exact_items or self.candidate_items)

    def add(self, clause: Clause, item: T, *, exact: bool) -> None:
        """Add an item under a clause. ``exact`` means that each event with all keys of the clause matches the item."""
        node: Trie[T] = self
        path = clause if len(clause) == 1 else _sorted_path(clause)
        for left, key in enumerate(path, start=1 - len(path)):
            child = node.children.get(key, ())
            if not isinstance(child, Trie):
                if exact and not left:
                    node.children[key] = with_item(child, item)
                    return
                child = node.children[key] = Trie(child)
            node = child
        if exact:
            node.exact_items = with_item(node.exact_items, item)
        else:
            node.candidate_items = with_item(node.candidate_items, item)

    def remove(self, clause: Clause, item: T, *, exact: bool) -> None:
        """Remove an item that :meth:`add` added with the same arguments, and delete the nodes that become empty."""
        if exact and len(clause) == 1:  # as most: it takes half of the time without a path
            (key,) = clause
            child = self.children.get(key, ())
            if not isinstance(child, Trie):
                if left := without_item(child, item):
                    self.children[key] = left
                else:
                    self.children.pop(key, None)
                return
        _remove_path(self, _sorted_path(clause), item, exact=exact)

    def find(self, keys: frozenset[Key], exact_items: set[T], candidate_items: set[T]) -> None:
        """Find all clauses whose keys are all in ``keys``, and add their items to the two given sets.

        Items in ``exact_items`` match the event. The caller must verify those in ``candidate_items``.
        """
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


def _remove_path(node: Trie[T], path: list[Key], item: T, *, exact: bool) -> None:
    if not path:
        if exact:
            node.exact_items = without_item(node.exact_items, item)
        else:
            node.candidate_items = without_item(node.candidate_items, item)
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


def _sorted_path(clause: Clause) -> list[Key]:
    return sorted(clause, key=estimate_rarity, reverse=True)


ItemBox: TypeAlias = tuple[float, float, float, float, T]
"""West, south, east and north of a box that does not cross the date line, and its item."""


class BoxIndex(Generic[T]):
    """An index of items with boxes on the map. It lists each item under the squares of the map that its boxes touch."""

    def __init__(self) -> None:
        self._covered_squares: dict[Key, CompactSet[T]] = {}
        self.crossed_squares: dict[Key, CompactSet[ItemBox[T]]] = {}

    def add(self, item: T, boxes: Collection[Box]) -> None:
        """Add an item with its boxes. :meth:`find` finds it for events that touch a box with their point or place."""
        for entry, square, covered in _squares_of_boxes(item, boxes):
            if covered:
                self._covered_squares[square] = with_item(self._covered_squares.get(square, ()), item)
            else:
                self.crossed_squares[square] = with_item(self.crossed_squares.get(square, ()), entry)

    def remove(self, item: T, boxes: Collection[Box]) -> None:
        """Remove an item that :meth:`add` added with the same boxes."""
        for entry, square, covered in _squares_of_boxes(item, boxes):
            if covered:
                _discard_item(self._covered_squares, square, item)
            else:
                _discard_item(self.crossed_squares, square, entry)

    def find(self, event: Event, found: set[T]) -> None:
        """Add to ``found`` the items with a box that touches the event's point or, without a point, its place."""
        squares = event.square_keys
        if not squares:
            return
        for square in self._covered_squares.keys() & squares:
            found.update(self._covered_squares[square])
        near = self.crossed_squares.keys() & squares
        if not near:
            return
        if event.point is not None:
            places = [event.point + event.point]  # a box of size zero
        else:
            places = [] if event.box is None else split_at_date_line(event.box)
        for left, bottom, right, top in places:
            for square in near:
                for west, south, east, north, item in self.crossed_squares[square]:
                    if west <= right and left <= east and south <= top and bottom <= north:
                        found.add(item)


def _squares_of_boxes(item: T, boxes: Collection[Box]) -> Iterator[tuple[ItemBox[T], Key, bool]]:
    """Yield each square that a box touches, as box with item, index key, and whether the box covers the square."""
    for box in boxes:
        for part in split_at_date_line(box):
            entry = (*part, item)  # one tuple for all squares, so that they share the memory
            for square, covered in filter_box_squares(part):
                yield entry, square, covered


def _discard_item(lists: dict[Key, CompactSet[H]], square: Key, item: H) -> None:
    left = without_item(lists.pop(square, ()), item)
    if left:
        lists[square] = left
