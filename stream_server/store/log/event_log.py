"""The log: read its entries, look up positions, subscribe to new entries, and record that Redis lost the end of it.

Only Lua scripts append to the log. Entries are never removed from its middle.

Redis loses the end of the log in a power cut or a failover. It then assigns the same entry numbers again. If its clock
was set back, new ids may also be below lost ids. So neither the number nor the id tells which entries a client has
seen. A feed that remembers the lost entries records the rollback once. A client that returns with a lost cursor then
resumes at the last entry before the loss.
"""

from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from itertools import islice
from typing import Any, NamedTuple

from stream_server.events.entry import CHANNELS, PUBLIC_AUDIENCE, Entry, make_entry
from stream_server.events.position import LOG_START, Position, entry_id_of
from stream_server.store import keys
from stream_server.store.redis import protocol
from stream_server.store.redis.client import RedisClient
from stream_server.store.redis.replica_router import ReplicaRouter
from stream_server.store.redis.scripts import ScriptRunner, parse_reply_position
from stream_server.store.redis.subscription import Subscription
from stream_server.store.social.open_streams import ASK_CHANNEL

PAGE_BYTES = 4 << 20
"""Approximate size in bytes of the entries in one read. A read returns at least one entry."""


class PageSizer:
    """Estimates how many log entries fit in one read of about 4 MiB, from the size of the entries that were read last.

    A fixed number does not suffice: 256 posts are about 0.25 MB, or 300 MB at their maximum size. The first read of
    large entries after small ones is larger than 4 MiB. After large entries, each read lowers the estimated size by at
    most half, because large entries seldom come alone.
    """

    def __init__(self) -> None:
        self._entry_bytes = 0.0

    def page_entries(self, max_entries: int) -> int:
        """Return how many log entries to request in the next read, for about 4 MiB: from 1 to ``max_entries``."""
        fitting = int(PAGE_BYTES / self._entry_bytes) if self._entry_bytes else 16  # the size is still unknown
        return max(1, min(max_entries, fitting))

    def record_rows(self, rows: Sequence[Sequence[Any]]) -> None:
        """Record the average size of log rows from Redis, for the next estimate. An empty list changes nothing."""
        if rows:
            self.record_entry_bytes(sum(sum(map(len, fields)) for _, fields in rows) / len(rows))

    def record_entry_bytes(self, entry_bytes: float) -> None:
        """Record the average size of some log entries in bytes, for the next estimate."""
        self._entry_bytes = max(entry_bytes, self._entry_bytes / 2)


MAX_INVALID_ROWS = 8
"""Most invalid rows that are skipped at either end of the log. Only this server should write to the log."""

PAGE_ENTRIES = 1000
"""Most rows of one page when the log is read backwards."""

POSITIONS_PER_LOOKUP = 256


class LogLookup(NamedTuple):
    """The answer to a look-up of an id on the log: the ends of the log, and the entries at and before the id.

    Attributes:
        head: Position of the last entry.
        floor: Position of the first entry that was not trimmed, or None while the log is empty.
        entry: The entry with the requested id, or None if the log has no such entry.
        previous: Position of the newest entry before the requested id, or None.
        rollback_start: Position before the lost entries, if a recorded rollback lost the requested id. Otherwise None.
        has_lost_front: Whether the requested id lies before ``floor``, and entries were removed there.
    """

    head: Position
    floor: Position | None
    entry: Entry | None
    previous: Position | None
    rollback_start: Position | None = None
    has_lost_front: bool = False

    @property
    def resume_position(self) -> Position | None:
        """Position after which a client resumes, if a rollback lost the entry that was looked up. Otherwise None.

        It is also None if the entry after this position was trimmed, because the client would miss that entry.
        """
        if self.rollback_start is None or self.floor is None or self.rollback_start.n + 1 < self.floor.n:
            return None
        return self.rollback_start

    def has_all_after(self, position: Position) -> bool:
        """Whether the log still has every entry that was written after the looked-up ``position``.

        It has them if it has the entry at ``position``, because only its oldest entries are ever removed. It has them
        after `LOG_START` if none was ever removed. Then a number without an entry is no loss: nothing had it.
        """
        if self.entry is not None:
            return self.entry.position == position
        return position == LOG_START and not self.has_lost_front

    def is_below_floor(self, position: Position) -> bool:
        """Whether the log has no entry at the looked-up ``position`` or before it."""
        return self.floor is None or position[:2] < self.floor[:2]

    def was_trimmed(self, entry_position: Position) -> bool:
        """Whether the looked-up entry is missing because the log's front was trimmed. If not, a rollback lost it."""
        return self.floor is not None and entry_position[:2] < self.floor[:2] and entry_position.n < self.floor.n


async def nothing_to_verify() -> None:
    """Do nothing. Pass this function as ``verify_feed`` in a process without a feed (link from Redis to the hub)."""


class EventLog:
    """Reads the log of one store, and subscribes to its new entries.

    Attributes:
        replica_router: Selects the server for reads and subscriptions. The primary always gives the ends of the log.
        verify_feed: Makes the feed compare its position with the log. Call it if an expected entry is missing.
        page_sizer: Estimates how many entries fit in the next read.
        invalid_rows: Number of rows read that are not valid entries. A row that is read twice counts twice.
    """

    def __init__(
        self,
        redis: RedisClient,
        scripts: ScriptRunner,
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
        """Return the position of the last entry, or `LOG_START` (before all entries) while the log is empty."""
        (rows,) = await self._redis.execute(("XREVRANGE", keys.LOG, "+", "-", "COUNT", MAX_INVALID_ROWS))
        self.page_sizer.record_rows(rows)
        return _first_position(rows) or LOG_START

    async def now_ms(self) -> int:
        """Return the primary's time in milliseconds since 1970. The ids of log entries come from this clock."""
        ((seconds, microseconds),) = await self._redis.execute(("TIME",))
        return int(seconds) * 1000 + int(microseconds) // 1000

    async def floor(self) -> Position | None:
        """Return the position of the first entry that was not trimmed, or None while the log is empty."""
        (rows,) = await self._redis.execute(("XRANGE", keys.LOG, "-", "+", "COUNT", MAX_INVALID_ROWS))
        return _first_position(rows)

    async def read(
        self, after: Position | str, count: int, up_to: Position | None = None, *, from_primary: bool = False
    ) -> list[Entry]:
        """Return up to ``count`` entries after a position or a stream id, in log order.

        ``up_to`` is the position of the last entry to return. If ``from_primary`` is true, read from the primary even
        if a replica is selected. Callers use this for entries that the replica does not have yet. In a cluster, if the
        replica has no such entry, this also reads from the primary: the entry's message may have come before the entry.
        """
        start = after if isinstance(after, str) else after.entry_id
        end = "+" if up_to is None else up_to.entry_id
        redis = self._redis if from_primary else self.replica_router.current
        entries = await self._read_from(redis, start, end, count)
        if not entries and self._may_lack_heard_entries(redis):
            entries = await self._read_from(self._redis, start, end, count)
        return entries

    async def _read_from(self, redis: RedisClient, start: str, end: str, count: int) -> list[Entry]:
        while True:
            (rows,) = await redis.execute(("XRANGE", keys.LOG, f"({start}", end, "COUNT", count))
            self.page_sizer.record_rows(rows)
            entries = [entry for row in rows if (entry := _parse_row(row)) is not None]
            self.invalid_rows += len(rows) - len(entries)
            if entries or len(rows) < count:
                return entries
            start = rows[-1][0].decode()

    async def read_back(self, last: Position, count: int) -> list[Entry]:
        """Return up to ``count`` entries in log order, of which the last is the entry at ``last``.

        The list is empty if the log, or the selected replica, does not have this entry. In a cluster, the primary is
        asked after the replica, as by :meth:`read`.
        """
        redis = self.replica_router.current
        entries = await self._read_back_from(redis, last, count)
        if not entries and self._may_lack_heard_entries(redis):
            entries = await self._read_back_from(self._redis, last, count)
        return entries

    def _may_lack_heard_entries(self, redis: RedisClient) -> bool:
        return self.replica_router.is_in_cluster and redis is not self._redis

    async def _read_back_from(self, redis: RedisClient, last: Position, count: int) -> list[Entry]:
        (rows,) = await redis.execute(("XREVRANGE", keys.LOG, last.entry_id, "-", "COUNT", count))
        self.page_sizer.record_rows(rows)
        entries = [entry for row in reversed(rows) if (entry := _parse_row(row)) is not None]
        self.invalid_rows += len(rows) - len(entries)
        return entries if entries and entries[-1].position == last else []

    async def look_up(self, ms: int, seq: int) -> LogLookup:
        """Return the `LogLookup` of the id ``<ms>-<seq>``. Redis reads all parts of it in one atomic step."""
        _, located = await self._look_up(ms, seq)
        return located

    async def look_up_with_run_id(self, entry_position: Position) -> tuple[str, LogLookup]:
        """Return the run id of the primary Redis, and what the log has at ``entry_position``."""
        info, located = await self._look_up(entry_position.ms, entry_position.seq)
        return protocol.parse_info(info).get("run_id", ""), located

    async def _look_up(self, ms: int, seq: int) -> tuple[bytes, LogLookup]:
        """Look up an id on the log. Also return Redis' INFO text, which shows whether Redis was restarted."""
        since = Position(ms, seq, 0).status_number
        log = await self._scripts.call("log_look_up", keys.META, place=f"{ms}-{seq}", since=since)
        floor, found, before = log["floor"], log["found"], log["before"]
        self.page_sizer.record_rows(found)
        neighbour = before or ([] if found else floor)
        if neighbour:
            self.page_sizer.record_entry_bytes(neighbour[1])
        starts = (protocol.parse_cursor(lost_range.partition(b" ")[0]) for lost_range in log["rollbacks"])
        survivor = min((start for start in starts if start[:2] < (ms, seq)), default=None)
        entry = _parse_row(found[0]) if found else None
        ends, has_lost_front = (_parse_end(log["head"]) or LOG_START, _parse_end(floor)), bool(log["has_lost_front"])
        return log["info"], LogLookup(*ends, entry, _parse_end(before), survivor, has_lost_front=has_lost_front)

    async def position_before_posts(self, post_count: int, up_to: Position) -> Position:
        """Return the position from which a client gets the newest ``post_count`` public posts up to ``up_to``.

        If the log has fewer posts, return the position before its first entry. The method reads all entries from the
        result to ``up_to`` page by page, so it costs as much as sending them.
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
        """Return the first of the ``candidates`` whose entry is still on the log, or None."""
        remaining = iter(candidates)
        while batch := list(islice(remaining, POSITIONS_PER_LOOKUP)):
            present = await self._find_present(batch)
            if present:
                return present[0]
        return None

    async def find_missing(self, candidates: Sequence[Position]) -> list[Position]:
        """Return those positions of ``candidates`` at which the log has no entry, in the given order."""
        present: set[Position] = set()
        for begin in range(0, len(candidates), POSITIONS_PER_LOOKUP):
            present.update(await self._find_present(candidates[begin : begin + POSITIONS_PER_LOOKUP]))
        return [position for position in candidates if position not in present]

    async def _find_present(self, candidates: Sequence[Position]) -> list[Position]:
        replies = await self._redis.execute(*(("XRANGE", keys.LOG, p.entry_id, p.entry_id) for p in candidates))
        return [place for place, rows in zip(candidates, replies, strict=True) if _first_position(rows) == place]

    async def find_existing(self, status_ids: Iterable[str], comment_ids: Iterable[str] = ()) -> set[str]:
        """Return those of the given status ids and comment ids whose status or comment is not deleted.

        What left because of its age counts as existing, because nobody deleted it.

        If the selected replica lacks an id, this also asks the primary, because the replica may be behind.
        """
        id_by_key = {keys.key_for("status", status_id): status_id for status_id in status_ids}
        id_by_key |= {keys.key_for("comment", comment_id): comment_id for comment_id in comment_ids}
        redis = self.replica_router.current
        present = await _find_existing_keys(redis, id_by_key)
        if redis is not self._redis:
            present |= await _find_existing_keys(self._redis, id_by_key.keys() - present)
        found = {id_by_key[key] for key in present}
        if absent := [subject for key, subject in id_by_key.items() if key not in present]:
            (times,) = await self._redis.execute(("ZMSCORE", keys.key_for("expired"), *absent))
            found |= {subject for subject, left_ms in zip(absent, times, strict=True) if left_ms is not None}
        return found

    async def find_edits(self, status_ids: Collection[str]) -> dict[str, Entry]:
        """Return the last `edit` entry of each of these statuses that the log has one of, by its id."""
        if not status_ids:
            return {}
        redis = self.replica_router.current
        (scores,) = await redis.execute(("ZMSCORE", keys.key_for("edited"), *status_ids))
        ids = [entry_id_of(int(score)) for score in scores if score is not None]
        found = await redis.execute(*(("XRANGE", keys.LOG, each, each) for each in ids)) if ids else ()
        edits = (_parse_row(row) for rows in found for row in rows)
        return {edit.subject_id: edit for edit in edits if edit is not None and edit.subject_id is not None}

    async def subscribe(self, on_question: Callable[[bytes], None]) -> Subscription:
        """Subscribe to all kinds of log entries. Return when Redis has confirmed it.

        ``on_question`` is called at once with each question of another process about open streams, also while entries
        wait: a question is not on the log, so it could not be read later.

        The messages are those of entries that are written from now on. The caller must read older entries from the log,
        and close the subscription. Raises `Unavailable` if Redis does not answer.
        """
        return await self.replica_router.current.subscribe(CHANNELS, {ASK_CHANNEL: on_question})


async def _find_existing_keys(redis: RedisClient, candidates: Collection[str]) -> set[str]:
    """Return which of the keys exist. Usually all do, which one command shows; only otherwise ask for each key."""
    if not candidates:
        return set()
    (count,) = await redis.execute(("EXISTS", *candidates))
    if count == len(candidates):
        return set(candidates)
    replies = await redis.execute(*(("EXISTS", key) for key in candidates))
    return {key for key, exists in zip(candidates, replies, strict=True) if exists}


def _parse_end(reply: list[Any]) -> Position | None:
    return parse_reply_position(reply[0]) if reply else None


def _first_position(rows: list[Any]) -> Position | None:
    return next((entry.position for row in rows if (entry := _parse_row(row)) is not None), None)


def _parse_row(row: list[Any]) -> Entry | None:
    """Return the log entry of a row from Redis, or None if the row is not valid.

    Scripts write the fields ``n k a e`` (number, kind, audience, event) in this order, and Redis keeps the order.
    """
    entry_id, fields = row
    try:
        return make_entry(entry_id, fields[1], fields[3], fields[5], fields[7])
    except (ValueError, IndexError):
        return None


class RecordedRollback(NamedTuple):
    """A rollback (a loss of the log's end) as it is recorded on the log.

    Attributes:
        resume_after: Position of the last entry before the loss. Clients that received lost entries resume after it.
        recorded_at: Position of the new log entry that records the rollback, or None if an earlier call recorded it.
    """

    resume_after: Position
    recorded_at: Position | None


class Rollbacks:
    """Records rollbacks on one log. A rollback means that Redis lost the end of the log."""

    def __init__(self, scripts: ScriptRunner) -> None:
        self._scripts = scripts

    async def record(self, last_kept: Position, lost: Position) -> RecordedRollback | None:
        """Record on the log that Redis lost the entries after ``last_kept``. ``lost`` is the newest lost entry known.

        Later entries get higher ids than ``lost``. Returns None, recording nothing, if ``lost`` is still on the log.
        Repeated calls record a rollback only once. Raises `Unavailable` while Redis accepts no writes.
        """
        reply = await self._scripts.call(
            "log_record_rollback", keys.META, from_ms=last_kept.ms, from_seq=last_kept.seq, from_n=last_kept.n,
            lost_ms=lost.ms, lost_seq=lost.seq, lost_n=lost.n,
        )  # fmt: skip
        if not reply:
            return None
        recorded_at = parse_reply_position(reply["position"]) if "position" in reply else None
        return RecordedRollback(protocol.parse_cursor(reply["resume_after"]), recorded_at)
