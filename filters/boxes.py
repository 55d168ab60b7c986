"""Items with boxes on the map, found by the point of an event or by its place.

A square of the grid that lies in a box is proof. Where an edge crosses a square, the corners are compared right here,
where they lie beside the item: to ask each filter for its own would take longer than all the rest.
"""

from collections.abc import Collection, Hashable, Iterator
from typing import Generic, TypeAlias, TypeVar

from filters.event import Event
from filters.grid import Box, filter_squares, place_keys, point_keys, spans
from filters.items import Items, added, removed
from filters.key import Key

T = TypeVar("T", bound=Hashable)
H = TypeVar("H", bound=Hashable)

Owned: TypeAlias = tuple[float, float, float, float, T]
"""A box that does not cross the date line, and whose it is."""


class Boxes(Generic[T]):
    """The items by the squares that their boxes touch."""

    def __init__(self) -> None:
        self._within: dict[Key, Items[T]] = {}
        self._crossed: dict[Key, Items[Owned[T]]] = {}

    def __bool__(self) -> bool:
        return bool(self._crossed)  # every box is here too, as one for events of any size

    def add(self, item: T, boxes: Collection[Box]) -> None:
        """Find ``item`` from now on by what lies in one of ``boxes``, edges included, or touches it."""
        for owned, square, proof in _squares(item, boxes):
            if proof:
                self._within[square] = added(self._within.get(square, ()), item)
            else:
                self._crossed[square] = added(self._crossed.get(square, ()), owned)

    def remove(self, item: T, boxes: Collection[Box]) -> None:
        """Undo :meth:`add` of the same two."""
        for owned, square, proof in _squares(item, boxes):
            if proof:
                _drop(self._within, square, item)
            else:
                _drop(self._crossed, square, owned)

    def find(self, event: Event, found: set[T]) -> None:
        """Add the items that ``event`` concerns; its point decides alone, and its place where it has none."""
        if event.point is not None:
            self._find_point(*event.point, found)
        elif event.box is not None:
            west, south, east, north = event.box
            for left, right in spans(west, east):
                self._find_place((left, south, right, north), found)

    def _find_point(self, lon: float, lat: float, found: set[T]) -> None:
        for square in point_keys(lon, lat):
            found.update(self._within.get(square, ()))
            for west, south, east, north, item in self._crossed.get(square, ()):
                if west <= lon <= east and south <= lat <= north:
                    found.add(item)

    def _find_place(self, place: Box, found: set[T]) -> None:
        left, bottom, right, top = place
        for square in place_keys(place):
            found.update(self._within.get(square, ()))
            for west, south, east, north, item in self._crossed.get(square, ()):
                if west <= right and left <= east and south <= top and bottom <= north:
                    found.add(item)


def _squares(item: T, boxes: Collection[Box]) -> Iterator[tuple[Owned[T], Key, bool]]:
    """Each square with the box that touches it, and whether it is proof; a box over the date line is two."""
    for west, south, east, north in boxes:
        for left, right in spans(west, east):
            owned = (left, south, right, north, item)
            for square, proof in filter_squares((left, south, right, north)):
                yield owned, square, proof


def _drop(lists: dict[Key, Items[H]], square: Key, item: H) -> None:
    """Take ``item`` off a list, and the list away with its last one: churn must not leave a trace."""
    left = removed(lists.pop(square, ()), item)
    if left:
        lists[square] = left
