"""The keys of places: squares of the map, so that an event finds the boxes near it without asking all of them.

There are squares of 1 and of 10 degrees, and the whole map. A box uses the finest squares of which it covers at
most :data:`MOST`, whether it is a filter's or an event's, so neither can make the other pay for its size. A filter's
box is also marked on the coarser squares, for events whose own box is too large for the fine ones.
"""

from collections.abc import Iterator
from functools import cache
from math import floor

from filters.key import EXTRA, Key

Box = tuple[float, float, float, float]
"""West, south, east, north in degrees; west > east crosses the date line."""

MOST = 144
"""The most squares of one size that a box is spread over."""

_SIZES = (1, 10)
"""In degrees, which are rounded before they are divided: a tenth of -5e-324 is 0, and that is another square."""

_ON_MAP = f"{EXTRA}m"
_ANYWHERE = f"{EXTRA}m!"
"""The key of a box, or of an event's box, that is too large for any square."""


def spans(west: float, east: float) -> tuple[tuple[float, float], ...]:
    """The stretch from west to east as one pair of longitudes, or two if it crosses the date line."""
    return ((west, east),) if west <= east else ((west, 180.0), (-180.0, east))


def contains(box: Box, lon: float, lat: float) -> bool:
    """Whether a point is in a box, its edges included."""
    west, south, east, north = box
    return south <= lat <= north and (west <= lon <= east if west <= east else lon >= west or lon <= east)


def filter_keys(box: Box) -> Iterator[Key]:
    """The keys of a filter's box: where events as fine as it look for it, and where coarser ones do."""
    return (key for key, _ in filter_squares(box))


def filter_squares(box: Box) -> Iterator[tuple[Key, bool]]:
    """The keys of a filter's box, each with whether it is proof: the square lies in the box with all of its edges.

    A box that crosses the date line has no proof: whoever wants some asks for its two parts.
    """
    finest = _finest(box)
    if finest is None:
        yield _ON_MAP, False
    else:
        yield from ((_at(finest, x, y), _inside(box, finest, x, y)) for x, y in _squares(box, finest))
        for size in _SIZES:
            if size > finest:
                yield from ((_under(size, x, y), False) for x, y in _squares(box, size))
    yield _ANYWHERE, False


def point_keys(lon: float, lat: float) -> Iterator[Key]:
    """The keys of an event at a point."""
    x, y = floor(lon), floor(lat)
    for size in _SIZES:
        yield _at(size, x // size, y // size)
    yield _ON_MAP


def place_keys(box: Box) -> Iterator[Key]:
    """The keys of an event somewhere in ``box``."""
    finest = _finest(box)
    yield _ON_MAP
    if finest is None:
        yield _ANYWHERE
        return
    yield from (_under(finest, x, y) for x, y in _squares(box, finest))
    for size in _SIZES:
        if size >= finest:
            yield from (_at(size, x, y) for x, y in _squares(box, size))


@cache
def _at(size: int, x: int, y: int) -> Key:
    """Kept, one string for all boxes: there are no more squares than the map has."""
    return f"{EXTRA}m{size}:{x}:{y}"


@cache
def _under(size: int, x: int, y: int) -> Key:
    return f"{EXTRA}u{size}:{x}:{y}"


def _inside(box: Box, size: int, x: int, y: int) -> bool:
    """Whether ``box``, which does not cross the date line, covers the whole of a square."""
    west, south, east, north = box
    return west <= x * size and (x + 1) * size <= east and south <= y * size and (y + 1) * size <= north


def _finest(box: Box) -> int | None:
    """The finest size of which ``box`` covers few enough squares."""
    west, south, east, north = box
    for size in _SIZES:
        rows = floor(north) // size - floor(south) // size + 1
        columns = sum(floor(right) // size - floor(left) // size + 1 for left, right in spans(west, east))
        if rows * columns <= MOST:
            return size
    return None


def _squares(box: Box, size: int) -> Iterator[tuple[int, int]]:
    west, south, east, north = box
    rows = range(floor(south) // size, floor(north) // size + 1)
    for left, right in spans(west, east):
        for x in range(floor(left) // size, floor(right) // size + 1):
            yield from ((x, y) for y in rows)
