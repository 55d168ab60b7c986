"""An index of items with boxes on the map, found by the point of an event or by its place.

If a square of the grid lies wholly in a box, the square alone proves the match. If an edge of the box crosses the
square, the index compares coordinates. They are stored beside the item, because calling each filter would take longer
than the rest of the search.
"""

from collections.abc import Collection, Hashable, Iterator
from typing import Generic, TypeAlias, TypeVar

from filters.event import Event
from filters.grid import Box, filter_box_squares, longitude_spans
from filters.index_keys import Key
from filters.trie import CompactSet, with_item, without_item

T = TypeVar("T", bound=Hashable)
H = TypeVar("H", bound=Hashable)

ItemBox: TypeAlias = tuple[float, float, float, float, T]
"""West, south, east and north of a box that does not cross the date line, and its item."""


class BoxIndex(Generic[T]):
    """An index of items with boxes on the map. It lists each item under the squares of the map that its boxes touch."""

    def __init__(self) -> None:
        self._covered_squares: dict[Key, CompactSet[T]] = {}
        self._crossed_squares: dict[Key, CompactSet[ItemBox[T]]] = {}

    def __bool__(self) -> bool:
        return bool(self._crossed_squares)  # every box is listed here, at least under the key for large areas

    def add(self, item: T, boxes: Collection[Box]) -> None:
        """Add an item with its boxes. :meth:`find` finds it for events that touch a box with their point or place."""
        for entry, square, covered in _squares_of_boxes(item, boxes):
            if covered:
                self._covered_squares[square] = with_item(self._covered_squares.get(square, ()), item)
            else:
                self._crossed_squares[square] = with_item(self._crossed_squares.get(square, ()), entry)

    def remove(self, item: T, boxes: Collection[Box]) -> None:
        """Remove an item that :meth:`add` added with the same boxes."""
        for entry, square, covered in _squares_of_boxes(item, boxes):
            if covered:
                _discard_item(self._covered_squares, square, item)
            else:
                _discard_item(self._crossed_squares, square, entry)

    def find(self, event: Event, found: set[T]) -> None:
        """Add to ``found`` the items with a box that touches the event's point or, without a point, its place."""
        squares = event.square_keys
        if not squares:
            return
        for square in self._covered_squares.keys() & squares:
            found.update(self._covered_squares[square])
        near = self._crossed_squares.keys() & squares
        if not near:
            return
        for left, bottom, right, top in _event_boxes(event):
            for square in near:
                for west, south, east, north, item in self._crossed_squares[square]:
                    if west <= right and left <= east and south <= top and bottom <= north:
                        found.add(item)


def _event_boxes(event: Event) -> list[Box]:
    """Return the event's point as a box of size zero. If there is no point, return the boxes of the event's place."""
    if event.point is not None:
        return [event.point + event.point]
    return [] if event.box is None else _split_at_date_line(event.box)


def _squares_of_boxes(item: T, boxes: Collection[Box]) -> Iterator[tuple[ItemBox[T], Key, bool]]:
    """Yield each square that a box touches, as box with item, index key, and whether the box covers the square."""
    for box in boxes:
        for part in _split_at_date_line(box):
            entry = (*part, item)  # one tuple for all squares, so that they share the memory
            for square, covered in filter_box_squares(part):
                yield entry, square, covered


def _split_at_date_line(box: Box) -> list[Box]:
    west, south, east, north = box
    return [(left, south, right, north) for left, right in longitude_spans(west, east)]


def _discard_item(lists: dict[Key, CompactSet[H]], square: Key, item: H) -> None:
    left = without_item(lists.pop(square, ()), item)
    if left:
        lists[square] = left
