"""The filter ``locations``: boxes on the map."""

import re
from collections.abc import Collection
from typing import ClassVar, Self

from filters.base import Filter, MatchedItem, Role, split_list
from filters.error import ParameterError
from filters.event import Event
from filters.index_keys import Box, IndexTerms, box_contains, box_in_range, boxes_overlap, split_at_date_line

MAX_BOXES = 25  # of one filter

_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?")


class Location(Filter):
    """The filter ``locations``: events in one of the boxes, edges included (as in Twitter's Streaming API).

    If the event has a point, the point alone decides. Otherwise the event matches if its place overlaps a box.
    """

    __slots__ = ("boxes", "canonical_form")

    name: ClassVar[str] = "locations"
    role: ClassVar[Role] = "combinable"
    canonical_form: frozenset[Box]
    help: ClassVar[str] = "Boxes `west,south,east,north` in degrees, comma-joined; west > east crosses the date line."

    def __init__(self, boxes: Collection[Box]) -> None:
        self.boxes = self.canonical_form = frozenset(boxes)

    @classmethod
    def parse(cls, value: str) -> Self:
        items = split_list(value, param="locations", max_items=MAX_BOXES * 4, noun=f"numbers ({MAX_BOXES} boxes)")
        if len(items) % 4:
            raise ParameterError("locations takes four numbers per box: west,south,east,north", param="locations")
        for item in items:
            if not _NUMBER.fullmatch(item):
                raise ParameterError(f"locations takes numbers in degrees, not {item[:40]!r}", param="locations")
        numbers = list(map(float, items))
        return cls([_make_box(*numbers[at : at + 4]) for at in range(0, len(numbers), 4)])

    def index_terms(self) -> IndexTerms:
        """Return the boxes of the filter. With them the index alone decides whether an event matches."""
        return IndexTerms((), boxes=self.boxes)

    def matches(self, event: Event) -> bool:
        if event.point is not None:
            return any(box_contains(box, *event.point) for box in self.boxes)
        places = () if event.box is None else split_at_date_line(event.box)
        return any(
            boxes_overlap(part, place) for box in self.boxes for part in split_at_date_line(box) for place in places
        )

    def explain(self, event: Event) -> list[MatchedItem]:
        """Return a JSON object for each matching box. It says whether the event's point or its place matched."""
        by = "place" if event.point is None else "point"
        found = (box for box in sorted(self.boxes) if Location([box]).matches(event))
        texts = (",".join(repr(degrees).removesuffix(".0") for degrees in box) for box in found)
        return [{"filter": "locations", "box": text, "by": by} for text in texts]


def _make_box(west: float, south: float, east: float, north: float) -> Box:
    if not box_in_range(west, south, east, north):
        raise ParameterError("longitudes of locations must be within ±180 and latitudes within ±90", param="locations")
    if south >= north:
        raise ParameterError("the south of a box of locations must be below its north", param="locations")
    if west == east:
        raise ParameterError("the west and the east of a box of locations must differ", param="locations")
    return west, south, east, north
