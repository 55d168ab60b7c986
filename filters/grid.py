"""The keys of places: squares of the map, so that an event finds the boxes near it without asking all of them.

There are squares of 1 and of 10 degrees, and the whole map. A box uses the finest squares of which it covers at
most :data:`MAX_SQUARES`, whether it is a filter's or an event's, so neither can make the other pay for its size. A filter's
box is also marked on the coarser squares, for events whose own box is too large for the fine ones.
"""

from collections.abc import Iterator
from functools import cache
from math import floor

from filters.index_keys import RULE_KEY_PREFIX, Key

Box = tuple[float, float, float, float]
"""West, south, east, north in degrees; west > east crosses the date line."""

MAX_SQUARES = 144
"""The most squares of one size that a box is spread over."""

_SIZES_DEGREES = (1, 10)
"""In degrees, which are rounded before they are divided: a tenth of -5e-324 is 0, and that is another square."""

_MAP_KEY = f"{RULE_KEY_PREFIX}m"
_LARGE_AREA_KEY = f"{RULE_KEY_PREFIX}m!"
"""The key of a box, or of an event's box, that is too large for any square."""


def longitude_spans(west: float, east: float) -> tuple[tuple[float, float], ...]:
    """The stretch from west to east as one pair of longitudes, or two if it crosses the date line."""
    return ((west, east),) if west <= east else ((west, 180.0), (-180.0, east))


def box_contains(box: Box, lon: float, lat: float) -> bool:
    """Whether a point is in a box, its edges included."""
    west, south, east, north = box
    return south <= lat <= north and (west <= lon <= east if west <= east else lon >= west or lon <= east)


def filter_box_keys(box: Box) -> Iterator[Key]:
    """The keys of a filter's box: where events as fine as it look for it, and where coarser ones do."""
    return (key for key, _ in filter_box_squares(box))


def filter_box_squares(box: Box) -> Iterator[tuple[Key, bool]]:
    """The keys of a filter's box, each with whether it is proof: the square lies in the box with all of its edges.

    A box that crosses the date line has no proof: whoever wants some asks for its two parts.
    """
    finest = _finest_size(box)
    if finest is None:
        yield _MAP_KEY, False
    else:
        yield from (
            (_square_key(finest, x, y), _covers_square(box, finest, x, y)) for x, y in _square_coordinates(box, finest)
        )
        for size in _SIZES_DEGREES:
            if size > finest:
                yield from ((_coarse_square_key(size, x, y), False) for x, y in _square_coordinates(box, size))
    yield _LARGE_AREA_KEY, False


def event_point_keys(lon: float, lat: float) -> Iterator[Key]:
    """The keys of an event at a point."""
    x, y = floor(lon), floor(lat)
    for size in _SIZES_DEGREES:
        yield _square_key(size, x // size, y // size)
    yield _MAP_KEY


def event_box_keys(box: Box) -> Iterator[Key]:
    """The keys of an event somewhere in ``box``."""
    finest = _finest_size(box)
    yield _MAP_KEY
    if finest is None:
        yield _LARGE_AREA_KEY
        return
    yield from (_coarse_square_key(finest, x, y) for x, y in _square_coordinates(box, finest))
    for size in _SIZES_DEGREES:
        if size >= finest:
            yield from (_square_key(size, x, y) for x, y in _square_coordinates(box, size))


@cache
def _square_key(size: int, x: int, y: int) -> Key:
    """Kept, one string for all boxes: there are no more squares than the map has."""
    return f"{RULE_KEY_PREFIX}m{size}:{x}:{y}"


@cache
def _coarse_square_key(size: int, x: int, y: int) -> Key:
    return f"{RULE_KEY_PREFIX}u{size}:{x}:{y}"


def _covers_square(box: Box, size: int, x: int, y: int) -> bool:
    """Whether ``box``, which does not cross the date line, covers the whole of a square."""
    west, south, east, north = box
    return west <= x * size and (x + 1) * size <= east and south <= y * size and (y + 1) * size <= north


def _finest_size(box: Box) -> int | None:
    """The finest size of which ``box`` covers few enough squares."""
    west, south, east, north = box
    for size in _SIZES_DEGREES:
        rows = floor(north) // size - floor(south) // size + 1
        columns = sum(floor(right) // size - floor(left) // size + 1 for left, right in longitude_spans(west, east))
        if rows * columns <= MAX_SQUARES:
            return size
    return None


def _square_coordinates(box: Box, size: int) -> Iterator[tuple[int, int]]:
    west, south, east, north = box
    rows = range(floor(south) // size, floor(north) // size + 1)
    for left, right in longitude_spans(west, east):
        for x in range(floor(left) // size, floor(right) // size + 1):
            yield from ((x, y) for y in rows)
