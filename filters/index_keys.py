"""Index keys: the strings by which the index connects an event with the filters that may match it.

All kinds of keys share one flat namespace, so one set intersection finds the filters. A term is its own key
(``hello``, ``#tag``). Every other key begins with a character that :meth:`str.split` treats as white space, so it
cannot be equal to a term. Keys that only rules use begin with :data:`RULE_KEY_PREFIX`, or with :data:`META_KEY_PREFIX`
for the fields of ``meta``. An event computes each of these two families, and the terms, only if some filter needs it.

Places have squares of the map as keys, so that the index finds the boxes near an event without asking all of them.
There are squares of 1 degree, squares of 10 degrees, and one key for the whole map. A box uses the finest squares of
which it covers at most :data:`MAX_SQUARES`. This bounds the work for large boxes, both of filters and of events. A
filter's box is also listed under the coarser squares, for events whose own box is too large for the fine ones.
"""

from collections.abc import Collection, Iterable, Iterator
from functools import cache, lru_cache
from math import floor
from typing import NamedTuple, TypeAlias

from filters.tables import MACRO_LANGUAGES, WHOLE_LANGUAGES, present_tag

Key: TypeAlias = str
"""A term from :attr:`filters.event.Event.terms`, or a string made by this module or by ``grid``."""
Clause: TypeAlias = frozenset[Key]
"""A set of keys. An event satisfies the clause if it has all of them."""


class IndexTerms(NamedTuple):
    """The terms by which the index finds a filter: a matching event has all keys of a clause, or touches a box.

    Attributes:
        exact: Clauses (sets of keys) that prove a match. If an event has all keys of one of them, it matches.
        candidates: Clauses that do not prove a match. If an event has all keys of one, the server calls ``matches``.
        dynamic_keys: Keys to which the server later adds and from which it removes some, as users are followed. If an
            event has one of them, the server calls ``matches``. None if the keys never change.
        boxes: West, south, east, north in degrees. An event matches if its point is in a box or its place overlaps one.
    """

    exact: Collection[Clause]
    candidates: Collection[Clause] = ()
    dynamic_keys: Collection[Key] | None = None
    boxes: Collection[tuple[float, float, float, float]] = ()

    @property
    def has_keys(self) -> bool:
        """Whether each matching event has a key: no empty clause matches every event."""
        return all(self.exact) and all(self.candidates)

    def keys(self) -> frozenset[Key] | None:
        """Return keys of which each matching event has at least one. None if one may have none of them."""
        if not self.has_keys:
            return None
        clauses = (*self.exact, *self.candidates)
        box_keys = (key for box in self.boxes for key in filter_box_keys(box))
        return frozenset((*map(rarest_key, clauses), *box_keys, *(self.dynamic_keys or ())))


UNDETERMINED = "und"  # the BCP 47 tag of an unknown language, also of events without text

_ANY_PART = "!"  # behind a macro-language, in the key of a text that may be in any language that is part of it

RULE_KEY_PREFIX = "\x1e"  # of the keys that are not among :attr:`filters.event.Event.common_keys`
META_KEY_PREFIX = "\x1d"  # of the keys that are not among :attr:`filters.event.Event.rule_keys`

LOWEST_COMMON_KEY = "\x1f"
"""Each index key that only rules use sorts before this text, and no other key of an event does."""
LOWEST_TEXT_KEY = " "
"""Each key of a user sorts before this text, and no term does."""

USER = "\x1fp"  # + the id of a user by whose id ``follow`` finds the event
LOGIN = f"{RULE_KEY_PREFIX}l"  # + a folded login: of the author, the replied-to user or the reposted author
CONVERSATION = f"{RULE_KEY_PREFIX}c"  # + the id of the first status of a thread
PLACE = f"{RULE_KEY_PREFIX}n"  # + the folded name of a place
COUNTRY = f"{RULE_KEY_PREFIX}y"  # + a lower-case ISO 3166-1 code
LANGUAGE = f"{RULE_KEY_PREFIX}g"  # + a lower-case language tag
FLAG = f"{RULE_KEY_PREFIX}f"  # + a property of a status, such as ``is:reply`` or ``has:media``
BIO = f"{RULE_KEY_PREFIX}b"  # + a folded word of the author's bio
QUOTED = f"{RULE_KEY_PREFIX}q"  # + a term of the text that a status quotes
META_TEXT = f"{META_KEY_PREFIX}t"  # + the length of a field's name, ``:``, the name and its text
META_NUMBER = f"{META_KEY_PREFIX}n"  # + the same with the decimal text of a number

_RARE_PREFIXES = ("#", "@", "$", USER, LOGIN, CONVERSATION)  # of keys for one topic, person or conversation
_COMMON_PREFIXES = (FLAG, LANGUAGE, COUNTRY, f"{RULE_KEY_PREFIX}m!")  # of keys that a large share of all events has


def user_key(user_id: str) -> Key:
    """Return the index key of a user. Each event that the parameter ``follow`` finds for this user has the key."""
    return USER + user_id


@lru_cache(1024)
def language_keys(tag: str | None) -> frozenset[Key]:
    """Return the index keys of a text in this language: ``en-gb`` and ``en`` for ``en-GB``, and ``und`` for None.

    Renamed languages have the key of their present code. A language that is part of a macro-language has the keys of
    both: ``nb`` and ``no``. A text whose language is a macro-language, such as ``no``, gets one more key, which finds
    it for filters of each part, such as ``nb``.
    """
    present = present_tag(tag or UNDETERMINED)
    code, hyphen, rest = present.partition("-")
    found = list(_shortened(present))
    if code in MACRO_LANGUAGES:
        found += _shortened(f"{MACRO_LANGUAGES[code]}{hyphen}{rest}")
    if code in WHOLE_LANGUAGES:
        found += [f"{each}{_ANY_PART}" for each in found]
    return frozenset(map(LANGUAGE.__add__, found))


def wanted_language_keys(tag: str) -> frozenset[Key]:
    """Return the index keys of a language that a filter names. Each text in this language has at least one of them."""
    present = present_tag(tag)
    code, hyphen, rest = present.partition("-")
    whole = MACRO_LANGUAGES.get(code)
    found = [present] if whole is None else [present, f"{whole}{hyphen}{rest}{_ANY_PART}"]
    return frozenset(map(LANGUAGE.__add__, found))


def _shortened(tag: str) -> Iterator[str]:
    """Yield a language tag and its shorter forms: ``en-gb``, then ``en`` (RFC 4647 section 3.3.1)."""
    while tag:
        yield tag
        tag = tag.rpartition("-")[0]


def estimate_rarity(key: Key) -> tuple[bool, int, str]:
    """Return a sort key that sorts probably rare index keys last. Different index keys never compare equal.

    Keys of a topic, person or conversation count as rarer than words, and long words as rarer than short ones. Keys
    such as a language or a country count as the most common. A wrong guess costs time, but never a match.
    """
    return key.startswith(_RARE_PREFIXES), 0 if key.startswith(_COMMON_PREFIXES) else len(key), key


def rarest_key(clause: Iterable[Key]) -> Key:
    """Return the rarest index key of the clause: the key that probably the fewest events have."""
    return max(clause, key=estimate_rarity)


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


def split_at_date_line(box: Box) -> list[Box]:
    """Return the box, or the two parts of a box that crosses the date line."""
    west, south, east, north = box
    return [(left, south, right, north) for left, right in longitude_spans(west, east)]


def boxes_overlap(box: Box, other: Box) -> bool:
    """Whether two boxes have a point in common, edges included. Neither may cross the date line."""
    return box[0] <= other[2] and other[0] <= box[2] and box[1] <= other[3] and other[1] <= box[3]


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
    finest, (west, south, east, north) = _finest_size(box), box
    if finest is None:
        yield _MAP_KEY, False
    else:
        for x, y in _square_coordinates(box, finest):
            covers_width = west <= x * finest and (x + 1) * finest <= east
            yield _square_key(finest, x, y), covers_width and south <= y * finest and (y + 1) * finest <= north
        for size in _SIZES_DEGREES:
            if size > finest:
                yield from ((_coarse_square_key(size, x, y), False) for x, y in _square_coordinates(box, size))
    yield _LARGE_AREA_KEY, False


def event_point_keys(lon: float, lat: float) -> Iterator[Key]:
    """Return the index keys of an event's point: its 1-degree square, its 10-degree square and the whole map."""
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
