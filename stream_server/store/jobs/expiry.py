"""The expiry of statuses: find those that are too old, read them for the archive, and remove them.

The id of a status contains the time at which this server took it, and the name of its key contains the id. So a scan of
the keys finds old statuses without an index, which every post would have to pay for. One scan of all keys is a *round*.

A status leaves at the earliest when the log no longer has the entry of its post, because a replay would otherwise
leave the post out without a `delete`. Later entries of the log, such as a like, may still show the status. Its id is
then kept in the set `expired` until these entries are gone, and replays show it as they did before.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import NamedTuple

from stream_server.events.position import Position, created_ms
from stream_server.store import keys
from stream_server.store.log.event_log import EventLog
from stream_server.store.reads import statuses
from stream_server.store.redis.client import RedisClient
from stream_server.store.redis.derived import DerivedRedis
from stream_server.store.redis.lanes import Command
from stream_server.store.redis.scripts import Scripts

KEYS_PER_SCAN = 300
"""Approximate number of keys in one page of the scan. It takes Redis about a quarter of a millisecond."""

STATUSES_PER_READ = 16
"""Statuses that one pipeline reads."""

COMMENTS_PER_READ = 100
"""Comments that one pipeline reads."""

FAVORITES_PER_CALL = 300
"""Favorites of a user that one pipeline looks at."""

FORGOTTEN_PER_CALL = 1000
"""Ids that one command removes from the set of expired ids."""

MS_PER_DAY = 86_400_000

SCANNED_ROWS = ("status", "user", "list", "favorites")
"""Rows of the table of keys that a round looks at."""

_SCAN_PATTERN = "{core}:[sulf]*"
"""Matches all keys of `SCANNED_ROWS` and few others, so that Redis need not send the others."""


class ExpiryRange(NamedTuple):
    """Which statuses are too old, and where the log begins.

    Attributes:
        below: Statuses with lower ids leave.
        floor: Id of the log's first entry as a status id. If the log is empty, the id of the present time.
    """

    below: int
    floor: int


class ExpiryLease(NamedTuple):
    """The lease of the expiry.

    Attributes:
        cursor: Position of the scan in the round, ``0`` at the start of a round.
        now_ms: Redis' time in milliseconds since 1970.
        done_below: All statuses with lower ids have left. Timelines need not keep their ids.
    """

    cursor: str
    now_ms: int
    done_below: int


class OldStatus(NamedTuple):
    """A status as it is read for the archive: its JSON without the original, and the values that show a change."""

    id: bytes
    json: bytes
    audience: bytes
    likes: bytes
    comments: bytes
    newest_comment: bytes


class OldComment(NamedTuple):
    """A comment as it is read for the archive."""

    id: bytes
    json: bytes
    audience: bytes


class StatusExpiry:
    """Finds, reads and removes statuses that are too old. All methods raise `Unavailable` if Redis does not answer."""

    def __init__(self, core: RedisClient, derived: DerivedRedis, scripts: Scripts, log: EventLog) -> None:
        self._core = core
        self._derived = derived
        self._scripts = scripts
        self._log = log

    async def hold_lease(self, process: str, seconds: float, **kept: str | int) -> ExpiryLease | None:
        """Take or prolong the right to expire statuses for ``seconds``. None if another process has it.

        ``kept`` are members of the lease to store in Redis, such as ``cursor``, for the process that has it next.
        """
        fields = [word for name, value in kept.items() for word in (name, value)]
        reply = await self._scripts.call("expiry_lease", keys.META, process, round(seconds * 1000), *fields)
        return ExpiryLease(reply[0].decode(), int(reply[1]), int(reply[2])) if reply else None

    async def find_range(self, now_ms: int, max_days: float) -> ExpiryRange:
        """Return which statuses are older than ``max_days`` days, without those whose entry is still on the log."""
        first = await self._log.floor()
        floor = Position(now_ms, 0, 0).status_number if first is None else first.status_number
        oldest = Position(now_ms - round(max_days * MS_PER_DAY), 0, 0).status_number
        return ExpiryRange(min(oldest, floor), floor)

    async def scan(self, cursor: str) -> tuple[str, dict[str, list[str]]]:
        """Return the next cursor (``0`` after the last page), and the ids of a page of keys by `SCANNED_ROWS`."""
        command = ("SCAN", cursor, "MATCH", _SCAN_PATTERN, "COUNT", KEYS_PER_SCAN)
        ((next_cursor, names),) = await self._core.execute(command)
        ids = defaultdict[str, list[str]](list)
        for name in names:
            row, subject = keys.parse(name.decode(errors="replace"))
            if row in SCANNED_ROWS:
                ids[row].append(subject)
        return next_cursor.decode(), ids

    async def read(self, ids: Sequence[str]) -> list[OldStatus]:
        """Return those statuses that exist, in the order of ``ids``."""
        found = list[OldStatus]()
        for at in range(0, len(ids), STATUSES_PER_READ):
            chunk = [each.encode() for each in ids[at : at + STATUSES_PER_READ]]
            replies = await self._core.execute(*chain.from_iterable(map(_old_status_commands, chunk)))
            for status_id, values, audience, newest in zip(chunk, *(replies[i::3] for i in range(3)), strict=True):
                row = statuses.parse_row(status_id, values)
                if row is not None:
                    newest_comment, json = newest[0] if newest else b"", statuses.expand(row.short_json())
                    found.append(OldStatus(status_id, json, audience, row.likes, row.comments, newest_comment))
        return found

    async def read_comments(self, status_id: bytes, after: bytes) -> list[OldComment]:
        """Return the comments of a status behind the comment ``after``, oldest first; empty after the last one."""
        comments, comment = (keys.key_for(name).encode() for name in ("comments", "comment"))
        begin = b"(" + after if after else b"-inf"
        command = ("ZRANGE", comments + status_id, begin, "+inf", "BYSCORE", "LIMIT", 0, COMMENTS_PER_READ)
        (ids,) = await self._core.execute(command)
        rows = await self._core.execute(*(("HMGET", comment + each, "json", "audience") for each in ids)) if ids else []
        return [OldComment(each, *row) for each, row in zip(ids, rows, strict=True) if row[0] is not None]

    async def remove(self, which: ExpiryRange, old: Sequence[OldStatus]) -> dict[bytes, str]:
        """Remove statuses in bounded steps. Return by id: ``left``, ``changed`` since it was read, or ``gone`` before.

        A status that has changed stays, because the archive does not have the change.
        """
        words: dict[bytes, str] = {}
        while len(words) < len(old):
            rows = [(s.id, s.likes, s.comments, s.newest_comment) for s in old[len(words) :]]
            flat = [value for row in rows for value in row]
            reply = await self._scripts.call("statuses_expire", keys.META, which.below, which.floor, *flat)
            for row, word in zip(rows, reply, strict=False):
                words[row[0]] = word.decode()
        return words

    async def forget(self, timelines: Sequence[str], below: int) -> None:
        """Remove from timelines the ids of statuses below ``below``, which all have left.

        A later round does it again, so a timeline whose server does not answer is left out.
        """
        commands: list[Command] = [("ZREMRANGEBYSCORE", key, "-inf", f"({below}") for key in timelines]
        if commands:
            await self._derived.execute_each(*commands)

    async def prune_favorites(self, uid: str, below: int) -> None:
        """Remove from a user's favorites those statuses below ``below`` that do not exist any more."""
        key, status, rank = keys.key_for("favorites", uid), keys.key_for("status").encode(), 0
        while True:
            (page,) = await self._core.execute(("ZRANGE", key, rank, rank + FAVORITES_PER_CALL - 1))
            old = [each for each in page if int(each) < below]
            found = await self._core.execute(*(("EXISTS", status + each) for each in old)) if old else ()
            gone = [each for each, exists in zip(old, found, strict=True) if not exists]
            if gone:
                await self._core.execute(("ZREM", key, *gone))
            if len(page) < FAVORITES_PER_CALL:
                return
            rank += len(page) - len(gone)

    async def forget_expired_ids(self, floor: int) -> None:
        """Remove the ids of expired statuses and comments that no entry of the log shows any more."""
        before_ms = created_ms(floor)
        key = keys.key_for("expired")
        while True:
            command = ("ZRANGE", key, "-inf", f"({before_ms}", "BYSCORE", "LIMIT", 0, FORGOTTEN_PER_CALL)
            (ids,) = await self._core.execute(command)
            if not ids:
                return
            await self._core.execute(("ZREM", key, *ids))


def _old_status_commands(status_id: bytes) -> Iterable[Command]:
    """Return what :meth:`StatusExpiry.read` asks about a status. Its row comes first.

    So a comment that is written meanwhile makes the number of comments in the row wrong, and the status stays.
    """
    status, comments = (keys.key_for(name).encode() + status_id for name in ("status", "comments"))
    return statuses.row_command(status_id), ("HGET", status, "audience"), ("ZRANGE", comments, -1, -1)
