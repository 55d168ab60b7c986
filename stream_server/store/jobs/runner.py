"""The passes of jobs: change derived timelines by one page of the truth, then check that the page has not changed.

The order is always the same: read a page of the truth, write, and call :meth:`JobQueue.advance` after all writes
succeeded. The process may die after any step. The first pass of a status, while its author waits, sends the writes and
`advance` together. It must send them as a transaction, because a full Redis refuses the writes and may still run the
script. Redis executes all of a transaction or, if it refuses one command of it, nothing.

In a Redis Cluster there is no such transaction. There, a server that does not answer must not hold back the timelines
on the others. So the job goes on behind a page that was written in part, and starts again at its end.
"""

import math
import time
from collections import defaultdict
from collections.abc import Sequence
from itertools import islice
from typing import Any
from zlib import crc32

from redis.exceptions import NoScriptError, ResponseError

from stream_server.errors import ApiError, Unavailable
from stream_server.store import keys
from stream_server.store.jobs.queue import (
    NO_HASH,
    ClaimedJob,
    JobPass,
    JobQueue,
    PassOutcome,
    PassResult,
    finish_command,
    read_outcome,
)
from stream_server.store.redis.client import RedisClient
from stream_server.store.redis.derived import DerivedRedis
from stream_server.store.redis.lanes import Command
from stream_server.store.redis.refusals import to_api_error, unavailable_error
from stream_server.store.redis.script_settings import JOB_GRACE_MS, JOB_LEASE_MS, REFILL_AUTHORS_PER_PASS, SizeLimits

FULL_TIMELINE_SHARE = 0.75
"""Share of the maximum length from which a timeline counts as full. Its older statuses may be truncated."""

TIMELINE_KEY_BY_KIND = {"home": keys.home_timeline, "list": keys.list_timeline}


class JobRunner:
    """Runs the passes of background jobs, which add statuses to home and list timelines or remove them."""

    def __init__(self, core: RedisClient, derived: DerivedRedis, queue: JobQueue, size_limits: SizeLimits) -> None:
        self._core = core
        self._derived = derived
        self._queue = queue
        self._size_limits = size_limits
        self._has_one_server = derived is core
        self._known_returns, self._returned_at = derived.nodes_returned, -math.inf

    @property
    def servers_returned(self) -> int:
        """How many times a server of timelines came back that did not answer, or another one took its place."""
        return self._derived.nodes_returned

    def is_known_outage(self, error: Exception) -> bool:
        """Return whether a pass failed because a server of timelines is away, which has been logged."""
        return isinstance(error, Unavailable) and bool(self._derived.unreachable_nodes)

    async def run_pass(self, job: ClaimedJob) -> PassOutcome:
        """Run one pass (one bounded step) of a claimed job. Return how the pass ended."""
        job_pass = await self._queue.begin_pass(job)
        if job_pass is None:
            return PassOutcome.STALE
        match job_pass.mode, job_pass.phase:
            case "spread" | "clean", "rest":
                outcome = await self._queue.delete_dependents(job)
            case "spread" | "clean", _:
                self._wait_for_servers(job_pass)
                outcome = await self.update_reader_timelines(job, job_pass)
            case "refill", "":
                # The merge that follows adds a status again that is removed here by mistake.
                key, misplaced = await self._find_misplaced(job_pass)
                if misplaced:
                    await self._execute([("ZREM", key, *misplaced)])
                (outcome,) = await self._queue.advance(PassResult(job))
            case "refill", _:
                outcome = await self._merge_page(job, job_pass)
            case "sleep", _:  # If the user has come back meanwhile, the refill runs again after this pass.
                await self._execute([("UNLINK", keys.home_timeline(job_pass.subject))])
                (outcome,) = await self._queue.advance(PassResult(job))
            case "drop", _:
                outcome = await self._queue.delete_dependents(job)
                if outcome is PassOutcome.BARE:  # That was the last page of the list's members.
                    await self._execute([("DEL", keys.list_timeline(job_pass.subject))])
                    (outcome,) = await self._queue.advance(PassResult(job))
            case "erase", _:
                outcome = await self._erase_account(job, job_pass)
            case "sweep", _:
                outcome, ended = await self._queue.sweep(job)
                await self._execute([("UNLINK", keys.home_timeline(uid)) for uid in ended])
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

        ``in_transaction`` saves a round trip if one server has all keys, because the transaction touches the timelines
        and the job. Otherwise a timeline that cannot be written lets the pass fail. If there are several servers and
        some do not answer, the job starts again at its end; a fan-out that is only a member of the queue stays for a
        job worker instead.
        """
        result = PassResult(job, hold_ms=hold_ms)
        if len(job_pass.people) + len(job_pass.lists) >= self._size_limits.fanout_batch_size:
            # Lists come after the last followers, and a page that is not full is the last.
            phase, last = ("lists", job_pass.lists[-1]) if job_pass.lists else ("", job_pass.people[-1])
            result = PassResult(job, phase, last, hold_ms)
        commands = self._status_commands(job_pass, _timelines_of_page(job_pass))
        if self._has_one_server and in_transaction:
            (advanced,) = await self._run_transaction(commands, self._queue.advance_command(result))
            if not isinstance(advanced, NoScriptError):  # else Redis was restarted
                return await self._leave_former_readers(job_pass, result, read_outcome(advanced))
        elif self._has_one_server:
            await self._execute(commands)
        elif await self._write_what_answers(commands):
            if job.fence == NO_HASH:
                raise unavailable_error()
            result = result._replace(must_repeat=True)
        (outcome,) = await self._queue.advance(result)
        return await self._leave_former_readers(job_pass, result, outcome)

    async def spread_together(self, passes: Sequence[tuple[ClaimedJob, JobPass]]) -> list[PassOutcome]:
        """Add new statuses to the timelines of their readers, in one transaction. Return how each pass ended.

        Each pass has all readers of its status, and is the first of its job. A timeline that gets several statuses is
        written once. If there are several servers, there is no transaction, and a job with timelines that were not
        written stays for a worker.
        """
        statuses, commands = defaultdict[str, list[bytes]](list), list[Command]()
        for _, job_pass in passes:
            for key in _timelines_of_page(job_pass):
                statuses[key].append(job_pass.subject.encode())
        for key, ids in statuses.items():
            is_trimmed = any(self._is_trimmed_by(key, each.decode()) for each in ids)
            commands += self._merge_commands(key, ids) if is_trimmed else [_add_command(key, ids)]
        if self._has_one_server:
            finished = await self._run_transaction(commands, *(finish_command(job) for job, _ in passes))
            outcomes = [read_outcome(each) for each in finished]
        else:
            silent = await self._write_what_answers(commands)
            done = [job for job, job_pass in passes if silent.isdisjoint(_timelines_of_page(job_pass))]
            replies = iter(await self._core.execute(*map(finish_command, done)) if done else [])
            outcomes = [read_outcome(next(replies)) if job in done else PassOutcome.AGAIN for job, _ in passes]
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

    async def _write_what_answers(self, commands: Sequence[Command]) -> set[str]:
        """Change timelines. Return those whose server does not answer or takes no writes.

        A timeline that cannot be written for another reason gets a job of its own, as in a transaction.
        """
        replies = await self._derived.execute_each(*commands) if commands else []
        failed = {
            str(command[1]): reply
            for command, reply in zip(commands, replies, strict=True)
            if isinstance(reply, ApiError)
        }
        silent = {key for key, error in failed.items() if isinstance(error, Unavailable)}
        for key in failed.keys() - silent:
            await self._queue.request_refill(*_timeline_of(key))
        return silent

    def _wait_for_servers(self, job_pass: JobPass) -> None:
        """Raise `Unavailable` if a job would start again while a server is away: nearly all of it is done.

        If another server has come back within the last minute, the job may be for its timelines.
        """
        is_start = not job_pass.phase and not job_pass.after_score
        if not (job_pass.is_repeat and is_start and self._derived.unreachable_nodes):
            return
        now = time.monotonic()
        if self._derived.nodes_returned != self._known_returns:
            self._known_returns, self._returned_at = self._derived.nodes_returned, now
        if now - self._returned_at > 60:
            raise unavailable_error()

    async def _run_transaction(self, commands: Sequence[Command], *last: Command) -> list[Any]:
        """Change timelines and advance jobs by the ``last`` commands in one transaction. Return their replies.

        A timeline that cannot be written (its key has another type) does not stop the transaction. It gets a job of its
        own, so that its failure is seen as that of any job.

        A reply may be a NoScriptError: then the command must be sent again. Raises the API error of any other failure.
        """
        *_, replies = await self._core.execute(("MULTI",), *commands, *last, ("EXEC",))
        for command, reply in zip(commands, replies, strict=False):
            if isinstance(reply, ResponseError):
                await self._queue.request_refill(*_timeline_of(str(command[1])))
        advanced: list[Any] = replies[len(commands) :]
        for reply in advanced:
            if isinstance(reply, ResponseError) and not isinstance(reply, NoScriptError):
                raise to_api_error(reply) from reply
        return advanced

    async def _merge_page(self, job: ClaimedJob, job_pass: JobPass) -> PassOutcome:
        key = TIMELINE_KEY_BY_KIND[job_pass.timeline_kind](job_pass.subject)
        authors = [uid for uid, _ in job_pass.people]
        if job_pass.timeline_kind == "home" and not job_pass.after_score:
            authors.append(job_pass.subject.encode())
        newest = await self._queue.read_newest(authors, self._size_limits.timeline_max)
        await self._execute(self._merge_commands(key, newest))
        is_full = len(job_pass.people) >= REFILL_AUTHORS_PER_PASS
        result = PassResult(job, job_pass.phase, job_pass.people[-1]) if is_full else PassResult(job)
        (outcome,) = await self._queue.advance(result)
        return outcome

    async def _erase_account(self, job: ClaimedJob, job_pass: JobPass) -> PassOutcome:
        """Remove a deleted account's statuses from the timelines of a page of readers, then these readers.

        A timeline that is not full any more gets a refill. When no reader is left, remove a part of what else names the
        account.
        """
        people, lists = ([member for member, _ in pairs] for pairs in (job_pass.people, job_pass.lists))
        await self._execute([("UNLINK", keys.home_timeline(job_pass.subject))])
        newest, short = job_pass.newest_status_ids, list[bytes]()
        if newest and (people or lists):
            timelines = _timeline_keys(people, lists)
            removals: list[Command] = [("ZREM", key, *newest) for key in timelines]
            removed_each = await self._execute(removals)
            left_each = await self._execute([("ZCARD", key) for key in timelines])
            full = FULL_TIMELINE_SHARE * self._size_limits.timeline_max
            sizes = zip([*people, *lists], removed_each, left_each, strict=True)
            short = [owner for owner, removed, left in sizes if left < full <= left + removed]
        return await self._queue.erase_account(job, people, lists, short)

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
        status_id = job_pass.subject
        adding: list[Command] = [("ZADD", key, status_id, status_id) for key in timelines]
        return adding + [self._truncate_command(key) for key in timelines if self._is_trimmed_by(key, status_id)]

    def _merge_commands(self, key: str, ids: Sequence[bytes]) -> list[Command]:
        return [_add_command(key, ids), self._truncate_command(key)] if ids else []

    def _truncate_command(self, key: str) -> Command:
        return "ZREMRANGEBYRANK", key, 0, -(self._size_limits.timeline_max + 1)

    async def _execute(self, commands: Sequence[Command]) -> list[Any]:
        return await self._derived.execute(*commands) if commands else []

    def _is_trimmed_by(self, key: str, status_id: str) -> bool:
        """Return whether the addition of this status trims the timeline.

        A checksum decides, so that neither a regular time of posting nor one popular author trims all or none.
        """
        return crc32(f"{key}{status_id}".encode()) % self._size_limits.adds_per_trim == 0


def _add_command(key: str, ids: Sequence[bytes]) -> Command:
    return "ZADD", key, *(word for each in ids for word in (each, each))


def _timeline_of(key: str) -> tuple[str, str]:
    """Return the kind of a timeline (``home`` or ``list``) and its owner."""
    name, owner = keys.parse(key)
    return "list" if name == "timeline" else name, owner


def _timelines_of_page(job_pass: JobPass) -> list[str]:
    """Return the timelines of a pass of a status, without home timelines that are not kept.

    The first pass also has the author's own home timeline.
    """
    asleep = set(job_pass.asleep)
    readers = [member for member, _ in job_pass.people]
    if not job_pass.phase and not job_pass.after_score:
        readers.append(job_pass.author.encode())
    people = [reader for reader in readers if reader not in asleep]
    return _timeline_keys(people, [member for member, _ in job_pass.lists])


def _timeline_keys(uids: Sequence[bytes], list_ids: Sequence[bytes]) -> list[str]:
    return [keys.home_timeline(uid.decode()) for uid in uids] + [keys.list_timeline(each.decode()) for each in list_ids]
