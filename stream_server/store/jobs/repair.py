"""Looking everything over: counters against what they count, timelines against the truth, and what was left behind.

One walk over all keys, in bounded pages, with everything else going on beside it. So what looks wrong is looked at
twice, and what a job will see to is not wrong. Each mend is one script that looks once more in the same step, or a
refill, which is a job and does so too.
"""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Sequence
from typing import NamedTuple

from stream_server.store import keys
from stream_server.store.jobs.queue import JobQueue
from stream_server.store.jobs.runner import TIMELINE_KEY_BY_KIND
from stream_server.store.redis.client import RedisClient
from stream_server.store.redis.scripts import REFILL_AUTHORS_PER_PASS, Scripts

KEYS_PER_SCAN = 500
"""Keys of one page of the walk."""

RECHECK_SECONDS = 0.5
"""What looks wrong on a timeline is looked at again after this time: a write may be on its way."""

FULL_TIMELINE_SHARE = 0.75
"""A timeline that is shorter than this part of its length, and could be longer, is short."""

COUNTED_KINDS = ("user", "status", "list", "group")
"""Kinds of hashes with counters."""

DEPENDENT_KINDS = ("likes", "comments", "replies", "reposts")
"""Kinds of sets that hang on a status."""


class RepairFinding(NamedTuple):
    """Something that is not as it should be: counter, timeline, orphan or parked; which one; and a sentence."""

    kind: str
    subject: str
    message: str


class ScanPage(NamedTuple):
    """The ids of one page of the walk by the name of their key's row, and how many keys were seen so far, of all."""

    ids: dict[str, list[str]]
    keys_scanned: int
    keys_total: int


class Repair:
    """Looks one store over; with ``mend`` it also mends what it finds."""

    def __init__(self, redis: RedisClient, scripts: Scripts, queue: JobQueue) -> None:
        self._redis = redis
        self._scripts = scripts
        self._queue = queue

    async def try_lock(self, seconds: float) -> bool:
        """Whether it is one's turn: of all that ask, one gets it, once in so many seconds."""
        key = keys.key_for("repair")
        (taken,) = await self._redis.execute(("SET", key, "1", "NX", "PX", max(1, round(seconds * 1000))))
        return taken is not None

    async def run(
        self, *, fix: bool, on_progress: Callable[[int, int], None] = lambda _seen, _all: None
    ) -> list[RepairFinding]:
        """All findings; ``on_progress`` hears of the keys that were seen, and how many there are. Raises Unavailable."""
        found = [RepairFinding("parked", job, "failed too often") for job in await self._queue.list_parked()]
        if fix:
            for finding in found:
                await self._queue.unpark(finding.subject)
        async for page in self._scan():
            found += await self._check_page(page.ids, fix=fix)
            on_progress(page.keys_scanned, page.keys_total)
        return found

    async def _scan(self) -> AsyncIterator[ScanPage]:
        cursor, seen = b"0", 0
        while True:
            (cursor, names), all_ = await self._redis.execute(("SCAN", cursor, "COUNT", KEYS_PER_SCAN), ("DBSIZE",))
            seen += len(names)
            yield ScanPage(_group_ids_by_row(names), min(seen, all_), all_)
            if cursor == b"0":
                return

    async def _check_page(self, ids: dict[str, list[str]], *, fix: bool) -> list[RepairFinding]:
        found = []
        for kind in COUNTED_KINDS:
            found += await self._check_counters(kind, ids[kind], fix=fix)
        owners = [("home", uid) for uid in ids["user"]] + [("list", list_id) for list_id in ids["list"]]
        found += await self._check_timelines(owners, fix=fix)
        hung = sorted({status for kind in DEPENDENT_KINDS for status in ids[kind]})
        left = {"jobs": ids["job"], "statuses": hung, "users": ids["home"], "lists": ids["timeline"]}
        for kind, some in left.items():
            found += await self._check_orphans(kind, some, fix=fix)
        return found

    async def _check_counters(self, kind: str, ids: Sequence[str], *, fix: bool) -> list[RepairFinding]:
        if not ids:
            return []
        wrong = await self._scripts.call("counters_check", keys.META, kind, *ids)
        found = []
        for subject, field, said, so in ([word.decode() for word in row] for row in wrong):
            found.append(
                RepairFinding("counter", f"{kind} {subject}", f"{field} is {said or 'missing'}, should be {so}")
            )
            if fix:
                await self._scripts.call("counters_fix", keys.META, kind, subject)
        return found

    async def _check_timelines(self, owners: Sequence[tuple[str, str]], *, fix: bool) -> list[RepairFinding]:
        suspects = {owner: wrong for owner in owners if (wrong := await self._find_suspect_ids(*owner))}
        if suspects:
            await asyncio.sleep(RECHECK_SECONDS)
        found = []
        for owner, wrong in suspects.items():
            found += await self._check_timeline(*owner, wrong & await self._find_suspect_ids(*owner), fix=fix)
        return found

    async def _check_timeline(
        self, timeline_kind: str, owner: str, suspect_ids: set[bytes], *, fix: bool
    ) -> list[RepairFinding]:
        unexplained = await self._without_pending_job(timeline_kind, owner, suspect_ids)
        if not unexplained:
            return []
        if fix:
            await self._queue.request_refill(timeline_kind, owner)
        sentence = f"{len(unexplained)} statuses are on it, or missing, against the truth"
        return [RepairFinding("timeline", f"{timeline_kind} {owner}", sentence)]

    async def _find_suspect_ids(self, timeline_kind: str, owner: str) -> set[bytes]:
        """Ids that stand on a timeline and should not, or should and do not."""
        (ids,) = await self._redis.execute(("ZRANGE", TIMELINE_KEY_BY_KIND[timeline_kind](owner), 0, -1))
        strangers = await self._queue.find_misplaced(timeline_kind, owner, ids)
        expected = await self._read_expected_ids(timeline_kind, owner)
        longest = self._scripts.size_limits.timeline_max
        # What is older than the oldest may have been cut off before the timeline grew shorter.
        floor = int(ids[0]) if len(ids) >= FULL_TIMELINE_SHARE * longest else 0
        return set(strangers) | {each for each in expected if int(each) > floor} - set(ids)

    async def _read_expected_ids(self, timeline_kind: str, owner: str) -> list[bytes]:
        """The newest statuses that belong on a timeline, as many as it may hold."""
        newest: list[bytes] = []
        score, member = b"", b""
        while True:
            page, more = await self._scripts.call("timeline_expected", keys.META, timeline_kind, owner, score, member)
            newest = sorted({*newest, *more}, key=int, reverse=True)[: self._scripts.size_limits.timeline_max]
            if len(page) < 2 * REFILL_AUTHORS_PER_PASS:
                return newest
            member, score = page[-2:]

    async def _without_pending_job(self, timeline_kind: str, owner: str, ids: set[bytes]) -> list[bytes]:
        if not ids:
            return []
        found: list[bytes] = await self._scripts.call("timeline_without_job", keys.META, timeline_kind, owner, *ids)
        return found

    async def _check_orphans(self, kind: str, ids: Sequence[str], *, fix: bool) -> list[RepairFinding]:
        if not ids:
            return []
        lost = await self._scripts.call("orphans_check", keys.META, kind, int(fix), *ids)
        subjects = [each.decode() for each in lost]
        key = {"users": keys.home_timeline, "lists": keys.list_timeline}.get(kind)
        if fix and key is not None and subjects:
            # Ids are never used again: who is not there now, behind whose back it was written, never will be.
            await self._redis.execute(*(("DEL", key(each)) for each in subjects))
        return [RepairFinding("orphan", each, ORPHAN_MESSAGES[kind]) for each in subjects]


ORPHAN_MESSAGES = {
    "jobs": "a job that nobody would ever have found",
    "statuses": "likes, comments or reposts of a status that is gone",
    "users": "the home of nobody",
    "lists": "the timeline of no list",
}
"""What is said of an orphan, by its kind."""

_ROW_NAME_BY_PREFIX = {row.prefix: row.name for row in keys.ALL_KEYS if row.tail}


def _group_ids_by_row(key_names: Sequence[bytes]) -> dict[str, list[str]]:
    """Ids by the name of their key's row in the table."""
    found = defaultdict(list)
    for name in key_names:
        text = name.decode(errors="replace")
        start = len("{core}:") if text.startswith("{core}:") else 0
        prefix = text[: text.find(":", start) + 1]
        if prefix in _ROW_NAME_BY_PREFIX:
            found[_ROW_NAME_BY_PREFIX[prefix]].append(text[len(prefix) :].strip("{}"))
    return found
