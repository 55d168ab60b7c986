"""The log: read its entries, look up positions, and subscribe to new entries.

Only Lua scripts append to the log. Entries are never removed from its middle.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Iterable, Sequence
from itertools import islice
from typing import Any, NamedTuple

from stream_server.events.entry import Entry, make_entry
from stream_server.events.kinds import CHANNELS, PUBLIC_AUDIENCE
from stream_server.events.position import LOG_START, Position
from stream_server.store import keys
from stream_server.store.log.page_sizer import PageSizer
from stream_server.store.redis import positions, server_info
from stream_server.store.redis.client import Command, RedisClient
from stream_server.store.redis.replica_router import ReplicaRouter
from stream_server.store.redis.scripts import Scripts

MAX_INVALID_ROWS = 8
"""Most invalid rows that are skipped at either end of the log. Only this server should write to the log."""

READ_FIRST_ROWS: Command = ("XRANGE", keys.LOG, "-", "+", "COUNT", MAX_INVALID_ROWS)
READ_LAST_ROWS: Command = ("XREVRANGE", keys.LOG, "+", "-", "COUNT", MAX_INVALID_ROWS)

PAGE_ENTRIES = 1000
"""Most rows of one page when the log is read backwards."""

POSITIONS_PER_LOOKUP = 256
"""Most positions that are looked up in one round trip."""


class LogLookup(NamedTuple):
    """The ends of the log, and the entry at a position.

    Attributes:
        head: Position of the last entry.
        floor: Position of the first entry that was not trimmed, or None while the log is empty.
        entry: The entry with the requested id, or None.
        previous: Position of the newest entry before the requested id, or None.
        rollback_start: Position after which the log continues for a client at the requested id, if a recorded
            rollback covers that id. Otherwise None.
    """

    head: Position
    floor: Position | None
    entry: Entry | None
    previous: Position | None
    rollback_start: Position | None = None

    @property
    def resume_position(self) -> Position | None:
        """The position after a rollback from which a client may go on, or None if entries after it were trimmed."""
        if self.rollback_start is None or self.floor is None or self.rollback_start.n + 1 < self.floor.n:
            return None
        return self.rollback_start

    def was_trimmed(self, entry_position: Position) -> bool:
        """Return whether a missing entry was trimmed at the front of the log. Otherwise a rollback removed it."""
        return self.floor is not None and entry_position[:2] < self.floor[:2] and entry_position.n < self.floor.n


async def nothing_to_verify() -> None:
    """Return at once. A process without a feed has received no entries that the log could have lost."""


class EventLog:
    """The log of one store.

    Attributes:
        replica_router: The server to read and subscribe from. The ends of the log always come from the primary.
        verify_feed: Makes the feed check its own position. Call it when a position is not where it should be.
        page_sizer: Estimates the number of entries for one read. Ask it before each page.
        invalid_rows: Number of rows read that are not valid entries, counted at each read.
    """

    def __init__(
        self,
        redis: RedisClient,
        scripts: Scripts,
        replica_router: ReplicaRouter,
        verify_feed: Callable[[], Awaitable[None]] = nothing_to_verify,
    ) -> None:
        self._redis = redis
        self._scripts = scripts
        self.replica_router = replica_router
        self.verify_feed = verify_feed
        self.page_sizer = PageSizer()
        self.invalid_rows = 0

    async def head(self) -> Position:
        """Return the position of the last entry, or `LOG_START` while the log is empty."""
        (rows,) = await self._redis.execute(READ_LAST_ROWS)
        self.page_sizer.record_rows(rows)
        return _first_position(rows) or LOG_START

    async def now_ms(self) -> int:
        """Return the primary's time in milliseconds since 1970. Entry ids come from this clock."""
        ((seconds, microseconds),) = await self._redis.execute(("TIME",))
        return int(seconds) * 1000 + int(microseconds) // 1000

    async def floor(self) -> Position | None:
        """Return the position of the first entry that was not trimmed, or None while the log is empty."""
        (rows,) = await self._redis.execute(READ_FIRST_ROWS)
        return _first_position(rows)

    async def read(
        self, after: Position | str, count: int, up_to: Position | None = None, *, from_primary: bool = False
    ) -> list[Entry]:
        """Return up to ``count`` entries after a position or a stream id, in log order.

        Args:
            after: Position or stream id, exclusive.
            count: Most entries to return.
            up_to: Last position to return, inclusive. None means the end of the log.
            from_primary: Read from the primary, because the replica does not have these entries.
        """
        start = after if isinstance(after, str) else after.entry_id
        end = "+" if up_to is None else up_to.entry_id
        redis = self._redis if from_primary else self.replica_router.current
        while True:
            (rows,) = await redis.execute(("XRANGE", keys.LOG, f"({start}", end, "COUNT", count))
            self.page_sizer.record_rows(rows)
            entries = [entry for row in rows if (entry := _parse_row(row)) is not None]
            self.invalid_rows += len(rows) - len(entries)
            if entries or len(rows) < count:
                return entries
            start = rows[-1][0].decode()

    async def look_up(self, ms: int, seq: int) -> LogLookup:
        """Return the ends of the log and the entry with the id ``<ms>-<seq>``, in one atomic round trip."""
        _, located = await self._look_up(ms, seq)
        return located

    async def look_up_with_run_id(self, entry_position: Position) -> tuple[str, LogLookup]:
        """Return Redis' run id and the result of `look_up`. After a restart or a failover the run id differs."""
        info, located = await self._look_up(entry_position.ms, entry_position.seq)
        return server_info.parse_info(info).get("run_id", ""), located

    async def _look_up(self, ms: int, seq: int) -> tuple[bytes, LogLookup]:
        """Return Redis' INFO text and the lookup. Record the size of the entry at or before the id.

        That size is the best estimate for the entries that the caller reads next.
        """
        number = Position(ms, seq, 0).status_number
        head, floor, found, before, ranges, info = await self._scripts.call(
            "log_look_up", keys.META, f"{ms}-{seq}", number
        )
        self.page_sizer.record_rows(found)
        neighbour = before or ([] if found else floor)
        if neighbour:
            self.page_sizer.record_entry_bytes(neighbour[1])
        starts = (positions.parse_cursor(lost_range.partition(b" ")[0]) for lost_range in ranges)
        survivor = min((start for start in starts if start[:2] < (ms, seq)), default=None)
        entry = _parse_row(found[0]) if found else None
        return info, LogLookup(_parse_end(head) or LOG_START, _parse_end(floor), entry, _parse_end(before), survivor)

    async def position_before_posts(self, post_count: int, up_to: Position) -> Position:
        """Return the position after which there are ``post_count`` public posts, counted back from ``up_to``.

        Return the position before the first entry if the log has fewer posts. This reads the entries page by page, so
        it costs as much as sending them.
        """
        end, posts_left = up_to.entry_id, post_count
        while True:
            max_rows = self.page_sizer.page_entries(PAGE_ENTRIES)
            (rows,) = await self._redis.execute(("XREVRANGE", keys.LOG, end, "-", "COUNT", max_rows))
            self.page_sizer.record_rows(rows)
            for entry in filter(None, map(_parse_row, rows)):
                if posts_left == 0:
                    return entry.position
                posts_left -= entry.kind == "post" and entry.audience == PUBLIC_AUDIENCE
            if len(rows) < max_rows:
                floor = await self.floor()
                return LOG_START if floor is None else floor.previous()
            end = f"({rows[-1][0].decode()}"

    async def find_first_present(self, candidates: Iterable[Position]) -> Position | None:
        """Return the first of these positions that is on the log, or None."""
        remaining = iter(candidates)
        while batch := list(islice(remaining, POSITIONS_PER_LOOKUP)):
            present = await self._find_present(batch)
            if present:
                return present[0]
        return None

    async def find_missing(self, candidates: Sequence[Position]) -> list[Position]:
        """Return those of these positions that are not on the log, in the given order."""
        present: set[Position] = set()
        for begin in range(0, len(candidates), POSITIONS_PER_LOOKUP):
            present.update(await self._find_present(candidates[begin : begin + POSITIONS_PER_LOOKUP]))
        return [position for position in candidates if position not in present]

    async def _find_present(self, candidates: Sequence[Position]) -> list[Position]:
        """Return those of these positions that are on the primary's log, in one round trip."""
        replies = await self._redis.execute(*(("XRANGE", keys.LOG, p.entry_id, p.entry_id) for p in candidates))
        return [place for place, rows in zip(candidates, replies, strict=True) if _first_position(rows) == place]

    async def find_existing(self, status_ids: Iterable[str], comment_ids: Iterable[str] = ()) -> set[str]:
        """Return the ids of these statuses and comments that are not deleted.

        The primary is asked about ids that the replica does not have. They may be deleted, or newer than the replica's
        data, because the page that shows them may come from the primary or from another replica.
        """
        id_by_key = {keys.key_for("status", status_id): status_id for status_id in status_ids}
        id_by_key |= {keys.key_for("comment", comment_id): comment_id for comment_id in comment_ids}
        redis = self.replica_router.current
        present = await _find_existing_keys(redis, id_by_key)
        if redis is not self._redis:
            present |= await _find_existing_keys(self._redis, id_by_key.keys() - present)
        return {id_by_key[key] for key in present}

    def subscribe(self) -> AsyncGenerator[bytes | None, None]:
        """Yield the messages of all channels in order, from a connection of its own.

        The first item is None, once: the subscription is in force. Entries written before that must be read from the
        log. Raises `Unavailable` when the connection ends.
        """
        return self.replica_router.current.subscribe(CHANNELS)


async def _find_existing_keys(redis: RedisClient, candidates: Collection[str]) -> set[str]:
    """Return those of these keys that exist in this Redis."""
    replies = await redis.execute(*(("EXISTS", key) for key in candidates)) if candidates else []
    return {key for key, exists in zip(candidates, replies, strict=True) if exists}


def _parse_end(reply: list[Any]) -> Position | None:
    """Return the position in a script's reply [position, size], or None for an empty reply."""
    return positions.parse_reply_position(reply[0]) if reply else None


def _first_position(rows: list[Any]) -> Position | None:
    """Return the position of the first valid row, or None."""
    return next((entry.position for row in rows if (entry := _parse_row(row)) is not None), None)


def _parse_row(row: list[Any]) -> Entry | None:
    """Return the entry of a row, or None if the row is not valid.

    Scripts write the fields ``n k a e`` in this order, and Redis keeps the order.
    """
    entry_id, fields = row
    try:
        return make_entry(entry_id, fields[1], fields[3], fields[5], fields[7])
    except (ValueError, IndexError):
        return None
