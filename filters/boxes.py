"""Items with boxes on the map, found by the point of an event or by its place.

A square of the grid that lies in a box is proof. Where an edge crosses a square, the corners are compared right here,
where they lie beside the item: to ask each filter for its own would take longer than all the rest.
"""

from collections.abc import Collection, Hashable, Iterator
from typing import Generic, TypeAlias, TypeVar

from filters.event import Event
from filters.grid import Box, filter_squares, spans
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
        squares = event.squares
        if not squares:
            return
        for square in self._within.keys() & squares:
            found.update(self._within[square])
        near = self._crossed.keys() & squares
        if not near:
            return
        for left, bottom, right, top in _extent(event):
            for square in near:
                for west, south, east, north, item in self._crossed[square]:
                    if west <= right and left <= east and south <= top and bottom <= north:
                        found.add(item)


def _extent(event: Event) -> list[Box]:
    """Where it happened: at its point, which is a box of no size, or else in its place."""
    if event.point is not None:
        return [event.point + event.point]
    return [] if event.box is None else _parts(event.box)


def _squares(item: T, boxes: Collection[Box]) -> Iterator[tuple[Owned[T], Key, bool]]:
    """Each square with the box that touches it, and whether it is proof; a box over the date line is two."""
    for box in boxes:
        for part in _parts(box):
            owned = (*part, item)  # one for all squares: what is looked at together lies together
            for square, proof in filter_squares(part):
                yield owned, square, proof


def _parts(box: Box) -> list[Box]:
    """The box, or what lies of it on either side of the date line."""
    west, south, east, north = box
    return [(left, south, right, north) for left, right in spans(west, east)]


def _drop(lists: dict[Key, Items[H]], square: Key, item: H) -> None:
    """Take ``item`` off a list, and the list away with its last one: churn must not leave a trace."""
    left = removed(lists.pop(square, ()), item)
    if left:
        lists[square] = left
