"""The queue of what must follow writes: claimed under a fence, done in passes, never forgotten.

A job is left by the script of the write itself (``lua/parts/jobs.lua``). Whoever claims one holds it for ten seconds
under a fence, a number that is used once; under an older one nothing is advanced any more. Every pass may be done
twice. These scripts keep no answers: what a lost one did, the next pass finds.
"""

from collections.abc import Sequence
from typing import NamedTuple

from stream_server.store import keys
from stream_server.store.redis.client import RedisClient
from stream_server.store.redis.scripts import JOB_LEASE_MS, Scripts

FAILURES_BEFORE_PARKING = 10
"""After so many failed passes in a row a job is parked, for a person to look at."""


class ClaimedJob(NamedTuple):
    """A job, and the fence under which it is held."""

    id: str
    fence: str


class JobPass(NamedTuple):
    """What one pass of a job is about.

    ``mode`` is spread, clean, merge, remove, refill or drop; ``timeline_kind`` is home or list where the job is about
    one, whose owner is ``subject``. For spread and clean that is the status. ``people`` holds people, ``lists`` the
    lists that come along with the last of them, each with its score, and they begin behind ``after_score``; both together
    are never more than one page. ``newest_status_ids`` holds ids of statuses, newest first.
    """

    mode: str
    phase: str
    timeline_kind: str
    subject: str
    author: str
    after_score: str
    people: list[tuple[bytes, bytes]]
    newest_status_ids: list[bytes]
    lists: list[tuple[bytes, bytes]]


class PassResult(NamedTuple):
    """How far a job has come: up to the member and score ``next_after`` of ``phase``; None where its phase is through.

    It is held ``hold_ms`` longer. ``seen_version`` is the version of :meth:`JobQueue.find_former_readers` if that was asked, ``timeline_size`` how many
    statuses a timeline has after a removal.
    """

    job: ClaimedJob
    phase: str = ""
    next_after: tuple[bytes, bytes] | None = None
    hold_ms: int = JOB_LEASE_MS
    seen_version: bytes = b""
    timeline_size: int | None = None


class QueueDepth(NamedTuple):
    """How many jobs there are: due by now, of all that are not parked, and parked."""

    due: int
    total: int
    parked: int


class JobQueue:
    """The queue of one store."""

    def __init__(self, redis: RedisClient, scripts: Scripts) -> None:
        self._redis = redis
        self._scripts = scripts

    async def claim(self, limit: int) -> list[ClaimedJob]:
        """Up to ``limit`` due jobs, held from now on; asks cheaply first, since there are mostly none."""
        if not await self._has_due_job():
            return []
        flat = await self._scripts.call("job_claim", keys.META, limit)
        return [ClaimedJob(flat[i].decode(), flat[i + 1].decode()) for i in range(0, len(flat), 2)]

    async def begin_pass(self, job: ClaimedJob) -> JobPass | None:
        """The next pass of a job; None if it is another's by now."""
        found = await self._scripts.call("job_begin_pass", keys.META, *job)
        if not found:
            return None
        mode, phase, timelines, subject, author, score = (word.decode() for word in found[:6])
        return JobPass(
            mode,
            phase,
            timelines,
            subject,
            author,
            score,
            member_score_pairs(found[6]),
            found[7],
            member_score_pairs(found[8]),
        )

    async def advance(self, *results: PassResult) -> list[str]:
        """Passes have done their writes; the word for each in one round trip: stale, moved, more, again or done."""
        words = await self._scripts.call_each("job_advance", keys.META, [_advance_arguments(step) for step in results])
        return [word.decode() for word in words]

    async def delete_dependents(self, job: ClaimedJob) -> str:
        """Take away a page of what hung on a deleted status or list: stale, more, again, done, or bare for a list."""
        return await self._call_for_word("job_delete_dependents", job)

    async def record_failure(self, job: ClaimedJob) -> bool:
        """A pass has failed: it comes again after a pause; gives whether it was parked instead."""
        return await self._call_for_word("job_fail", job, FAILURES_BEFORE_PARKING) == "parked"

    async def find_former_readers(self, job_pass: JobPass) -> tuple[bytes, list[bytes], list[bytes]]:
        """The author's version now, and what people and lists of a spread's page should not have the status, now."""
        ids = [member for member, _ in (*job_pass.people, *job_pass.lists)]
        version, people, lists = await self._scripts.call(
            "job_former_readers", keys.META, job_pass.subject, job_pass.author, len(job_pass.people), *ids
        )
        return version, people, lists

    async def find_misplaced(self, timeline_kind: str, owner: str, ids: Sequence[bytes]) -> list[bytes]:
        """Those of these statuses that do not belong on this timeline, by the truth of this moment."""
        if not ids:
            return []
        found: list[bytes] = await self._scripts.call("timeline_misplaced", keys.META, timeline_kind, owner, *ids)
        return found

    async def request_refill(self, timeline_kind: str, owner: str) -> None:
        """Leave a job that fills a timeline anew and takes out what does not belong there."""
        await self._scripts.call("timeline_refill", keys.META, timeline_kind, owner)

    async def measure_depth(self) -> QueueDepth:
        """How much there is to do."""
        clock, all_, parked = await self._redis.execute(("TIME",), ("ZCARD", _DUE_KEY), ("ZCARD", _PARKED_KEY))
        (due,) = await self._redis.execute(("ZCOUNT", _DUE_KEY, "-inf", _to_ms(clock)))
        return QueueDepth(due, all_, parked)

    async def list_parked(self, limit: int = 1000) -> list[str]:
        """The jobs that failed too often, longest ago first."""
        (found,) = await self._redis.execute(("ZRANGE", _PARKED_KEY, 0, limit - 1))
        return [job.decode() for job in found]

    async def unpark(self, job: str) -> bool:
        """Give a parked job another chance; gives whether it was parked."""
        return bool(await self._scripts.call("job_unpark", keys.META, job))

    async def _has_due_job(self) -> bool:
        clock, first = await self._redis.execute(("TIME",), ("ZRANGE", _DUE_KEY, 0, 0, "WITHSCORES"))
        return bool(first) and int(first[1]) <= _to_ms(clock)

    async def _call_for_word(self, script_name: str, job: ClaimedJob, *arguments: str | bytes | int) -> str:
        word: bytes = await self._scripts.call(script_name, keys.META, *job, *arguments)
        return word.decode()


_DUE_KEY, _PARKED_KEY = keys.key_for("due"), keys.key_for("parked")


def member_score_pairs(flat: Sequence[bytes]) -> list[tuple[bytes, bytes]]:
    """Members with their scores, as Redis gives them one after the other."""
    return [(flat[i], flat[i + 1]) for i in range(0, len(flat), 2)]


def _advance_arguments(result: PassResult) -> tuple[str | bytes | int, ...]:
    """What ``lua/advance.lua`` takes, in its order."""
    member, score = result.next_after or (b"", b"")
    size = "" if result.timeline_size is None else result.timeline_size
    return (
        *result.job,
        result.phase,
        score,
        member,
        int(result.next_after is None),
        result.hold_ms,
        result.seen_version,
        size,
    )


def _to_ms(clock: Sequence[bytes]) -> int:
    return int(clock[0]) * 1000 + int(clock[1]) // 1000
