"""Repair: check counters and derived timelines against the truth, and find orphaned keys.

The repair scans all keys once, in bounded pages, while writes go on. So it checks a wrong timeline twice, and it does
not report a difference that a waiting job will remove. A repair of the truth is a script that checks again in the same
step, or a refill job, which checks again too.
"""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Sequence
from itertools import chain
from typing import Any, NamedTuple

import msgspec

from stream_server.store import keys
from stream_server.store.jobs.lease import Lease
from stream_server.store.jobs.queue import SOURCES_BY_KIND, JobQueue
from stream_server.store.jobs.runner import FULL_TIMELINE_SHARE, TIMELINE_KEY_BY_KIND
from stream_server.store.names import beginnings_of
from stream_server.store.redis.client import RedisClient
from stream_server.store.redis.derived import DerivedRedis
from stream_server.store.redis.lanes import Command
from stream_server.store.redis.scripts import ScriptCall, ScriptRunner

KEYS_PER_SCAN = 500
"""Approximate number of keys in one page of the scan."""

RECHECK_SECONDS = 0.5
"""Wait in seconds before a wrong timeline is checked again, because a write may be in progress."""

DEPENDENT_KINDS = ("likes", "comments", "replies", "reposts")
"""Kinds of sets that depend on a status."""


def _name_of(card: bytes) -> str:
    name: str = msgspec.json.decode(b"{%b}" % card, type=dict[str, Any])["name"]
    return name


class RepairFinding(NamedTuple):
    """A fault in the stored data.

    Attributes:
        kind: ``counter``, ``timeline``, ``names`` (of the search), ``orphan`` (a leftover of a deleted object) or
            ``parked`` (a failed job).
        subject: The kind and id of the faulty object, or the id of a job.
        message: The fault in one sentence.
    """

    kind: str
    subject: str
    message: str


class Repair:
    """Finds and repairs wrong counters, wrong timelines, and leftovers of deleted users, statuses and lists."""

    def __init__(self, core: RedisClient, derived: DerivedRedis, scripts: ScriptRunner, queue: JobQueue) -> None:
        self._core = core
        self._derived = derived
        self._scripts = scripts
        self._queue = queue
        self.lease = Lease(scripts, "repair")

    async def run(
        self, *, fix: bool, on_progress: Callable[[int, int], None] = lambda _scanned, _total: None
    ) -> list[RepairFinding]:
        """Check all data and return all faults. With ``fix``, repair them. Raises `Unavailable` if Redis fails.

        After each page ``on_progress`` gets the number of keys scanned so far and of all keys.
        """
        found = [RepairFinding("parked", job, "failed too often") for job in await self._queue.list_parked()]
        if fix:
            for finding in found:
                await self._queue.unpark(finding.subject)
        async for ids_by_row, scanned, total in self._scan():
            found += await self._check_page(ids_by_row, fix=fix)
            on_progress(scanned, total)
        return found

    async def _scan(self) -> AsyncIterator[tuple[dict[str, list[str]], int, int]]:
        """Scan all Redis keys. Yield for each page: ids by kind of key, number of keys so far, number of all keys.

        A derived key that moves to another server meanwhile may come twice or not at all. The truth never moves.
        """
        servers = self._derived.primaries
        sizes = [int(size) for server in servers for size in await server.execute(("DBSIZE",))]
        scanned = 0
        for at, server in enumerate(servers):
            cursor = b"0"
            while True:
                (cursor, names), sizes[at] = await server.execute(("SCAN", cursor, "COUNT", KEYS_PER_SCAN), ("DBSIZE",))
                scanned += len(names)
                ids = defaultdict(list)
                for name in names:
                    row_name, key_id = keys.parse(name.decode(errors="replace"))
                    if key_id:
                        ids[row_name].append(key_id)
                yield ids, min(scanned, sum(sizes)), sum(sizes)
                if cursor == b"0":
                    break

    async def _check_page(self, ids: dict[str, list[str]], *, fix: bool) -> list[RepairFinding]:
        found = []
        for kind in ("user", "status", "list", "group"):  # the kinds of hashes that have counters
            found += await self._check_counters(kind, ids[kind], fix=fix)
        owners = [("home", uid) for uid in ids["user"]] + [("list", list_id) for list_id in ids["list"]]
        found += await self._check_timelines(owners, fix=fix)
        found += await self._check_names(ids["user"], fix=fix)
        dependents = sorted({status for kind in DEPENDENT_KINDS for status in ids[kind]})
        candidates = {"jobs": ids["job"], "statuses": dependents, "users": ids["home"], "lists": ids["timeline"]}
        for kind, candidate_ids in candidates.items():
            found += await self._check_orphans(kind, candidate_ids, fix=fix)
        return found

    async def _check_counters(self, kind: str, ids: Sequence[str], *, fix: bool) -> list[RepairFinding]:
        if not ids:
            return []
        wrong = await self._scripts.call("counters_check", keys.META, kind=kind, repair=int(fix), rest=ids)
        found = []
        for subject, field, value, expected in ([word.decode() for word in row] for row in wrong):
            message = f"{field} is {value or 'missing'}, should be {expected}"
            found.append(RepairFinding("counter", f"{kind} {subject}", message))
        return found

    async def _check_names(self, uids: Sequence[str], *, fix: bool) -> list[RepairFinding]:
        """Check that users are found by name. Users of a version without the index are no finding: they are put in."""
        if not uids:
            return []
        fields = [("HMGET", keys.key_for("user", uid), "login", "card", "names") for uid in uids]
        rows = [(uid, *row) for uid, row in zip(uids, await self._core.execute(*fields), strict=True) if row[0]]
        wanted = {uid: login.lower() + b"\n" + beginnings_of(_name_of(card)).encode() for uid, login, card, _ in rows}
        members = {uid: [each + b"\t" + uid.encode() for each in wanted[uid].split(b"\n") if each] for uid in wanted}
        scores = await self._core.execute(*(("ZMSCORE", keys.NAMES, *members[uid]) for uid in wanted)) if wanted else []
        missing = {uid for uid, each in zip(wanted, scores, strict=True) if None in each}
        wrong = [(uid, card, names) for uid, _, card, names in rows if names != wanted[uid] or uid in missing]
        if fix and wrong:
            rest = [argument for uid, card, _ in wrong for argument in (uid, card, wanted[uid])]
            await self._scripts.call("names_store", keys.META, rest=rest)
        return [RepairFinding("names", f"user {uid}", "is not found by name") for uid, _, names in wrong if names]

    async def _check_timelines(self, owners: Sequence[tuple[str, str]], *, fix: bool) -> list[RepairFinding]:
        suspects = {owner: wrong for owner in owners if (wrong := await self._find_suspect_ids(*owner))}
        if suspects:
            await asyncio.sleep(RECHECK_SECONDS)
        found = []
        for (kind, owner), wrong in suspects.items():
            still_wrong = wrong & await self._find_suspect_ids(kind, owner)
            # No other job will correct these ids, but a refill will.
            unexplained = await self._queue.without_job(kind, owner, [*still_wrong]) if still_wrong else []
            if unexplained and fix:
                await self._queue.request_refill(kind, owner)
            if unexplained:
                message = f"{len(unexplained)} statuses are missing or misplaced"
                found.append(RepairFinding("timeline", f"{kind} {owner}", message))
        return found

    async def _find_suspect_ids(self, timeline_kind: str, owner: str) -> set[bytes]:
        """Return the ids of all statuses that are wrongly on a timeline or missing from it."""
        longest = self._scripts.size_limits.timeline_max
        (ids,) = await self._derived.execute(("ZRANGE", TIMELINE_KEY_BY_KIND[timeline_kind](owner), -longest, -1))
        misplaced = await self._queue.find_misplaced(timeline_kind, owner, ids)
        (sources,) = await self._core.execute(("ZRANGE", keys.key_for(SOURCES_BY_KIND[timeline_kind], owner), 0, -1))
        authors = [*([owner.encode()] if timeline_kind == "home" else []), *sources]
        expected = await self._queue.read_newest(authors, longest)
        # Statuses older than the oldest may have been truncated before the timeline became shorter.
        floor = int(ids[0]) if len(ids) >= FULL_TIMELINE_SHARE * longest else 0
        return set(misplaced) | {status_id for status_id in expected if int(status_id) > floor} - set(ids)

    async def _check_orphans(self, kind: str, ids: Sequence[str], *, fix: bool) -> list[RepairFinding]:
        """Return a finding for each of ``ids`` without its owner, as in `ORPHAN_MESSAGES`. With ``fix``, repair it."""
        commands = [_orphan_commands(kind, each) for each in ids]
        replies = await self._core.execute_at_once(*chain.from_iterable(commands)) if ids else []
        size = len(replies) // len(ids) if ids else 1
        found = [(each, replies[at * size : (at + 1) * size]) for at, each in enumerate(ids)]
        orphans = [each for each, (is_left, *owners) in found if is_left and not any(owners)]
        if fix and orphans:
            # Lost jobs are due again, and what was left is deleted. Ids are never used again, so no owner comes back.
            if kind == "jobs":
                await self._core.execute(*(("ZADD", keys.key_for("due"), "NX", 0, each) for each in orphans))
            elif kind == "statuses":
                await self._scripts.call_each(
                    keys.META, [ScriptCall("leftovers_delete", {"id": each}) for each in orphans]
                )
            else:
                key = keys.home_timeline if kind == "users" else keys.list_timeline
                await self._derived.execute(*(("DEL", key(each)) for each in orphans))
        return [RepairFinding("orphan", orphan, ORPHAN_MESSAGES[kind]) for orphan in orphans]


ORPHAN_MESSAGES = {
    "jobs": "a job that is in no queue",
    "statuses": "likes, comments or reposts of a deleted status",
    "users": "a home timeline without a user",
    "lists": "a timeline without a list",
}


def _orphan_commands(kind: str, subject: str) -> tuple[Command, ...]:
    """Return a command that asks whether something is left, and commands that ask for its owners.

    PING stands for the first one if it is a timeline, which may be on another server. The scan has just seen it.
    """
    job, status = keys.key_for("job"), keys.key_for("status")
    if kind == "jobs":
        queues = (("ZSCORE", keys.key_for(queue), subject) for queue in ("due", "parked"))
        return ("EXISTS", job + subject), *queues
    if kind == "statuses":
        sets = (keys.key_for(name, subject) for name in DEPENDENT_KINDS)
        return ("EXISTS", *sets), ("EXISTS", status + subject, f"{job}status-{subject}")
    if kind == "users":
        return ("PING",), ("EXISTS", keys.key_for("user", subject))
    return ("PING",), ("EXISTS", keys.key_for("list", subject), f"{job}drop-list-{subject}")
