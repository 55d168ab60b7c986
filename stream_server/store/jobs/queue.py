"""The job queue: a worker claims a job under a fence and does it in passes.

The script of a write adds its job in the same step (``lua/job.lua``). A claim lasts ten seconds and has a fence:
a number that Redis uses once. A worker with an older fence can no longer advance the job. Every pass may be repeated.
These scripts keep no replies for a retry: if a reply is lost, the next pass finds what the script did.

The fan-out of a new status to one page of readers has no hash and no fence of its own until a worker claims it, or
until a reader leaves the author: it is a member of the queue whose score is the id of the status. One command finishes
it.
"""

from collections.abc import Collection, Sequence
from enum import StrEnum
from itertools import chain
from typing import NamedTuple

from stream_server.events.position import Position
from stream_server.store import keys
from stream_server.store.redis.client import RedisClient
from stream_server.store.redis.lanes import Command
from stream_server.store.redis.script_settings import JOB_GRACE_MS, JOB_LEASE_MS
from stream_server.store.redis.scripts import ScriptCall, ScriptRunner

FAILURES_BEFORE_PARKING = 10
"""Number of failed passes in a row after which a job is parked until an operator repairs it."""


SOURCES_BY_KIND = {"home": "following", "list": "members"}
"""The rows of `store/keys.py` with the authors of home and list timelines."""

NO_HASH = "0"
"""The fence of a fan-out without a hash (``lua/job.lua``)."""

LOWEST_ID = 10**14
"""Below all ids of statuses, and above all times in ms: scores from here on are those of fan-outs without a hash."""


class PassOutcome(StrEnum):
    """The result of a pass (one bounded step) of a background job.

    Attributes:
        STALE: Another worker holds the job, or the job is finished.
        MOVED: Followers or lists of the page changed during the pass. The page (a refill: the job) must be repeated.
        MORE: The pass is complete, and the job needs another pass.
        AGAIN: The job will run once more from its start: another worker may have written to its timelines meanwhile.
        DONE: The job is finished and removed.
        BARE: A deleted list has no members any more. The worker must still delete the list's timeline.
    """

    STALE = "stale"
    MOVED = "moved"
    MORE = "more"
    AGAIN = "again"
    DONE = "done"
    BARE = "bare"

    @property
    def is_final(self) -> bool:
        """Whether this worker is done with the job: it ended, runs again later, or belongs to another worker."""
        return self in {PassOutcome.STALE, PassOutcome.AGAIN, PassOutcome.DONE}


class ClaimedJob(NamedTuple):
    """A claimed job: its id, and the fence (number) of this claim. Redis refuses workers with an older fence."""

    id: str
    fence: str


class JobPass(NamedTuple):
    """The instructions and data for one pass of a background job. A pass handles one page of users and lists.

    Attributes:
        mode: ``spread`` a status to timelines, ``clean`` up after a deleted status, ``merge`` or ``remove`` an author's
            statuses, ``refill`` a timeline, let it ``sleep``, ``drop`` a deleted list, ``erase`` a deleted account, or
            ``sweep`` what such accounts left.
        phase: The stage of the job. Empty in the first stage.
        timeline_kind: ``home`` or ``list`` if the job is about one timeline, else empty.
        subject: Id of the timeline's user or list. For ``spread`` and ``clean``, id of the status.
        author: Id of the author whose statuses the job adds or removes.
        after_score: Score, in Redis' sorted set, of the last user of the page before. Empty for the first page.
        people: Ids of the users on this page, each with its score. A refill adds the statuses of these users.
        newest_status_ids: Ids of the statuses to add or remove, newest first. Empty for a refill.
        lists: Ids of the lists on this page, each with its score. A job handles all users first, then the lists.
        is_repeat: Whether the job has been done once, and starts again.
        asleep: Ids of those of the author and the users on this page whose home timelines are not kept.
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
    is_repeat: bool = False
    asleep: Sequence[bytes] = ()


class PassResult(NamedTuple):
    """The result that a job worker records after one pass of a background job.

    Attributes:
        phase: The stage of the job to which the next page belongs.
        next_after: The last member of this page of a sorted set, with its score. None after the stage's last page.
        hold_ms: Time in milliseconds, from now, for which the job still belongs to the worker.
        seen_version: Version from `find_former_readers` or empty. If it has changed, the same page comes again.
        timeline_size: Number of statuses left on the timeline after a removal, or None for other passes.
        must_repeat: Whether some timelines of the page could not be written, so that the job starts again at its end.
    """

    job: ClaimedJob
    phase: str = ""
    next_after: tuple[bytes, bytes] | None = None
    hold_ms: int = JOB_LEASE_MS
    seen_version: bytes = b""
    timeline_size: int | None = None
    must_repeat: bool = False


class QueueDepth(NamedTuple):
    """Number of jobs that are due now, of all jobs that are not parked, and of jobs parked after too many failures."""

    due: int
    total: int
    parked: int


class JobQueue:
    """The job queue of one store. All methods raise `Unavailable` while Redis does not answer."""

    def __init__(self, redis: RedisClient, scripts: ScriptRunner) -> None:
        self._redis = redis
        self._scripts = scripts

    async def claim(self, limit: int) -> list[ClaimedJob]:
        """Claim up to ``limit`` due jobs for ten seconds each. If no job is due, this runs only read commands."""
        clock, first, oldest = await self._redis.execute(
            ("TIME",),
            ("ZRANGE", _DUE_KEY, 0, 0, "WITHSCORES"),
            ("ZRANGE", _DUE_KEY, LOWEST_ID, "+inf", "BYSCORE", "LIMIT", 0, 1, "WITHSCORES"),
        )
        now = _to_ms(clock)
        if not (first and int(first[1]) <= now) and not (oldest and int(oldest[1]) <= _highest_due_id(now)):
            return []
        flat = await self._scripts.call("job_claim", keys.META, most=limit)
        return [ClaimedJob(flat[i].decode(), flat[i + 1].decode()) for i in range(0, len(flat), 2)]

    async def begin_pass(self, job: ClaimedJob) -> JobPass | None:
        """Begin the next pass (one bounded step) of a claimed job. Return None if another worker holds the job now."""
        found = await self._scripts.call("job_begin_pass", keys.META, id=job.id, fence=job.fence)
        if not found:
            return None
        return JobPass(
            mode=found["mode"].decode(),
            phase=found["phase"].decode(),
            timeline_kind=found["timelines"].decode(),
            subject=found["subject"].decode(),
            author=found["author"].decode(),
            after_score=found["score"].decode(),
            people=member_score_pairs(found["people"]),
            newest_status_ids=found["newest"],
            lists=member_score_pairs(found["lists"]),
            is_repeat=found["again"] == b"done",
            asleep=found["asleep"],
        )

    async def advance(self, *results: PassResult) -> list[PassOutcome]:
        """Record the results of finished job passes in one round trip. Return their outcomes in the same order."""
        if any(result.job.fence == NO_HASH for result in results):
            return [read_outcome(each) for each in await self._redis.execute(*map(self.advance_command, results))]
        words = await self._scripts.call_each(keys.META, [_advance_call(result) for result in results])
        return [read_outcome(word) for word in words]

    def advance_command(self, result: PassResult) -> Command:
        """Return the command of :meth:`advance` for one result. :func:`read_outcome` reads its reply."""
        if result.job.fence == NO_HASH:
            return finish_command(result.job)
        return self._scripts.call_command(keys.META, _advance_call(result))

    async def delete_dependents(self, job: ClaimedJob) -> PassOutcome:
        """Delete one page of the likes and comments of a deleted status, or of the members of a deleted list."""
        word: bytes = await self._scripts.call("job_delete_dependents", keys.META, id=job.id, fence=job.fence)
        return PassOutcome(word.decode())

    async def erase_account(
        self, job: ClaimedJob, people: Sequence[bytes], lists: Sequence[bytes], short: Collection[bytes]
    ) -> PassOutcome:
        """Remove a part of what a deleted account left.

        These are the followers ``people`` and the places on ``lists``, from whose timelines the account's statuses are
        removed already. Those of ``short`` get a refill. Without any, it is another part: a page of posts, likes,
        follows or others.
        """
        readers = [one + b"!" if one in short else one for one in (*people, *lists)]
        word: bytes = await self._scripts.call(
            "job_erase", keys.META, id=job.id, fence=job.fence, count=len(people), rest=readers
        )
        return PassOutcome(word.decode())

    async def sweep(self, job: ClaimedJob) -> tuple[PassOutcome, list[str]]:
        """Look at a page of all keys for what deleted accounts left. Return also the ids of those that end here."""
        word, *ended = await self._scripts.call("job_sweep", keys.META, id=job.id, fence=job.fence)
        return PassOutcome(word.decode()), [uid.decode() for uid in ended]

    async def record_failure(self, job: ClaimedJob) -> bool:
        """Record a failed pass, and make the job due again later. After ten failures in a row, park it; return True."""
        word: bytes = await self._scripts.call(
            "job_fail", keys.META, id=job.id, fence=job.fence, most=FAILURES_BEFORE_PARKING
        )
        return word == b"parked"

    async def find_former_readers(self, job_pass: JobPass) -> tuple[bytes, list[bytes], list[bytes]]:
        """Return (version, users, lists): those of a ``spread`` pass that must not get the status any more.

        Such users no longer follow the author, and such lists no longer contain the author. If the status is deleted,
        these are all users and lists of the pass. When the author loses a follower or a list, the version changes, and
        the page is repeated (`PassResult`).
        """
        people, lists = ([member for member, _ in pairs] for pairs in (job_pass.people, job_pass.lists))
        sets = [(keys.key_for("followers", job_pass.author), people), (keys.key_for("listed", job_pass.author), lists)]
        commands: list[Command] = [
            ("HGET", keys.key_for("user", job_pass.author), "left"),
            ("EXISTS", keys.key_for("status", job_pass.subject)),
        ]
        for key, members in sets:
            if members:
                commands.append(("ZMSCORE", key, *members))
        version, is_there, *replies = await self._redis.execute_at_once(*commands)
        scores = dict(zip(people + lists, chain.from_iterable(replies), strict=True))
        former = [
            [member for member in members if not is_there or scores[member] is None] for members in (people, lists)
        ]
        return version or b"0", former[0], former[1]

    async def read_newest(self, authors: Sequence[bytes], most: int) -> list[bytes]:
        """Return the ids of the newest ``most`` statuses of these authors outside groups, newest first."""
        newest, profile, authors_per_read = list[bytes](), keys.key_for("profile").encode(), 10
        for at in range(0, len(authors), authors_per_read):
            # Older statuses than the newest so far cannot be among them, so they are not even read.
            lowest = b"(" + newest[-1] if len(newest) == most else b"-inf"
            bounds = ("+inf", lowest, "BYSCORE", "REV", "LIMIT", 0, most)
            chunk = authors[at : at + authors_per_read]
            replies = await self._redis.execute(*(("ZRANGE", profile + author, *bounds) for author in chunk))
            newest = sorted({*newest, *chain.from_iterable(replies)}, key=int, reverse=True)[:most]
        return newest

    async def find_misplaced(self, timeline_kind: str, owner: str, ids: Sequence[bytes]) -> list[bytes]:
        """Return those status ids among ``ids`` that do not belong on the timeline of ``owner`` (a user or a list).

        These are deleted statuses, statuses of groups, and statuses of authors whom the user does not follow or who are
        not on the list.
        """
        if not ids:
            return []
        status, sources = keys.key_for("status").encode(), keys.key_for(SOURCES_BY_KIND[timeline_kind], owner)
        rows = await self._redis.execute(*(("HMGET", status + each, "uid", "group") for each in ids))
        authors = [*{author for author, _ in rows if author is not None}]
        if not authors:
            return [*ids]
        scores, is_list = await self._redis.execute(
            ("ZMSCORE", sources, *authors), ("EXISTS", keys.key_for("list", owner))
        )
        known = {author for author, score in zip(authors, scores, strict=True) if score is not None}
        if timeline_kind == "home":
            known.add(owner.encode())
        elif not is_list:
            known.clear()
        return [
            each for each, (author, group) in zip(ids, rows, strict=True) if author not in known or group is not None
        ]

    async def without_job(self, timeline_kind: str, owner: str, ids: Sequence[bytes]) -> list[bytes]:
        """Return those of ``ids``, wrongly on a timeline or missing from it, that no existing job will correct.

        A timeline that is asleep need not be right, because it is made again when its user comes back. Statuses that
        left because of their age stay on timelines until the expiry forgets them, so they are no fault.
        """
        job, status = keys.key_for("job"), keys.key_for("status")
        names = [each.decode() for each in ids]
        asleep, busy, below, *authors = await self._redis.execute(
            ("ZSCORE", keys.key_for("asleep"), owner),
            ("EXISTS", f"{job}refill-{timeline_kind}-{owner}", f"{job}drop-list-{owner}", f"{job}erase-{owner}"),
            ("HGET", keys.key_for("expiry"), "below"),
            *(("HGET", status + each, "uid") for each in names),
        )
        if (timeline_kind == "home" and asleep is not None) or busy:
            return []
        replies = await self._redis.execute(
            *chain.from_iterable(
                (
                    ("EXISTS", f"{job}status-{each}", f"{job}{timeline_kind}-{owner}-{(author or b'').decode()}"),
                    ("ZSCORE", _DUE_KEY, f"status-{each}"),
                )
                for each, author in zip(names, authors, strict=True)
            )
        )
        return [
            each
            for each, author, jobs, due in zip(ids, authors, replies[::2], replies[1::2], strict=True)
            if not jobs and due is None and (int(each) >= int(below or 0) or author is not None)
        ]

    async def request_refill(self, timeline_kind: str, owner: str) -> None:
        """Add a job that rebuilds a timeline: it removes statuses that do not belong there, and adds missing ones."""
        await self._scripts.call("timeline_refill", keys.META, timelines=timeline_kind, owner=owner)

    async def measure_depth(self) -> QueueDepth:
        """Return how many jobs are due now, how many are not parked, due or not, and how many are parked."""
        clock, total, parked = await self._redis.execute(("TIME",), ("ZCARD", _DUE_KEY), ("ZCARD", _PARKED_KEY))
        now = _to_ms(clock)
        due, fan_outs = await self._redis.execute(
            ("ZCOUNT", _DUE_KEY, "-inf", now), ("ZCOUNT", _DUE_KEY, LOWEST_ID, _highest_due_id(now))
        )
        return QueueDepth(due + fan_outs, total, parked)

    async def list_parked(self, limit: int = 1000) -> list[str]:
        """Return the ids of up to ``limit`` parked jobs (failed ten times in a row), the longest parked first."""
        (found,) = await self._redis.execute(("ZRANGE", _PARKED_KEY, 0, limit - 1))
        return [job.decode() for job in found]

    async def unpark_all(self) -> int:
        """Put all parked jobs back into the queue, and return their number: a server that they need has come back."""
        count = 0
        while jobs := await self.list_parked(100):
            await self._scripts.call_each(keys.META, [ScriptCall("job_unpark", {"id": job}) for job in jobs])
            count += len(jobs)
        return count

    async def unpark(self, job: str) -> bool:
        """Put a parked job (failed ten times in a row) back into the queue. Return False if it was not parked."""
        return bool(await self._scripts.call("job_unpark", keys.META, id=job))


_DUE_KEY, _PARKED_KEY = keys.key_for("due"), keys.key_for("parked")


def member_score_pairs(flat: Sequence[bytes]) -> list[tuple[bytes, bytes]]:
    """Return (member, score) pairs from Redis' flat reply, in which each member is followed by its score."""
    return [(flat[i], flat[i + 1]) for i in range(0, len(flat), 2)]


def finish_command(job: ClaimedJob) -> Command:
    """Return the command that removes a finished job from the queue, for a post whose job has no state of its own."""
    status_id = job.id.removeprefix("status-")
    return "ZREMRANGEBYSCORE", _DUE_KEY, status_id, status_id


def read_outcome(reply: bytes | int) -> PassOutcome:
    """Return the outcome in a reply to `JobQueue.advance_command` or to `finish_command`."""
    if isinstance(reply, int):
        return PassOutcome.DONE if reply else PassOutcome.STALE
    return PassOutcome(reply.decode())


def _advance_call(result: PassResult) -> ScriptCall:
    member, score = result.next_after or (b"", b"")
    return ScriptCall(
        "job_advance",
        {
            "id": result.job.id,
            "fence": result.job.fence,
            "phase": result.phase,
            "score": score,
            "member": member,
            "is_last": int(result.next_after is None),
            "hold_ms": result.hold_ms,
            "looked": result.seen_version,
            "size": "" if result.timeline_size is None else result.timeline_size,
            "is_partial": int(result.must_repeat),
        },
    )


def _to_ms(clock: Sequence[bytes]) -> int:
    return int(clock[0]) * 1000 + int(clock[1]) // 1000


def _highest_due_id(now_ms: int) -> int:
    """Return the highest id whose fan-out is due at ``now_ms``, of statuses whose fan-out has no hash of its own."""
    return Position(now_ms - JOB_GRACE_MS, 0, 0).status_number
