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

MAX_SQUARES = 144  # of one size that a box covers

# Coordinates are rounded down before the division: -5e-324 / 10 is 0 as a float, which would be the wrong square.
_SIZES_DEGREES = (1, 10)

_MAP_KEY = f"{RULE_KEY_PREFIX}m"
_LARGE_AREA_KEY = f"{RULE_KEY_PREFIX}m!"
"""Key that connects boxes of filters with events whose box is too large for any square."""


def longitude_spans(west: float, east: float) -> tuple[tuple[float, float], ...]:
    """Return the range of longitudes as one pair (west, east), or as two pairs if it crosses the date line."""
    return ((west, east),) if west <= east else ((west, 180.0), (-180.0, east))


def box_in_range(west: float, south: float, east: float, north: float) -> bool:
    """Whether the longitudes are within ±180 degrees and the latitudes within ±90 degrees. False if one is NaN."""
    return abs(west) <= 180 and abs(east) <= 180 and abs(south) <= 90 and abs(north) <= 90


def box_contains(box: Box, lon: float, lat: float) -> bool:
    """Whether a point is in a box, edges included."""
    west, south, east, north = box
    return south <= lat <= north and (west <= lon <= east if west <= east else lon >= west or lon <= east)


def filter_box_keys(box: Box) -> Iterator[Key]:
    """Return the index keys of a filter's box: keys of the small and of the large squares that the box touches."""
    return (key for key, _ in filter_box_squares(box))


def filter_box_squares(box: Box) -> Iterator[tuple[Key, bool]]:
    """Return pairs ``(index key, covered)`` for a filter's box: ``covered`` if the key's square lies wholly in the box.

    The caller must split a box that crosses the date line into two, because otherwise ``covered`` is always False.
    """
    finest = _finest_size(box)
    if finest is None:
        yield _MAP_KEY, False
    else:
        for x, y in _square_coordinates(box, finest):
            yield _square_key(finest, x, y), _covers_square(box, finest, x, y)
        for size in _SIZES_DEGREES:
            if size > finest:
                yield from ((_coarse_square_key(size, x, y), False) for x, y in _square_coordinates(box, size))
    yield _LARGE_AREA_KEY, False


def event_point_keys(lon: float, lat: float) -> Iterator[Key]:
    """Return the index keys of an event's point: of its 1-degree square, its 10-degree square and the whole map."""
    x, y = floor(lon), floor(lat)
    for size in _SIZES_DEGREES:
        yield _square_key(size, x // size, y // size)
    yield _MAP_KEY


def event_box_keys(box: Box) -> Iterator[Key]:
    """Return the index keys of an event whose place is a ``box`` of the map: one for each square that it touches."""
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
    """Return the index key of a square of the map. It is cached, so that all boxes share one string for a square."""
    return f"{RULE_KEY_PREFIX}m{size}:{x}:{y}"


@cache
def _coarse_square_key(size: int, x: int, y: int) -> Key:
    return f"{RULE_KEY_PREFIX}u{size}:{x}:{y}"


def _covers_square(box: Box, size: int, x: int, y: int) -> bool:
    west, south, east, north = box
    return west <= x * size and (x + 1) * size <= east and south <= y * size and (y + 1) * size <= north


def _finest_size(box: Box) -> int | None:
    """Return the smallest size of squares, in degrees, of which at most MAX_SQUARES touch the box, or None."""
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
