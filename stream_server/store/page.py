"""A piece of a list, by opaque cursors that stand between members, not on scores, and that know their list."""

import re
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, NamedTuple

from stream_server.errors import InvalidCursor
from stream_server.store.scripts import Scripts

_CURSOR = re.compile(r"([0-9]{1,16})-([a-z0-9:]{1,64})-([0-9a-f]{8})")

MAX_SCANS = 16
"""So often a walk goes on that found too little in what it looked at; then the piece is short, its cursor is not."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Which piece: ``count`` items, older than ``before``, newer than ``after``, or the ``page``-th from the start.

    "Older" means further down a list: of a list that begins with its oldest item, ``before`` gives what follows.
    """

    count: int = 30
    before: str | None = None
    after: str | None = None
    page: int | None = None


class Page(NamedTuple):
    """The items, as JSON; ``next`` goes on (``before``), ``prev`` goes back (``after``); None at the ends."""

    items: list[bytes]
    next: str | None
    prev: str | None


class Place(NamedTuple):
    """Where something stands on a list: the order of the list is the order of these pairs."""

    score: int
    member: str

    def cursor(self, name: str) -> str:
        """The place as clients of the list ``name`` hold it."""
        return f"{self.score}-{self.member}-{_mark(name)}"


Found = tuple[Place, bytes]
"""An item and its place."""


def read_cursor(cursor: str, name: str, param: str) -> Place:
    """The place that a cursor of the list ``name`` says; raises InvalidCursor for any other."""
    match = _CURSOR.fullmatch(cursor)
    if match is None or match[3] != _mark(name):
        raise InvalidCursor("this is no cursor of this list", param=param)
    return Place(int(match[1]), match[2])


async def walk(
    scripts: Scripts,
    verb: str,
    key: str,
    piece: Piece,
    *arguments: str | int,
    oldest_first: bool = False,
    name: str | None = None,
) -> Page:
    """A piece of the sorted set ``key``, as the reading script ``verb`` shows its members, in one round trip.

    Only a piece before which more than a thousand members are not shown takes more. ``name`` is what cursors know the
    list by, where it is not the whole set. Raises InvalidCursor, and what the script refuses with.
    """
    return (await walk_with(scripts, verb, key, piece, *arguments, oldest_first=oldest_first, name=name))[0]


async def walk_with(
    scripts: Scripts,
    verb: str,
    key: str,
    piece: Piece,
    *arguments: str | int,
    oldest_first: bool = False,
    name: str | None = None,
) -> tuple[Page, list[Any]]:
    """As :func:`walk`, and what else the script has to say."""
    named = name or key
    place, backwards = start(piece, named)
    direction = "before" if backwards == oldest_first else "after"
    skip = 0 if piece.page is None else (piece.page - 1) * piece.count
    found, stopped, more = await _collect(scripts, verb, key, direction, place, piece.count + 1, skip, arguments)
    made = cut(found, piece, named, backwards=backwards, begun=place is not None)
    if stopped is None:
        return made, more
    further = stopped.cursor(named)
    return made._replace(prev=further) if backwards else made._replace(next=further), more


def start(piece: Piece, name: str) -> tuple[Place | None, bool]:
    """Where a piece begins (None: at the list's start), and whether it goes backwards from there."""
    if piece.after is not None:
        return read_cursor(piece.after, name, "after"), True
    return None if piece.before is None else read_cursor(piece.before, name, "before"), False


def cut(found: list[Found], piece: Piece, name: str, *, backwards: bool, begun: bool) -> Page:
    """The page in ``found``, which holds one more than was asked for if there is more."""
    more = len(found) > piece.count
    shown = found[: piece.count]
    if backwards:
        shown.reverse()
    items = [item for _, item in shown]
    first, last = (shown[0][0].cursor(name), shown[-1][0].cursor(name)) if shown else (None, None)
    if backwards:
        return Page(items, last, first if more else None)
    return Page(items, last if more else None, first if begun or (piece.page or 1) > 1 else None)


async def _collect(
    scripts: Scripts,
    verb: str,
    key: str,
    direction: str,
    place: Place | None,
    most: int,
    skip: int,
    arguments: tuple[str | int, ...],
) -> tuple[list[Found], Place | None, list[Any]]:
    """What was found, where the walk was given up if it was, and what else was said."""
    found: list[Found] = []
    end = "+inf" if direction == "before" else "-inf"
    score, member = (end, "") if place is None else (str(place.score), place.member)
    for _ in range(MAX_SCANS):
        flat, stopped, *more = await scripts.read(
            verb, key, key, direction, score, member, most - len(found), skip, *arguments
        )
        found += [(Place(int(flat[i]), flat[i + 1].decode()), flat[i + 2]) for i in range(0, len(flat), 3)]
        if not stopped or len(found) >= most:
            return found, None, more
        score, member, skip = stopped[0].decode(), stopped[1].decode(), int(stopped[2])
    return found, Place(int(score), member), more


def _mark(name: str) -> str:
    return blake2b(name.encode(), digest_size=4).hexdigest()
