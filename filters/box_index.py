"""Items with boxes on the map, found by the point of an event or by its place.

A square of the grid that lies in a box is proof. Where an edge crosses a square, the corners are compared right here,
where they lie beside the item: to ask each filter for its own would take longer than all the rest.
"""

from collections.abc import Collection, Hashable, Iterator
from typing import Generic, TypeAlias, TypeVar

from filters.compact_set import CompactSet, with_item, without_item
from filters.event import Event
from filters.grid import Box, filter_box_squares, longitude_spans
from filters.index_keys import Key

T = TypeVar("T", bound=Hashable)
H = TypeVar("H", bound=Hashable)

ItemBox: TypeAlias = tuple[float, float, float, float, T]
"""A box that does not cross the date line, and whose it is."""


class BoxIndex(Generic[T]):
    """The items by the squares that their boxes touch."""

    def __init__(self) -> None:
        self._covered_squares: dict[Key, CompactSet[T]] = {}
        self._crossed_squares: dict[Key, CompactSet[ItemBox[T]]] = {}

    def __bool__(self) -> bool:
        return bool(self._crossed_squares)  # every box is here too, as one for events of any size

    def add(self, item: T, boxes: Collection[Box]) -> None:
        """Find ``item`` from now on by what lies in one of ``boxes``, edges included, or touches it."""
        for owned, square, proof in _squares_of_boxes(item, boxes):
            if proof:
                self._covered_squares[square] = with_item(self._covered_squares.get(square, ()), item)
            else:
                self._crossed_squares[square] = with_item(self._crossed_squares.get(square, ()), owned)

    def remove(self, item: T, boxes: Collection[Box]) -> None:
        """Undo :meth:`add` of the same two."""
        for owned, square, proof in _squares_of_boxes(item, boxes):
            if proof:
                _discard_item(self._covered_squares, square, item)
            else:
                _discard_item(self._crossed_squares, square, owned)

    def find(self, event: Event, found: set[T]) -> None:
        """Add the items that ``event`` concerns; its point decides alone, and its place where it has none."""
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
    """Where it happened: at its point, which is a box of no size, or else in its place."""
    if event.point is not None:
        return [event.point + event.point]
    return [] if event.box is None else _split_at_date_line(event.box)


def _squares_of_boxes(item: T, boxes: Collection[Box]) -> Iterator[tuple[ItemBox[T], Key, bool]]:
    """Each square with the box that touches it, and whether it is proof; a box over the date line is two."""
    for box in boxes:
        for part in _split_at_date_line(box):
            owned = (*part, item)  # one for all squares: what is looked at together lies together
            for square, proof in filter_box_squares(part):
                yield owned, square, proof


def _split_at_date_line(box: Box) -> list[Box]:
    """The box, or what lies of it on either side of the date line."""
    west, south, east, north = box
    return [(left, south, right, north) for left, right in longitude_spans(west, east)]


def _discard_item(lists: dict[Key, CompactSet[H]], square: Key, item: H) -> None:
    """Take ``item`` off a list, and the list away with its last one: churn must not leave a trace."""
    left = without_item(lists.pop(square, ()), item)
    if left:
        lists[square] = left
