"""``locations``: boxes on the map."""

import re
from collections.abc import Collection, Hashable
from typing import ClassVar, Self

from filters.base import Filter, Mark, Role
from filters.commas import split
from filters.error import ParameterError
from filters.event import Event
from filters.grid import Box, contains, filter_keys, spans
from filters.key import Key, Leads

BOXES = 25
"""The most boxes of one filter."""

_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?")


class Location(Filter):
    """Events in one of the boxes, edges included (Streaming spec, ``locations``).

    The point of an event decides alone; only where it has none, any overlap of its place with a box matches.
    """

    __slots__ = ("boxes",)

    name: ClassVar[str] = "locations"
    role: ClassVar[Role] = "any"
    help: ClassVar[str] = "Boxes `west,south,east,north` in degrees, comma-joined; west > east crosses the date line."

    def __init__(self, boxes: Collection[Box]) -> None:
        self.boxes = frozenset(boxes)

    @classmethod
    def parse(cls, value: str) -> Self:
        items = split(value, param="locations", most=BOXES * 4, noun=f"numbers ({BOXES} boxes)")
        if len(items) % 4:
            raise ParameterError("locations takes four numbers a box: west,south,east,north", param="locations")
        numbers = [_degrees(item) for item in items]
        return cls([_box(*numbers[at : at + 4]) for at in range(0, len(numbers), 4)])

    @property
    def key(self) -> Hashable:
        return self.boxes

    def keys(self) -> frozenset[Key]:
        return frozenset(key for box in self.boxes for key in filter_keys(box))

    def leads(self) -> Leads:
        """The boxes say all that there is."""
        return Leads((), boxes=self.boxes)

    def matches(self, event: Event) -> bool:
        if event.point is not None:
            return any(contains(box, *event.point) for box in self.boxes)
        return event.box is not None and any(_overlap(box, event.box) for box in self.boxes)

    def explain(self, event: Event) -> list[Mark]:
        """Each box that matched, and whether the point of the event is in it or its place touches it."""
        by = "place" if event.point is None else "point"
        found = (box for box in sorted(self.boxes) if Location([box]).matches(event))
        return [{"filter": "locations", "box": ",".join(map(_written, box)), "by": by} for box in found]


def _degrees(item: str) -> float:
    if not _NUMBER.fullmatch(item):
        raise ParameterError(f"locations takes numbers in degrees, not {item[:40]!r}", param="locations")
    return float(item)


def _box(west: float, south: float, east: float, north: float) -> Box:
    if not (abs(west) <= 180 and abs(east) <= 180 and abs(south) <= 90 and abs(north) <= 90):
        raise ParameterError("locations has longitudes within ±180 and latitudes within ±90", param="locations")
    if south >= north:
        raise ParameterError("a box of locations has its south below its north", param="locations")
    if west == east:
        raise ParameterError("a box of locations has its west apart from its east", param="locations")
    return west, south, east, north


def _written(degrees: float) -> str:
    return repr(degrees).removesuffix(".0")


def _overlap(box: Box, place: Box) -> bool:
    if box[3] < place[1] or place[3] < box[1]:
        return False
    return any(
        left <= east and west <= right
        for left, right in spans(box[0], box[2])
        for west, east in spans(place[0], place[2])
    )
