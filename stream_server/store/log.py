"""The log: reading it, and hearing what is added to it. Only scripts write it; nothing on it is ever taken out."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Iterable, Sequence
from itertools import islice
from typing import Any, NamedTuple

from stream_server.events import CHANNELS, PUBLIC, START, Entry, Position, make_entry
from stream_server.store import info, keys, position
from stream_server.store.link import Command, Link
from stream_server.store.near import Near
from stream_server.store.portion import Portion
from stream_server.store.scripts import Scripts

STRANGERS = 8
"""So many rows in a row that are no entries of ours are passed over at the log's ends; nobody should write there."""

FIRST: Command = ("XRANGE", keys.LOG, "-", "+", "COUNT", STRANGERS)
LAST: Command = ("XREVRANGE", keys.LOG, "+", "-", "COUNT", STRANGERS)

PAGE = 1000
"""So many rows are read at once by whoever goes back, at most."""

SURVIVORS = 256
"""So many places are looked up in one round trip."""


class Located(NamedTuple):
    """The log's ends, and the entry at the place that was asked for; ``floor`` is None while the log is empty.

    ``before`` is the newest entry below that place, None if there is none. ``survivor`` is the place after which the
    log goes on for whoever was told what is not there any more; None where no rollback is known of.
    """

    head: Position
    floor: Position | None
    found: Entry | None
    before: Position | None
    survivor: Position | None = None

    @property
    def resumed(self) -> Position | None:
        """The survivor, as long as nothing behind it was trimmed."""
        if self.survivor is None or self.floor is None or self.survivor.n + 1 < self.floor.n:
            return None
        return self.survivor

    def trimmed(self, place: Position) -> bool:
        """Whether an entry that is not on the log any more was taken off its front, where it was in its turn."""
        return self.floor is not None and place[:2] < self.floor[:2] and place.n < self.floor.n


async def undoubted() -> None:
    """Nobody listens, so nobody can have heard what is not there."""


class Log:
    """The log of one store: ``near`` is where it is heard and read from; where it ends the primary says.

    ``doubt`` is the feed's to set: whoever finds that a place is not where it should be has the feed look at its own
    before going on. ``strangers`` counts the rows passed over that are no entries of ours, each time they are read.
    ``portion`` says how many entries one page may have; whoever reads page by page asks it before each.
    """

    def __init__(self, link: Link, scripts: Scripts, near: Near) -> None:
        self._link = link
        self._scripts = scripts
        self.near = near
        self.doubt: Callable[[], Awaitable[None]] = undoubted
        self.portion = Portion()
        self.strangers = 0

    async def head(self) -> Position:
        """The last entry; :data:`~stream_server.events.START` while there is none."""
        (rows,) = await self._link.ask(LAST)
        self.portion.weigh(rows)
        return _position(rows) or START

    async def now_ms(self) -> int:
        """The time by the clock that writes the log, the primary's, in ms since 1970; the server's own may be off."""
        ((seconds, microseconds),) = await self._link.ask(("TIME",))
        return int(seconds) * 1000 + int(microseconds) // 1000

    async def floor(self) -> Position | None:
        """The first entry that was not trimmed, None while there is none."""
        (rows,) = await self._link.ask(FIRST)
        return _position(rows)

    async def read(
        self, after: Position | str, count: int, upto: Position | None = None, *, sure: bool = False
    ) -> list[Entry]:
        """Up to ``count`` entries after a place (or a stream id) and not beyond ``upto``, in order.

        ``sure`` reads them from the primary, for whoever has seen that they are not near.
        """
        start = after if isinstance(after, str) else after.entry_id
        end = "+" if upto is None else upto.entry_id
        link = self._link if sure else self.near.link
        while True:
            (rows,) = await link.ask(("XRANGE", keys.LOG, f"({start}", end, "COUNT", count))
            self.portion.weigh(rows)
            entries = [entry for row in rows if (entry := _entry(row)) is not None]
            self.strangers += len(rows) - len(entries)
            if entries or len(rows) < count:
                return entries
            start = rows[-1][0].decode()

    async def locate(self, ms: int, seq: int) -> Located:
        """The ends of the log and the entry with this id, in one round trip and one step."""
        _, located = await self._inspect(ms, seq)
        return located

    async def inspect(self, place: Position) -> tuple[str, Located]:
        """The same, and by which run of which Redis: after a restart and a failover it may be of another history."""
        server, located = await self._inspect(place.ms, place.seq)
        return info.fields(server).get("run_id", ""), located

    async def _inspect(self, ms: int, seq: int) -> tuple[bytes, Located]:
        """What is next to a place weighs as what is read from there on will, more likely than anything else does."""
        number = Position(ms, seq, 0).status_number
        head, floor, found, before, ranges, server = await self._scripts.read(
            "locate", keys.META, f"{ms}-{seq}", number
        )
        self.portion.weigh(found)
        beside = before or ([] if found else floor)
        if beside:
            self.portion.learn(beside[1])
        starts = (position.of_cursor(lost.partition(b" ")[0]) for lost in ranges)
        survivor = min((start for start in starts if start[:2] < (ms, seq)), default=None)
        entry = _entry(found[0]) if found else None
        return server, Located(_end(head) or START, _end(floor), entry, _end(before), survivor)

    async def back(self, posts: int, upto: Position) -> Position:
        """The place behind which so many public posts up to ``upto`` are, or all there are if these are fewer.

        It reads them, in pages, which costs as much as sending them does.
        """
        end, left = upto.entry_id, posts
        while True:
            most = self.portion.of(PAGE)
            (rows,) = await self._link.ask(("XREVRANGE", keys.LOG, end, "-", "COUNT", most))
            self.portion.weigh(rows)
            for entry in filter(None, map(_entry, rows)):
                if left == 0:
                    return entry.position
                left -= entry.kind == "post" and entry.audience == PUBLIC
            if len(rows) < most:
                floor = await self.floor()
                return START if floor is None else floor.before()
            end = f"({rows[-1][0].decode()}"

    async def survivor(self, places: Iterable[Position]) -> Position | None:
        """The first of these places that is on the log; None if none is."""
        asked = iter(places)
        while batch := list(islice(asked, SURVIVORS)):
            held = await self._held(batch)
            if held:
                return held[0]
        return None

    async def lost(self, places: Sequence[Position]) -> list[Position]:
        """Those of these places that are not on the log, in their order."""
        held: set[Position] = set()
        for begin in range(0, len(places), SURVIVORS):
            held.update(await self._held(places[begin : begin + SURVIVORS]))
        return [place for place in places if place not in held]

    async def _held(self, places: Sequence[Position]) -> list[Position]:
        told = await self._link.ask(*(("XRANGE", keys.LOG, p.entry_id, p.entry_id) for p in places))
        return [place for place, rows in zip(places, told, strict=True) if _position(rows) == place]

    async def exists(self, status_ids: Iterable[str], comment_ids: Iterable[str] = ()) -> set[str]:
        """The ids of those of these statuses and comments that were not deleted: one round trip, or two.

        What a replica does not have may be deleted, or newer than all that it has, though a page showed it: that came
        from the primary, or from another replica behind the same address. So the primary is asked about it.
        """
        named = {keys.named("status", one): one for one in status_ids}
        named |= {keys.named("comment", one): one for one in comment_ids}
        near = self.near.link
        there = await _there(near, named)
        if near is not self._link:
            there |= await _there(self._link, named.keys() - there)
        return {named[key] for key in there}

    def listen(self) -> AsyncGenerator[bytes | None, None]:
        """The messages of all channels in order, on a connection of its own; None comes once, first: it is in force.

        Raises Unavailable when the link ends. Whatever was written before the None must be read from the log.
        """
        return self.near.link.listen(CHANNELS)


async def _there(link: Link, asked: Collection[str]) -> set[str]:
    """Those of these keys that this Redis has."""
    told = await link.ask(*(("EXISTS", key) for key in asked)) if asked else []
    return {key for key, found in zip(asked, told, strict=True) if found}


def _end(told: list[Any]) -> Position | None:
    """What the script tells of an entry: its place and its weight, nothing where there is none."""
    return position.parse(told[0]) if told else None


def _position(rows: list[Any]) -> Position | None:
    return next((entry.position for row in rows if (entry := _entry(row)) is not None), None)


def _entry(row: list[Any]) -> Entry | None:
    """Scripts write ``n k a e`` in this order; Redis keeps it. A row of anybody else is none."""
    entry_id, fields = row
    try:
        return make_entry(entry_id, fields[1], fields[3], fields[5], fields[7])
    except (ValueError, IndexError):
        return None
