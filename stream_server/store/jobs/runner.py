"""What a pass of a job does: writes derived timelines by a page of the truth, then asks whether that still holds.

The order is always the same, and every step may be the last one of this process: a page of truth, the writes, and, when
all of them were answered well, :meth:`JobQueue.advance`. It is not sent along with the writes: a full Redis refuses these
and may let a script through.
"""

from collections.abc import Sequence
from itertools import islice
from typing import Any

from stream_server.store import keys
from stream_server.store.jobs.queue import ClaimedJob, JobPass, JobQueue, PassResult
from stream_server.store.redis.client import Command, RedisClient
from stream_server.store.redis.scripts import JOB_LEASE_MS, REFILL_AUTHORS_PER_PASS, SizeLimits

TIMELINE_KEY_BY_KIND = {"home": keys.home_timeline, "list": keys.list_timeline}
"""The key of a timeline by its kind."""

FINAL_WORDS = frozenset({"done", "again", "stale"})
"""Words after which there is nothing more to do now."""


class JobRunner:
    """Does the passes of jobs; the timelines are cut at ``sizes.timeline_max``."""

    def __init__(self, redis: RedisClient, queue: JobQueue, size_limits: SizeLimits) -> None:
        self._redis = redis
        self._queue = queue
        self._size_limits = size_limits

    async def run_pass(self, job: ClaimedJob) -> str:
        """One whole pass of a claimed job: the word for what is next, see :meth:`JobQueue.advance`."""
        about = await self._queue.begin_pass(job)
        if about is None:
            return "stale"
        if about.mode in {"spread", "clean"}:
            return await (
                self._queue.delete_dependents(job)
                if about.phase == "rest"
                else self.update_reader_timelines(job, about)
            )
        if about.mode == "refill":
            return await (self._merge_page(job, about) if about.phase else self._remove_misplaced(job, about))
        if about.mode == "drop":
            return await self._delete_list(job, about)
        (word,) = await self.merge_or_remove([(job, about)], check_timeline=True)
        return word

    async def update_reader_timelines(self, job: ClaimedJob, job_pass: JobPass, *, hold_ms: int = JOB_LEASE_MS) -> str:
        """A status comes to, or goes from, a page of homes and lists, and the author's own home before the first."""
        timelines = _timeline_keys([member for member, _ in job_pass.people], [member for member, _ in job_pass.lists])
        if not job_pass.phase and not job_pass.after_score:
            timelines.append(keys.home_timeline(job_pass.author))
        await self._execute(self._status_commands(job_pass, timelines))
        step = self._result_of_page(job, job_pass, hold_ms)
        (word,) = await self._queue.advance(step)
        if job_pass.mode == "clean" or word not in {"moved", "stale"}:
            return word
        looked, people, lists = await self._queue.find_former_readers(job_pass)
        gone = _timeline_keys(people, lists)
        await self._execute([("ZREM", key, job_pass.subject) for key in gone])
        if gone or word == "stale":
            return word  # who came back meanwhile stands further down now: the page is read again
        (word,) = await self._queue.advance(step._replace(seen_version=looked))
        return word

    async def merge_or_remove(self, passes: Sequence[tuple[ClaimedJob, JobPass]], *, check_timeline: bool) -> list[str]:
        """What authors wrote comes to timelines, or goes: all of it in one round trip, and then all the words.

        ``check_timeline`` looks at the whole timelines then, since a pass that did not end may have left something there; so
        does a removal of more than the newest of a profile could name.
        """
        writes = [self._merge_or_remove_commands(about) for _, about in passes]
        answers = iter(await self._execute([command for commands in writes for command in commands]))
        steps = []
        for (job, about), commands in zip(passes, writes, strict=True):
            told = list(islice(answers, len(commands)))
            if check_timeline or (
                about.mode == "remove" and len(about.newest_status_ids) >= self._size_limits.timeline_max
            ):
                await self._refill_if_misplaced(about)
            steps.append(PassResult(job, timeline_size=told[-1] if about.mode == "remove" else None))
        return await self._queue.advance(*steps)

    async def _remove_misplaced(self, job: ClaimedJob, job_pass: JobPass) -> str:
        """What does not belong on a timeline goes, before it is filled: what went by mistake comes again so."""
        key = TIMELINE_KEY_BY_KIND[job_pass.timeline_kind](job_pass.subject)
        (ids,) = await self._execute([("ZRANGE", key, 0, -1)])
        strangers = await self._queue.find_misplaced(job_pass.timeline_kind, job_pass.subject, ids)
        if strangers:
            await self._execute([("ZREM", key, *strangers)])
        (word,) = await self._queue.advance(PassResult(job))
        return word

    async def _merge_page(self, job: ClaimedJob, job_pass: JobPass) -> str:
        """The newest of a page of those followed, or on the list, come to the timeline."""
        await self._execute(
            self._merge_commands(
                TIMELINE_KEY_BY_KIND[job_pass.timeline_kind](job_pass.subject), job_pass.newest_status_ids
            )
        )
        full = len(job_pass.people) >= REFILL_AUTHORS_PER_PASS
        (word,) = await self._queue.advance(
            PassResult(job, job_pass.phase, job_pass.people[-1]) if full else PassResult(job)
        )
        return word

    async def _delete_list(self, job: ClaimedJob, job_pass: JobPass) -> str:
        """A list is gone: first from its members, then its timeline, to which then nobody's statuses come any more."""
        word = await self._queue.delete_dependents(job)
        if word != "bare":
            return word
        await self._execute([("DEL", keys.list_timeline(job_pass.subject))])
        (word,) = await self._queue.advance(PassResult(job))
        return word

    def _result_of_page(self, job: ClaimedJob, job_pass: JobPass, hold_ms: int) -> PassResult:
        """Lists come along with the last followers, so that a page that is not full was the last one."""
        if len(job_pass.people) + len(job_pass.lists) < self._size_limits.fanout_batch_size:
            return PassResult(job, hold_ms=hold_ms)
        if job_pass.lists:
            return PassResult(job, "lists", job_pass.lists[-1], hold_ms=hold_ms)
        return PassResult(job, "", job_pass.people[-1], hold_ms=hold_ms)

    async def _refill_if_misplaced(self, job_pass: JobPass) -> None:
        """A timeline with anything on it that does not belong there is filled anew."""
        (ids,) = await self._execute(
            [("ZRANGE", TIMELINE_KEY_BY_KIND[job_pass.timeline_kind](job_pass.subject), 0, -1)]
        )
        if await self._queue.find_misplaced(job_pass.timeline_kind, job_pass.subject, ids):
            await self._queue.request_refill(job_pass.timeline_kind, job_pass.subject)

    def _merge_or_remove_commands(self, job_pass: JobPass) -> list[Command]:
        """What a pair writes; the last answer of a removal is how many statuses the timeline has left."""
        key = TIMELINE_KEY_BY_KIND[job_pass.timeline_kind](job_pass.subject)
        if job_pass.mode == "merge":
            return self._merge_commands(key, job_pass.newest_status_ids)
        removing: list[Command] = [("ZREM", key, *job_pass.newest_status_ids)] if job_pass.newest_status_ids else []
        return [*removing, ("ZCARD", key)]

    def _status_commands(self, job_pass: JobPass, timelines: Sequence[str]) -> list[Command]:
        if job_pass.mode == "clean":
            return [("ZREM", key, job_pass.subject) for key in timelines]
        adding: list[Command] = [("ZADD", key, job_pass.subject, job_pass.subject) for key in timelines]
        return adding + [self._truncate_command(key) for key in timelines]

    def _merge_commands(self, key: str, ids: Sequence[bytes]) -> list[Command]:
        if not ids:
            return []
        return [("ZADD", key, *(word for each in ids for word in (each, each))), self._truncate_command(key)]

    def _truncate_command(self, key: str) -> Command:
        return "ZREMRANGEBYRANK", key, 0, -(self._size_limits.timeline_max + 1)

    async def _execute(self, commands: Sequence[Command]) -> list[Any]:
        """Derived data: any refusal raises, and the pass does not count."""
        return await self._redis.execute(*commands) if commands else []


def _timeline_keys(uids: Sequence[bytes], list_ids: Sequence[bytes]) -> list[str]:
    """The keys of their homes, and of these lists' timelines."""
    return [keys.home_timeline(uid.decode()) for uid in uids] + [keys.list_timeline(each.decode()) for each in list_ids]
