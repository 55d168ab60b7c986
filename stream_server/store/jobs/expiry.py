"""The expiry of statuses: those that are too old go to the archive and leave, in one process of all at a time.

The order is always the same: read, archive, remove. So a crash at any moment leaves at most a line twice in the
archive, and never a status in neither. A status that has changed between read and removal is read again.

The id of a status contains the time at which this server took it, and the name of its key contains the id. So a scan of
the keys finds old statuses without an index, which every post would have to pay for. One scan of all keys is a *round*.

A status leaves at the earliest when the log no longer has the entry of its post, because a replay would otherwise
leave the post out without a `delete`. Later entries of the log, such as a like, may still show the status. Its id is
then kept in the set `expired` until these entries are gone, and replays show it as they did before.
"""

import asyncio
import logging
import random
from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from stream_server.events.one_line import keep_on_one_line
from stream_server.events.position import Position, created_ms, format_iso_time
from stream_server.store import keys
from stream_server.store.jobs.archive import ArchiveFailure, StatusArchive
from stream_server.store.jobs.lease import Lease
from stream_server.store.jobs.workers import none_if_unavailable
from stream_server.store.log.event_log import EventLog
from stream_server.store.reads import statuses
from stream_server.store.redis.client import RedisClient
from stream_server.store.redis.derived import DerivedRedis
from stream_server.store.redis.lanes import Command
from stream_server.store.redis.scripts import ScriptRunner

logger = logging.getLogger(__name__)

KEYS_PER_SCAN = 300
"""Approximate number of keys in one page of the scan. It takes Redis about a quarter of a millisecond."""

STATUSES_PER_READ = 16
"""Statuses that one pipeline reads."""

COMMENTS_PER_READ = 100
"""Comments that one pipeline reads."""

FAVORITES_PER_CALL = 300
"""Favorites of a user that one pipeline looks at."""

SCANNED_ROWS = ("status", "user", "list", "favorites")
"""Rows of the table of keys that a round looks at."""


class ExpiryRange(NamedTuple):
    """Which statuses are too old, and where the log begins.

    Attributes:
        below: Statuses with lower ids leave.
        floor: Id of the log's first entry as a status id. If the log is empty, the id of the present time.
    """

    below: int
    floor: int


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

    def __init__(self, core: RedisClient, derived: DerivedRedis, scripts: ScriptRunner, log: EventLog) -> None:
        self._core = core
        self._derived = derived
        self._scripts = scripts
        self._log = log

    def make_lease(self) -> Lease:
        """Return a new holder of the right to expire statuses.

        Beside the lease stand ``cursor``, the position of the scan in the round (``0`` at its start), and ``done``: all
        statuses with lower ids have left, so timelines need not keep their ids.
        """
        return Lease(self._scripts, "expiry")

    async def find_range(self, now_ms: int, max_days: float) -> ExpiryRange:
        """Return which statuses are older than ``max_days`` days, without those whose entry is still on the log."""
        first = await self._log.floor()
        floor = Position(now_ms, 0, 0).status_number if first is None else first.status_number
        oldest = Position(now_ms - round(max_days * 86_400_000), 0, 0).status_number
        return ExpiryRange(min(oldest, floor), floor)

    async def scan(self, cursor: str) -> tuple[str, dict[str, list[str]]]:
        """Return the next cursor (``0`` after the last page), and the ids of a page of keys by `SCANNED_ROWS`."""
        # The pattern matches all keys of the rows and few others, so that Redis need not send the others.
        command = ("SCAN", cursor, "MATCH", "{core}:[sulf]*", "COUNT", KEYS_PER_SCAN)
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
        status, comments = (keys.key_for(name).encode() for name in ("status", "comments"))
        for at in range(0, len(ids), STATUSES_PER_READ):
            chunk = [each.encode() for each in ids[at : at + STATUSES_PER_READ]]
            commands: list[Command] = []
            for each in chunk:
                # The row is asked first. So a comment that is written meanwhile makes the number of comments in the row
                # wrong, and the status stays.
                commands += (
                    statuses.row_command(each),
                    ("HGET", status + each, "audience"),
                    ("ZRANGE", comments + each, -1, -1),
                )
            replies = await self._core.execute(*commands)
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
            reply = await self._scripts.call(
                "statuses_expire", keys.META, below=which.below, floor_id=which.floor, rest=flat
            )
            words |= {row[0]: word.decode() for row, word in zip(rows, reply, strict=False)}
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
            command = ("ZRANGE", key, "-inf", f"({before_ms}", "BYSCORE", "LIMIT", 0, 1000)
            (ids,) = await self._core.execute(command)
            if not ids:
                return
            await self._core.execute(("ZREM", key, *ids))


LEASE_SECONDS = 60.0
"""Time after which another process continues if this one died."""

ROUND_INTERVAL_SECONDS = 3600.0
"""Pause in seconds between two rounds, and after a failure of the archive."""

STATUSES_PER_FILE = 4096
"""Number of old statuses from which they are archived and removed. So the archive has few files."""

FILE_BYTES = 4 * 2**20
"""Bytes of lines in memory from which they are written into a file of the archive."""

STATUSES_PER_STEP = 128
"""Most statuses that are read, or removed, before the next ones."""

NO_ARCHIVE = "none"
"""Value of the setting ``status_archive_dir`` that deletes old statuses without an archive."""


class ExpiryLoop:
    """Removes statuses that are older than ``max_days`` days, after it has archived them.

    Attributes:
        left: Number of statuses that this process removed.
        archive_failures: Number of times that the archive could not be written.
        page_pause_seconds: Pause after each page of keys, so that a round takes a small part of Redis' time.
    """

    def __init__(self, expiry: StatusExpiry, max_days: float, archive: StatusArchive | None) -> None:
        """``archive`` is None to delete without an archive."""
        self.left = 0
        self.archive_failures = 0
        self.page_pause_seconds = 0.05
        self._expiry = expiry
        self._max_days = max_days
        self._archive = archive
        self._lease = expiry.make_lease()
        self._told_failure = ""

    async def run(self) -> None:
        """Run rounds until cancelled. Without a maximum age, only wait."""
        if not self._max_days:
            await asyncio.Event().wait()
        while True:
            await none_if_unavailable(self.run_round)
            await asyncio.sleep(random.uniform(15, 30))

    async def run_round(self, now_ms: int | None = None) -> bool:
        """Run one round if no other process does. Return whether this process ran it to its end.

        ``now_ms`` replaces Redis' time in milliseconds. Raises `Unavailable` if Redis does not answer. A failure of the
        archive ends the round, and nothing more leaves.
        """
        if not await self._lease.hold(LEASE_SECONDS):
            return False
        try:
            return await self._scan(self._lease.now_ms if now_ms is None else now_ms)
        except ArchiveFailure as failure:
            await self._tell(str(failure))
            return False

    async def _scan(self, now_ms: int) -> bool:
        cursor, done_below = self._lease.kept.get("cursor", "0"), int(self._lease.kept.get("done", "0"))
        which = await self._expiry.find_range(now_ms, self._max_days)
        await self._expiry.forget_expired_ids(which.floor)
        is_whole, at = cursor == "0", format_iso_time(now_ms)
        done_to, old = cursor, dict[str, None]()  # a scan may give a key twice
        while True:
            cursor, ids = await self._expiry.scan(cursor)
            old |= dict.fromkeys(each for each in ids["status"] if int(each) < which.below)
            if cursor == "0" or len(old) >= STATUSES_PER_FILE:
                is_whole &= await self._expire([*old], which, at)
                done_to, old = cursor, {}
            await self._forget(ids, done_below)
            if cursor == "0":
                break
            if not await self._lease.hold(LEASE_SECONDS, cursor=done_to):
                return False
            await asyncio.sleep(self.page_pause_seconds)
        # Timelines forget only what surely has left, so a round that began in another process does not count.
        done = {"done": max(which.below, done_below)} if is_whole else {}
        await self._lease.rest(ROUND_INTERVAL_SECONDS, cursor=0, failure="", **done)
        self._told_failure = ""
        return True

    async def _forget(self, ids: dict[str, list[str]], below: int) -> None:
        """Remove from timelines and favorites the ids that left in an earlier round."""
        if not below:
            return
        homes = [keys.home_timeline(uid) for uid in ids["user"]]
        await self._expiry.forget(homes + [keys.list_timeline(each) for each in ids["list"]], below)
        for uid in ids["favorites"]:
            await self._expiry.prune_favorites(uid, below)

    async def _expire(self, ids: Sequence[str], which: ExpiryRange, at: str) -> bool:
        """Archive and remove statuses. Return whether all have left.

        A status that changes meanwhile is read and archived again, three times in all. The next round tries again.
        """
        for _ in range(3):
            ids = await self._expire_once(ids, which, at)
            if not ids:
                return True
        return False

    async def _expire_once(self, ids: Sequence[str], which: ExpiryRange, at: str) -> list[str]:
        """Archive and remove statuses. Return the ids of those that have changed meanwhile, and stay."""
        changed, read, lines = list[str](), list[OldStatus](), bytearray()
        for first in range(0, len(ids), STATUSES_PER_STEP):
            for status in await self._expiry.read(ids[first : first + STATUSES_PER_STEP]):
                await self._add_lines(lines, status, at)
                read.append(status._replace(json=b""))
                if len(lines) >= FILE_BYTES:
                    changed += await self._leave(read, lines, which, at)
        return changed + await self._leave(read, lines, which, at)

    async def _add_lines(self, lines: bytearray, status: OldStatus, at: str) -> None:
        """Add the lines of a status, its comments first. If they are more than a file takes, write some already."""
        if self._archive is None:
            return
        after = b""
        while status.newest_comment and (page := await self._expiry.read_comments(status.id, after)):
            lines += b"".join(_line(at, b"comment", comment) for comment in page)
            after = page[-1].id
            if len(lines) >= FILE_BYTES:
                await self._write(lines, at)
        lines += _line(at, b"status", status)

    async def _leave(self, read: list[OldStatus], lines: bytearray, which: ExpiryRange, at: str) -> list[str]:
        """Write the lines, remove the statuses, and empty both. Return the ids of statuses that have changed."""
        await self._write(lines, at)
        words: dict[bytes, str] = {}
        for first in range(0, len(read), STATUSES_PER_STEP):
            words |= await self._expiry.remove(which, read[first : first + STATUSES_PER_STEP])
        read.clear()
        self.left += sum(word == "left" for word in words.values())
        return [status_id.decode() for status_id, word in words.items() if word == "changed"]

    async def _write(self, lines: bytearray, at: str) -> None:
        if self._archive is None or not lines:
            return
        try:
            await asyncio.to_thread(self._archive.write, at, lines)
        except ArchiveFailure:
            self.archive_failures += 1
            raise
        lines.clear()

    async def _tell(self, failure: str) -> None:
        """Log a new failure, store it in Redis for ``doctor``, and keep all processes from trying again for an hour."""
        if failure != self._told_failure:
            logger.error("no status leaves because of its age: %s", failure)
        self._told_failure = failure
        await self._lease.rest(ROUND_INTERVAL_SECONDS, failure=failure)


def make_expiry_loop(expiry: StatusExpiry, max_days: float, folder: str) -> ExpiryLoop:
    """Return the expiry loop that archives in ``folder``; empty or `NO_ARCHIVE` for no archive."""
    archive = StatusArchive(folder) if folder not in ("", NO_ARCHIVE) else None
    return ExpiryLoop(expiry, max_days, archive)


def _line(at: str, noun: bytes, item: OldStatus | OldComment) -> bytes:
    """Return the line of the archive for a status or a comment (``noun``) that left at the time ``at`` (ISO 8601).

    Nothing is escaped: the server itself made the JSON and the audience.
    """
    json = keep_on_one_line(item.json)
    return b'{"left":"%b","audience":"%b","%b":%b}\n' % (at.encode(), item.audience, noun, json)
