"""Index keys of places: squares of the map, so that the index finds the boxes near an event without asking all of them.

There are squares of 1 degree, squares of 10 degrees, and one key for the whole map. A box uses the finest squares of
which it covers at most :data:`MAX_SQUARES`. This bounds the work for large boxes, both of filters and of events. A
filter's box is also listed under the coarser squares, for events whose own box is too large for the fine ones.
"""

from collections.abc import Iterator
from functools import cache
from math import floor

from filters.index_keys import RULE_KEY_PREFIX, Key

Box = tuple[float, float, float, float]
"""West, south, east, north in degrees. If west > east, the box crosses the date line."""

MAX_SQUARES = 144
"""Maximum number of squares of one size that a box covers."""

_SIZES_DEGREES = (1, 10)
"""Sizes of the squares in degrees.

Coordinates are rounded down before they are divided: -5e-324 / 10 is 0 as a float, which would be the wrong square.
"""

_MAP_KEY = f"{RULE_KEY_PREFIX}m"
_LARGE_AREA_KEY = f"{RULE_KEY_PREFIX}m!"
"""Key that connects boxes of filters with events whose box is too large for any square."""


def longitude_spans(west: float, east: float) -> tuple[tuple[float, float], ...]:
    """Return the longitudes from west to east as one pair, or as two pairs if they cross the date line."""
    return ((west, east),) if west <= east else ((west, 180.0), (-180.0, east))


def box_in_range(west: float, south: float, east: float, north: float) -> bool:
    """Whether all four numbers are valid degrees. NaN is not valid."""
    return abs(west) <= 180 and abs(east) <= 180 and abs(south) <= 90 and abs(north) <= 90


def box_contains(box: Box, lon: float, lat: float) -> bool:
    """Whether a point is in a box, edges included."""
    west, south, east, north = box
    return south <= lat <= north and (west <= lon <= east if west <= east else lon >= west or lon <= east)


def filter_box_keys(box: Box) -> Iterator[Key]:
    """Return the keys of a filter's box, for events with fine squares and for those with coarse squares."""
    return (key for key, _ in filter_box_squares(box))


def filter_box_squares(box: Box) -> Iterator[tuple[Key, bool]]:
    """Return the keys of a filter's box, each with True if the whole square lies in the box.

    A box that crosses the date line must be split into two before the call, otherwise no square gives True.
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
    """Return the keys of an event at a point."""
    x, y = floor(lon), floor(lat)
    for size in _SIZES_DEGREES:
        yield _square_key(size, x // size, y // size)
    yield _MAP_KEY


def event_box_keys(box: Box) -> Iterator[Key]:
    """Return the keys of an event whose place is ``box``."""
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
    """Return the key of a square. The cache keeps one string for all boxes; the map bounds the number of squares."""
    return f"{RULE_KEY_PREFIX}m{size}:{x}:{y}"


@cache
def _coarse_square_key(size: int, x: int, y: int) -> Key:
    return f"{RULE_KEY_PREFIX}u{size}:{x}:{y}"


def _covers_square(box: Box, size: int, x: int, y: int) -> bool:
    """Whether the box covers the whole square. The box must not cross the date line."""
    west, south, east, north = box
    return west <= x * size and (x + 1) * size <= east and south <= y * size and (y + 1) * size <= north


def _finest_size(box: Box) -> int | None:
    """Return the finest size in degrees of which the box covers at most MAX_SQUARES squares, or None."""
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
