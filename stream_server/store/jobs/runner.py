"""The passes of jobs: change derived timelines by one page of the truth, then check that the page has not changed.

The order is always the same: read a page of the truth, write, and call :meth:`JobQueue.advance` after all writes
succeeded. The process may die after any step. The first pass of a status, while its author waits, sends the writes and
`advance` together. It must send them as a transaction, because a full Redis refuses the writes and may still run the
script. Redis executes all of a transaction or, if it refuses one command of it, nothing.
"""

from collections import defaultdict
from collections.abc import Sequence
from itertools import islice
from typing import Any

from redis.exceptions import NoScriptError, ResponseError

from stream_server.store import keys
from stream_server.store.jobs.queue import ClaimedJob, JobPass, JobQueue, PassOutcome, PassResult, read_outcome
from stream_server.store.redis.client import RedisClient
from stream_server.store.redis.lanes import Command
from stream_server.store.redis.refusals import to_api_error
from stream_server.store.redis.scripts import JOB_GRACE_MS, JOB_LEASE_MS, REFILL_AUTHORS_PER_PASS, SizeLimits

TIMELINE_KEY_BY_KIND = {"home": keys.home_timeline, "list": keys.list_timeline}


class JobRunner:
    """Runs the passes of background jobs, which add statuses to home and list timelines or remove them."""

    def __init__(self, redis: RedisClient, queue: JobQueue, size_limits: SizeLimits) -> None:
        self._redis = redis
        self._queue = queue
        self._size_limits = size_limits

    async def run_pass(self, job: ClaimedJob) -> PassOutcome:
        """Run one pass (one bounded step) of a claimed job. Return how the pass ended."""
        job_pass = await self._queue.begin_pass(job)
        if job_pass is None:
            return PassOutcome.STALE
        match job_pass.mode, job_pass.phase:
            case "spread" | "clean", "rest":
                outcome = await self._queue.delete_dependents(job)
            case "spread" | "clean", _:
                outcome = await self.update_reader_timelines(job, job_pass)
            case "refill", "":
                outcome = await self._remove_misplaced(job, job_pass)
            case "refill", _:
                outcome = await self._merge_page(job, job_pass)
            case "drop", _:
                outcome = await self._delete_list(job, job_pass)
            case _:  # merge, remove
                (outcome,) = await self.merge_or_remove([(job, job_pass)], check_timeline=True)
        return outcome

    async def update_reader_timelines(
        self, job: ClaimedJob, job_pass: JobPass, *, hold_ms: int = JOB_LEASE_MS, in_transaction: bool = False
    ) -> PassOutcome:
        """Add a status to the timelines of a part of its readers, or remove it from them.

        The readers of ``job_pass`` are followers of the author (home timelines) and lists that contain the author (list
        timelines). The first pass also has the author's own home timeline. The worker holds the job for ``hold_ms`` ms
        more. Returns how the pass ended.

        ``in_transaction`` saves a round trip. It needs one server that has all keys, because the transaction touches
        the timelines and the job.
        """
        result = self._result_of_page(job, job_pass, hold_ms)
        change = self._write_and_advance if in_transaction else self._write_then_advance
        outcome = await change(self._status_commands(job_pass, _timelines_of_page(job_pass)), result)
        return await self._leave_former_readers(job_pass, result, outcome)

    async def spread_together(self, passes: Sequence[tuple[ClaimedJob, JobPass]]) -> list[PassOutcome]:
        """Add new statuses to the timelines of their readers, in one transaction. Return how each pass ended.

        Each pass has all readers of its status, and is the first of its job. A timeline that gets several statuses is
        written once. The transaction needs one server, as in :meth:`update_reader_timelines`.
        """
        statuses = defaultdict[str, list[bytes]](list)
        for _, job_pass in passes:
            for key in _timelines_of_page(job_pass):
                statuses[key].append(job_pass.subject.encode())
        commands = [command for key, ids in statuses.items() for command in self._merge_commands(key, ids)]
        jobs = [job for job, _ in passes]
        words = await self._run_transaction(commands, self._queue.finish_command(jobs))
        outcomes = await self._queue.finish(jobs) if words is None else [read_outcome(word) for word in words]
        return [
            await self._leave_former_readers(job_pass, PassResult(job, hold_ms=JOB_GRACE_MS), outcome)
            for (job, job_pass), outcome in zip(passes, outcomes, strict=True)
        ]

    async def _leave_former_readers(self, job_pass: JobPass, result: PassResult, outcome: PassOutcome) -> PassOutcome:
        """Remove a status from the timelines of those who stopped reading its author meanwhile.

        Returns how the pass ended then, if its writes ended with ``outcome``.
        """
        if job_pass.mode == "clean" or outcome not in {PassOutcome.MOVED, PassOutcome.STALE}:
            return outcome
        seen_version, people, lists = await self._queue.find_former_readers(job_pass)
        former_timelines = _timeline_keys(people, lists)
        await self._execute([("ZREM", key, job_pass.subject) for key in former_timelines])
        if former_timelines or outcome is PassOutcome.STALE:
            return outcome  # a reader that came back meanwhile is on a later page now, so the page is read again
        (outcome,) = await self._queue.advance(result._replace(seen_version=seen_version))
        return outcome

    async def merge_or_remove(
        self, passes: Sequence[tuple[ClaimedJob, JobPass]], *, check_timeline: bool
    ) -> list[PassOutcome]:
        """Run job passes that each add one author's statuses to one timeline or remove them.

        Return how each pass ended.

        All passes share their round trips. With ``check_timeline``, also search each whole timeline for statuses that
        do not belong there, because an interrupted pass may have left some. If any exist, request a refill (a job that
        rebuilds the timeline). A removal is always checked if the author has more statuses than a timeline holds: the
        pass names only the newest, and older ones may be left.
        """
        writes = [self._merge_or_remove_commands(job_pass) for _, job_pass in passes]
        replies = iter(await self._execute([command for commands in writes for command in commands]))
        results = []
        for (job, job_pass), commands in zip(passes, writes, strict=True):
            own_replies = list(islice(replies, len(commands)))
            is_removal = job_pass.mode == "remove"
            if check_timeline or (is_removal and len(job_pass.newest_status_ids) >= self._size_limits.timeline_max):
                _, misplaced = await self._find_misplaced(job_pass)
                if misplaced:
                    await self._queue.request_refill(job_pass.timeline_kind, job_pass.subject)
            results.append(PassResult(job, timeline_size=own_replies[-1] if is_removal else None))
        return await self._queue.advance(*results)

    async def _write_then_advance(self, commands: Sequence[Command], result: PassResult) -> PassOutcome:
        """Change timelines, then record the result of the pass. If a timeline cannot be written, the job fails."""
        await self._execute(commands)
        (outcome,) = await self._queue.advance(result)
        return outcome

    async def _write_and_advance(self, commands: Sequence[Command], result: PassResult) -> PassOutcome:
        """Change timelines and record the result of the pass in one transaction.

        A timeline that cannot be written (its key has another type) does not stop the transaction. It gets a job of its
        own, so that its failure is seen as that of any job.
        """
        advanced = await self._run_transaction(commands, self._queue.advance_command(result))
        if advanced is None:
            (outcome,) = await self._queue.advance(result)
            return outcome
        return read_outcome(advanced)

    async def _run_transaction(self, commands: Sequence[Command], last: Command) -> Any:
        """Change timelines and call a script in one transaction. Return the reply of the script.

        None if Redis was restarted and does not know the script: then it must be called again. Raises the API error of
        a script that fails.
        """
        *_, replies = await self._execute([("MULTI",), *commands, last, ("EXEC",)])
        reply_of_script = replies.pop()
        for command, reply in zip(commands, replies, strict=True):
            if isinstance(reply, ResponseError):
                await self._queue.request_refill(*_timeline_of(str(command[1])))
        if isinstance(reply_of_script, NoScriptError):
            return None
        if isinstance(reply_of_script, ResponseError):
            raise to_api_error(reply_of_script) from reply_of_script
        return reply_of_script

    async def _remove_misplaced(self, job: ClaimedJob, job_pass: JobPass) -> PassOutcome:
        # The refill that follows adds a status again that is removed here by mistake.
        key, misplaced = await self._find_misplaced(job_pass)
        if misplaced:
            await self._execute([("ZREM", key, *misplaced)])
        (outcome,) = await self._queue.advance(PassResult(job))
        return outcome

    async def _merge_page(self, job: ClaimedJob, job_pass: JobPass) -> PassOutcome:
        key = TIMELINE_KEY_BY_KIND[job_pass.timeline_kind](job_pass.subject)
        await self._execute(self._merge_commands(key, job_pass.newest_status_ids))
        is_full = len(job_pass.people) >= REFILL_AUTHORS_PER_PASS
        result = PassResult(job, job_pass.phase, job_pass.people[-1]) if is_full else PassResult(job)
        (outcome,) = await self._queue.advance(result)
        return outcome

    async def _delete_list(self, job: ClaimedJob, job_pass: JobPass) -> PassOutcome:
        """Remove one page of a deleted list's members. After the last page, also delete the list's timeline."""
        outcome = await self._queue.delete_dependents(job)
        if outcome is not PassOutcome.BARE:
            return outcome
        await self._execute([("DEL", keys.list_timeline(job_pass.subject))])
        (outcome,) = await self._queue.advance(PassResult(job))
        return outcome

    def _result_of_page(self, job: ClaimedJob, job_pass: JobPass, hold_ms: int) -> PassResult:
        # Lists come after the last followers, and a page that is not full is the last.
        if len(job_pass.people) + len(job_pass.lists) < self._size_limits.fanout_batch_size:
            return PassResult(job, hold_ms=hold_ms)
        if job_pass.lists:
            return PassResult(job, "lists", job_pass.lists[-1], hold_ms=hold_ms)
        return PassResult(job, "", job_pass.people[-1], hold_ms=hold_ms)

    async def _find_misplaced(self, job_pass: JobPass) -> tuple[str, list[bytes]]:
        key = TIMELINE_KEY_BY_KIND[job_pass.timeline_kind](job_pass.subject)
        (ids,) = await self._execute([("ZRANGE", key, 0, -1)])
        return key, await self._queue.find_misplaced(job_pass.timeline_kind, job_pass.subject, ids)

    def _merge_or_remove_commands(self, job_pass: JobPass) -> list[Command]:
        """Return Redis commands that add an author's statuses to a timeline, or that remove them and count the rest."""
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
        return await self._redis.execute(*commands) if commands else []


def _timeline_of(key: str) -> tuple[str, str]:
    """Return the kind of a timeline (``home`` or ``list``) and its owner."""
    name, owner = keys.parse(key)
    return "list" if name == "timeline" else name, owner


def _timelines_of_page(job_pass: JobPass) -> list[str]:
    """Return the timelines of a pass of a status. The first pass also has the author's own home timeline."""
    timelines = _timeline_keys([member for member, _ in job_pass.people], [member for member, _ in job_pass.lists])
    if not job_pass.phase and not job_pass.after_score:
        timelines.append(keys.home_timeline(job_pass.author))
    return timelines


def _timeline_keys(uids: Sequence[bytes], list_ids: Sequence[bytes]) -> list[str]:
    return [keys.home_timeline(uid.decode()) for uid in uids] + [keys.list_timeline(each.decode()) for each in list_ids]
