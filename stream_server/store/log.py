"""The log: reading it, and hearing what is added to it. Only scripts write it; nothing on it is ever taken out."""

from collections.abc import AsyncGenerator, Iterable
from itertools import islice
from typing import Any, NamedTuple

from stream_server.events import CHANNELS, PUBLIC, START, Entry, Position, make_entry
from stream_server.store import keys
from stream_server.store.link import Command, Link

STRANGERS = 8
"""So many rows in a row that are no entries of ours are passed over at the log's ends; nobody should write there."""

FIRST: Command = ("XRANGE", keys.LOG, "-", "+", "COUNT", STRANGERS)
LAST: Command = ("XREVRANGE", keys.LOG, "+", "-", "COUNT", STRANGERS)

PAGE = 1000
"""So many rows are read at once by whoever goes back."""

SURVIVORS = 256
"""So many places are looked up in one round trip."""


class Located(NamedTuple):
    """The log's ends, and the entry at the place that was asked for; ``floor`` is None while the log is empty.

    ``before`` is the newest entry below that place, None if there is none.
    """

    head: Position
    floor: Position | None
    found: Entry | None
    before: Position | None


class Log:
    """The log of one store."""

    def __init__(self, link: Link) -> None:
        self._link = link

    async def head(self) -> Position:
        """The last entry; :data:`~stream_server.events.START` while there is none."""
        (rows,) = await self._link.ask(LAST)
        return _position(rows) or START

    async def floor(self) -> Position | None:
        """The first entry that was not trimmed, None while there is none."""
        (rows,) = await self._link.ask(FIRST)
        return _position(rows)

    async def read(self, after: Position | str, count: int, upto: Position | None = None) -> list[Entry]:
        """Up to ``count`` entries after a place (or a stream id) and not beyond ``upto``, in order."""
        start = after if isinstance(after, str) else after.entry_id
        end = "+" if upto is None else upto.entry_id
        (rows,) = await self._link.ask(("XRANGE", keys.LOG, f"({start}", end, "COUNT", count))
        return [entry for row in rows if (entry := _entry(row)) is not None]

    async def locate(self, ms: int, seq: int) -> Located:
        """The ends of the log and the entry with this id, in one round trip and one step."""
        place = f"{ms}-{seq}"
        at_place: Command = ("XRANGE", keys.LOG, place, place)
        under = f"({place}" if ms or seq else place  # Redis refuses to go below 0-0
        below: Command = ("XREVRANGE", keys.LOG, under, "-", "COUNT", STRANGERS)
        *_, told = await self._link.ask(("MULTI",), LAST, FIRST, at_place, below, ("EXEC",))
        head, floor, found, before = told
        entry = _entry(found[0]) if found else None
        return Located(_position(head) or START, _position(floor), entry, _position(before))

    async def back(self, posts: int, upto: Position) -> Position:
        """The place behind which so many public posts up to ``upto`` are, or all there are if these are fewer.

        It reads them, in pages, which costs as much as sending them does.
        """
        end, left = upto.entry_id, posts
        while True:
            (rows,) = await self._link.ask(("XREVRANGE", keys.LOG, end, "-", "COUNT", PAGE))
            for entry in filter(None, map(_entry, rows)):
                if left == 0:
                    return entry.position
                left -= entry.kind == "post" and entry.audience == PUBLIC
            if len(rows) < PAGE:
                floor = await self.floor()
                return START if floor is None else floor.before()
            end = f"({rows[-1][0].decode()}"

    async def survivor(self, places: Iterable[Position]) -> Position | None:
        """The first of these places that is on the log; None if none is."""
        asked = iter(places)
        while batch := list(islice(asked, SURVIVORS)):
            told = await self._link.ask(*(("XRANGE", keys.LOG, p.entry_id, p.entry_id) for p in batch))
            for place, rows in zip(batch, told, strict=True):
                if _position(rows) == place:
                    return place
        return None

    async def exists(self, status_ids: Iterable[str], comment_ids: Iterable[str] = ()) -> set[str]:
        """The ids of those of these statuses and comments that were not deleted, in one round trip."""
        named = [(one, keys.named("status", one)) for one in status_ids]
        named += [(one, keys.named("comment", one)) for one in comment_ids]
        if not named:
            return set()
        told = await self._link.ask(*(("EXISTS", key) for _, key in named))
        return {one for (one, _), there in zip(named, told, strict=True) if there}

    def listen(self) -> AsyncGenerator[bytes | None, None]:
        """The messages of all channels in order, on a connection of its own; None comes once, first: it is in force.

        Raises Unavailable when the link ends. Whatever was written before the None must be read from the log.
        """
        return self._link.listen(CHANNELS)


def _position(rows: list[Any]) -> Position | None:
    return next((entry.position for row in rows if (entry := _entry(row)) is not None), None)


def _entry(row: list[Any]) -> Entry | None:
    """Scripts write ``n k a e`` in this order; Redis keeps it. A row of anybody else is none."""
    entry_id, fields = row
    try:
        return make_entry(entry_id, fields[1], fields[3], fields[5], fields[7])
    except (ValueError, IndexError):
        return None
