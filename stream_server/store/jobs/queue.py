"""The job queue: jobs are claimed under a fence and done in passes.

The script of a write adds its job in the same step (``lua/parts/jobs.lua``). A worker claims a job for ten seconds
under a fence: a number that Redis uses once. A worker with an older fence can no longer advance the job. Every pass may
be repeated. These scripts keep no replies for a retry: if a reply is lost, the next pass finds what the script did.
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

from stream_server.store import keys
from stream_server.store.redis.client import RedisClient
from stream_server.store.redis.scripts import JOB_LEASE_MS, Scripts

FAILURES_BEFORE_PARKING = 10
"""Number of failed passes in a row after which a job is parked until an operator repairs it."""


class PassOutcome(StrEnum):
    """The answer of a script after a pass of a job."""

    STALE = "stale"
    """The job is claimed by another worker, or finished."""

    MOVED = "moved"
    """The truth changed during the pass, so the same page must be done again."""

    MORE = "more"
    """The job has another pass."""

    AGAIN = "again"
    """The job runs once more later, because a pass under an older fence may still be writing."""

    DONE = "done"
    """The job is finished and removed."""

    BARE = "bare"
    """A deleted list has no members any more. Its timeline is still to be deleted."""

    @property
    def is_final(self) -> bool:
        """Whether this worker has nothing more to do for the job now."""
        return self in {PassOutcome.STALE, PassOutcome.AGAIN, PassOutcome.DONE}


class ClaimedJob(NamedTuple):
    """A claimed job.

    Attributes:
        id: The id of the job.
        fence: The fence under which the worker holds the job.
    """

    id: str
    fence: str


class JobPass(NamedTuple):
    """The input of one pass of a job.

    Attributes:
        mode: spread, clean, merge, remove, refill or drop.
        phase: The part of the job that this pass belongs to. Empty in the first part.
        timeline_kind: home or list if the job is about one timeline, else empty.
        subject: The id of the timeline's owner or list. For spread and clean, the id of the status.
        author: The id of the status' author.
        after_score: The score after which this page begins. Empty for the first page.
        people: Users of this page, each with its score.
        newest_status_ids: Ids of statuses, newest first.
        lists: Lists that follow after the last user, each with its score. Both together are at most one page.
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
    """The result of one pass of a job.

    Attributes:
        job: The job.
        phase: The phase of the next page.
        next_after: Member and score after which the next page begins, or None if the phase is finished.
        hold_ms: Time in milliseconds for which the worker goes on holding the job.
        seen_version: Version returned by `JobQueue.find_former_readers`, or empty if it was not called.
        timeline_size: Number of statuses of the timeline after a removal, or None for other passes.
    """

    job: ClaimedJob
    phase: str = ""
    next_after: tuple[bytes, bytes] | None = None
    hold_ms: int = JOB_LEASE_MS
    seen_version: bytes = b""
    timeline_size: int | None = None


class QueueDepth(NamedTuple):
    """Number of jobs in the queue.

    Attributes:
        due: Jobs that are due now.
        total: All jobs that are not parked.
        parked: Jobs that failed too often.
    """

    due: int
    total: int
    parked: int


class JobQueue:
    """The job queue of one store. All methods raise `Unavailable` while Redis does not answer."""

    def __init__(self, redis: RedisClient, scripts: Scripts) -> None:
        self._redis = redis
        self._scripts = scripts

    async def claim(self, limit: int) -> list[ClaimedJob]:
        """Claim up to ``limit`` due jobs. A cheap command looks first, because usually no job is due."""
        if not await self._has_due_job():
            return []
        flat = await self._scripts.call("job_claim", keys.META, limit)
        return [ClaimedJob(flat[i].decode(), flat[i + 1].decode()) for i in range(0, len(flat), 2)]

    async def begin_pass(self, job: ClaimedJob) -> JobPass | None:
        """Return the next pass of a job, or None if another worker holds the job now."""
        found = await self._scripts.call("job_begin_pass", keys.META, *job)
        if not found:
            return None
        mode, phase, timeline_kind, subject, author, score = (word.decode() for word in found[:6])
        return JobPass(
            mode,
            phase,
            timeline_kind,
            subject,
            author,
            score,
            member_score_pairs(found[6]),
            found[7],
            member_score_pairs(found[8]),
        )

    async def advance(self, *results: PassResult) -> list[PassOutcome]:
        """Record that passes have done their writes. Return the outcome of each, in one round trip."""
        arguments = [_advance_arguments(result) for result in results]
        words = await self._scripts.call_each("job_advance", keys.META, arguments)
        return [PassOutcome(word.decode()) for word in words]

    async def delete_dependents(self, job: ClaimedJob) -> PassOutcome:
        """Delete one page of the data that depends on a deleted status or list. For a list the outcome may be BARE."""
        word: bytes = await self._scripts.call("job_delete_dependents", keys.META, *job)
        return PassOutcome(word.decode())

    async def record_failure(self, job: ClaimedJob) -> bool:
        """Record a failed pass. The job is due again after a pause. Return whether the job was parked instead."""
        word: bytes = await self._scripts.call("job_fail", keys.META, *job, FAILURES_BEFORE_PARKING)
        return word == b"parked"

    async def find_former_readers(self, job_pass: JobPass) -> tuple[bytes, list[bytes], list[bytes]]:
        """Find the users and lists of a page that should no longer have the status.

        Return the author's current version, those users and those lists.
        """
        ids = [member for member, _ in (*job_pass.people, *job_pass.lists)]
        version, people, lists = await self._scripts.call(
            "job_former_readers", keys.META, job_pass.subject, job_pass.author, len(job_pass.people), *ids
        )
        return version, people, lists

    async def find_misplaced(self, timeline_kind: str, owner: str, ids: Sequence[bytes]) -> list[bytes]:
        """Return those of these statuses that do not belong on this timeline now."""
        if not ids:
            return []
        found: list[bytes] = await self._scripts.call("timeline_misplaced", keys.META, timeline_kind, owner, *ids)
        return found

    async def request_refill(self, timeline_kind: str, owner: str) -> None:
        """Add a job that refills a timeline and removes the statuses that do not belong on it."""
        await self._scripts.call("timeline_refill", keys.META, timeline_kind, owner)

    async def measure_depth(self) -> QueueDepth:
        """Return the number of due, waiting and parked jobs."""
        clock, total, parked = await self._redis.execute(("TIME",), ("ZCARD", _DUE_KEY), ("ZCARD", _PARKED_KEY))
        (due,) = await self._redis.execute(("ZCOUNT", _DUE_KEY, "-inf", _to_ms(clock)))
        return QueueDepth(due, total, parked)

    async def list_parked(self, limit: int = 1000) -> list[str]:
        """Return the ids of up to ``limit`` parked jobs, the longest parked first."""
        (found,) = await self._redis.execute(("ZRANGE", _PARKED_KEY, 0, limit - 1))
        return [job.decode() for job in found]

    async def unpark(self, job: str) -> bool:
        """Put a parked job back into the queue. Return whether the job was parked."""
        return bool(await self._scripts.call("job_unpark", keys.META, job))

    async def _has_due_job(self) -> bool:
        """Return whether the first job of the queue is due by Redis' clock."""
        clock, first = await self._redis.execute(("TIME",), ("ZRANGE", _DUE_KEY, 0, 0, "WITHSCORES"))
        return bool(first) and int(first[1]) <= _to_ms(clock)


_DUE_KEY, _PARKED_KEY = keys.key_for("due"), keys.key_for("parked")


def member_score_pairs(flat: Sequence[bytes]) -> list[tuple[bytes, bytes]]:
    """Return pairs of member and score from Redis' flat reply."""
    return [(flat[i], flat[i + 1]) for i in range(0, len(flat), 2)]


def _advance_arguments(result: PassResult) -> tuple[str | bytes | int, ...]:
    """Return the arguments of ``lua/job_advance.lua``, in its order."""
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
    """Return milliseconds since 1970 from Redis' reply to TIME."""
    return int(clock[0]) * 1000 + int(clock[1]) // 1000
