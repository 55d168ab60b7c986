"""The log: reading it, and hearing what is added to it. Only scripts write it; nothing on it is ever taken out."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Iterable, Sequence
from itertools import islice
from typing import Any, NamedTuple

from stream_server.events import redis_position
from stream_server.events.entry import Entry, make_entry
from stream_server.events.kinds import CHANNELS, PUBLIC_AUDIENCE
from stream_server.events.position import LOG_START, Position
from stream_server.store import keys
from stream_server.store.log.page_sizer import PageSizer
from stream_server.store.redis import server_info
from stream_server.store.redis.client import Command, RedisClient
from stream_server.store.redis.replica_router import ReplicaRouter
from stream_server.store.redis.scripts import Scripts

MAX_INVALID_ROWS = 8
"""So many rows in a row that are no entries of ours are passed over at the log's ends; nobody should write there."""

READ_FIRST_ROWS: Command = ("XRANGE", keys.LOG, "-", "+", "COUNT", MAX_INVALID_ROWS)
READ_LAST_ROWS: Command = ("XREVRANGE", keys.LOG, "+", "-", "COUNT", MAX_INVALID_ROWS)

PAGE_ENTRIES = 1000
"""So many rows are read at once by whoever goes back, at most."""

POSITIONS_PER_LOOKUP = 256
"""So many places are looked up in one round trip."""


class LogLookup(NamedTuple):
    """The log's ends, and the entry at the place that was asked for; ``floor`` is None while the log is empty.

    ``previous`` is the newest entry below that place, None if there is none. ``rollback_start`` is the place after which the
    log goes on for whoever was told what is not there any more; None where no rollback is known of.
    """

    head: Position
    floor: Position | None
    entry: Entry | None
    previous: Position | None
    rollback_start: Position | None = None

    @property
    def resume_position(self) -> Position | None:
        """The survivor, as long as nothing behind it was trimmed."""
        if self.rollback_start is None or self.floor is None or self.rollback_start.n + 1 < self.floor.n:
            return None
        return self.rollback_start

    def was_trimmed(self, entry_position: Position) -> bool:
        """Whether an entry that is not on the log any more was taken off its front, where it was in its turn."""
        return self.floor is not None and entry_position[:2] < self.floor[:2] and entry_position.n < self.floor.n


async def nothing_to_verify() -> None:
    """Nobody listens, so nobody can have heard what is not there."""


class EventLog:
    """The log of one store: ``replica_router`` is where it is heard and read from; where it ends the primary says.

    ``verify_feed`` is the feed's to set: whoever finds that a place is not where it should be has the feed look at its own
    before going on. ``invalid_rows`` counts the rows passed over that are no entries of ours, each time they are read.
    ``page_sizer`` says how many entries one page may have; whoever reads page by page asks it before each.
    """

    def __init__(self, redis: RedisClient, scripts: Scripts, replica_router: ReplicaRouter) -> None:
        self._redis = redis
        self._scripts = scripts
        self.replica_router = replica_router
        self.verify_feed: Callable[[], Awaitable[None]] = nothing_to_verify
        self.page_sizer = PageSizer()
        self.invalid_rows = 0

    async def head(self) -> Position:
        """The last entry; :data:`~stream_server.events.position.LOG_START` while there is none."""
        (rows,) = await self._redis.execute(READ_LAST_ROWS)
        self.page_sizer.record_rows(rows)
        return _first_position(rows) or LOG_START

    async def now_ms(self) -> int:
        """The time by the clock that writes the log, the primary's, in ms since 1970; the server's own may be off."""
        ((seconds, microseconds),) = await self._redis.execute(("TIME",))
        return int(seconds) * 1000 + int(microseconds) // 1000

    async def floor(self) -> Position | None:
        """The first entry that was not trimmed, None while there is none."""
        (rows,) = await self._redis.execute(READ_FIRST_ROWS)
        return _first_position(rows)

    async def read(
        self, after: Position | str, count: int, up_to: Position | None = None, *, from_primary: bool = False
    ) -> list[Entry]:
        """Up to ``count`` entries after a place (or a stream id) and not beyond ``up_to``, in order.

        ``from_primary`` reads them from the primary, for whoever has seen that they are not near.
        """
        start = after if isinstance(after, str) else after.entry_id
        end = "+" if up_to is None else up_to.entry_id
        link = self._redis if from_primary else self.replica_router.current
        while True:
            (rows,) = await link.execute(("XRANGE", keys.LOG, f"({start}", end, "COUNT", count))
            self.page_sizer.record_rows(rows)
            entries = [entry for row in rows if (entry := _parse_row(row)) is not None]
            self.invalid_rows += len(rows) - len(entries)
            if entries or len(rows) < count:
                return entries
            start = rows[-1][0].decode()

    async def look_up(self, ms: int, seq: int) -> LogLookup:
        """The ends of the log and the entry with this id, in one round trip and one step."""
        _, located = await self._look_up(ms, seq)
        return located

    async def look_up_with_run_id(self, entry_position: Position) -> tuple[str, LogLookup]:
        """The same, and by which run of which Redis: after a restart and a failover it may be of another history."""
        server, located = await self._look_up(entry_position.ms, entry_position.seq)
        return server_info.parse_info(server).get("run_id", ""), located

    async def _look_up(self, ms: int, seq: int) -> tuple[bytes, LogLookup]:
        """What is next to a place weighs as what is read from there on will, more likely than anything else does."""
        number = Position(ms, seq, 0).status_number
        head, floor, found, before, ranges, server = await self._scripts.call(
            "log_look_up", keys.META, f"{ms}-{seq}", number
        )
        self.page_sizer.record_rows(found)
        beside = before or ([] if found else floor)
        if beside:
            self.page_sizer.record_entry_bytes(beside[1])
        starts = (redis_position.parse_cursor(lost.partition(b" ")[0]) for lost in ranges)
        survivor = min((start for start in starts if start[:2] < (ms, seq)), default=None)
        entry = _parse_row(found[0]) if found else None
        return server, LogLookup(_parse_end(head) or LOG_START, _parse_end(floor), entry, _parse_end(before), survivor)

    async def position_before_posts(self, post_count: int, up_to: Position) -> Position:
        """The place behind which so many public posts up to ``up_to`` are, or all there are if these are fewer.

        It reads them, in pages, which costs as much as sending them does.
        """
        end, left = up_to.entry_id, post_count
        while True:
            most = self.page_sizer.page_entries(PAGE_ENTRIES)
            (rows,) = await self._redis.execute(("XREVRANGE", keys.LOG, end, "-", "COUNT", most))
            self.page_sizer.record_rows(rows)
            for entry in filter(None, map(_parse_row, rows)):
                if left == 0:
                    return entry.position
                left -= entry.kind == "post" and entry.audience == PUBLIC_AUDIENCE
            if len(rows) < most:
                floor = await self.floor()
                return LOG_START if floor is None else floor.previous()
            end = f"({rows[-1][0].decode()}"

    async def find_first_present(self, positions: Iterable[Position]) -> Position | None:
        """The first of these places that is on the log; None if none is."""
        asked = iter(positions)
        while batch := list(islice(asked, POSITIONS_PER_LOOKUP)):
            held = await self._find_present(batch)
            if held:
                return held[0]
        return None

    async def find_missing(self, positions: Sequence[Position]) -> list[Position]:
        """Those of these places that are not on the log, in their order."""
        held: set[Position] = set()
        for begin in range(0, len(positions), POSITIONS_PER_LOOKUP):
            held.update(await self._find_present(positions[begin : begin + POSITIONS_PER_LOOKUP]))
        return [place for place in positions if place not in held]

    async def _find_present(self, positions: Sequence[Position]) -> list[Position]:
        told = await self._redis.execute(*(("XRANGE", keys.LOG, p.entry_id, p.entry_id) for p in positions))
        return [place for place, rows in zip(positions, told, strict=True) if _first_position(rows) == place]

    async def find_existing(self, status_ids: Iterable[str], comment_ids: Iterable[str] = ()) -> set[str]:
        """The ids of those of these statuses and comments that were not deleted: one round trip, or two.

        What a replica does not have may be deleted, or newer than all that it has, though a page showed it: that came
        from the primary, or from another replica behind the same address. So the primary is asked about it.
        """
        named = {keys.key_for("status", one): one for one in status_ids}
        named |= {keys.key_for("comment", one): one for one in comment_ids}
        near = self.replica_router.current
        there = await _find_existing_keys(near, named)
        if near is not self._redis:
            there |= await _find_existing_keys(self._redis, named.keys() - there)
        return {named[key] for key in there}

    def subscribe(self) -> AsyncGenerator[bytes | None, None]:
        """The messages of all channels in order, on a connection of its own; None comes once, first: it is in force.

        Raises Unavailable when the link ends. Whatever was written before the None must be read from the log.
        """
        return self.replica_router.current.subscribe(CHANNELS)


async def _find_existing_keys(redis: RedisClient, candidates: Collection[str]) -> set[str]:
    """Those of these keys that this Redis has."""
    told = await redis.execute(*(("EXISTS", key) for key in candidates)) if candidates else []
    return {key for key, found in zip(candidates, told, strict=True) if found}


def _parse_end(reply: list[Any]) -> Position | None:
    """What the script tells of an entry: its place and its weight, nothing where there is none."""
    return redis_position.parse_reply_position(reply[0]) if reply else None


def _first_position(rows: list[Any]) -> Position | None:
    return next((entry.position for row in rows if (entry := _parse_row(row)) is not None), None)


def _parse_row(row: list[Any]) -> Entry | None:
    """Scripts write ``n k a e`` in this order; Redis keeps it. A row of anybody else is none."""
    entry_id, fields = row
    try:
        return make_entry(entry_id, fields[1], fields[3], fields[5], fields[7])
    except (ValueError, IndexError):
        return None
