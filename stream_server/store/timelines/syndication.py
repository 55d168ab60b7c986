"""Timelines after a write: the first pass of the job that the write has enqueued, before the caller is answered.

The write is acknowledged even if this pass fails. A job worker then claims the job and repeats the pass.
"""

import logging
from collections.abc import Awaitable, Sequence
from typing import NamedTuple, Self

from stream_server.store.jobs.queue import ClaimedJob, JobPass, JobQueue, member_score_pairs
from stream_server.store.jobs.runner import JobRunner
from stream_server.store.redis.script_settings import JOB_GRACE_MS, SizeLimits
from stream_server.store.redis.scripts import WriteReply

logger = logging.getLogger(__name__)


class FanOut(NamedTuple):
    """A status that enters timelines or leaves them, with the first readers that the write has returned.

    Attributes:
        uid: Id of the author.
        fence: Fence of the job. It is empty if the write has changed all timelines itself.
        followers: First page of the author's followers.
        lists: If these are all followers, the first page of the lists with the author; otherwise empty.
        asleep: Ids of those of the author and these followers whose home timelines are not kept (`HomeVisits`).
    """

    uid: str
    status_id: str
    fence: bytes
    followers: Sequence[bytes]
    lists: Sequence[bytes]
    asleep: Sequence[bytes]

    @classmethod
    def of_reply(cls, uid: str, status_id: str, reply: WriteReply) -> Self:
        """Make one of the first reply of a script that has a fence and first readers under these names."""
        first = reply.first_time
        return cls(uid, status_id, first["fence"], first["followers"], first["lists"], first["asleep"])


class TimelineChange(NamedTuple):
    """A change of one timeline: an author's statuses are added (``mode`` is ``merge``) or removed (``remove``).

    Attributes:
        timeline_kind: ``home`` or ``list``.
        owner: Id of the home timeline's user, or of the list.
        author: Id of the author.
        fence: Fence of the change's job. If the write enqueued no job, the fence is empty and the change is skipped.
        newest_status_ids: Ids of the author's newest statuses.
    """

    timeline_kind: str
    owner: str
    author: str
    mode: str
    fence: bytes
    newest_status_ids: Sequence[bytes]


class Syndication:
    """Updates the timelines of an author's first followers after a write, before the server answers it.

    Job workers update all other timelines. ``failed_passes`` counts the updates here that failed; job workers repeat
    them.
    """

    def __init__(self, queue: JobQueue, runner: JobRunner, size_limits: SizeLimits) -> None:
        self._queue = queue
        self._runner = runner
        self._size_limits = size_limits
        self.failed_passes = 0

    async def fan_out(self, status: FanOut) -> None:
        """Add a new status to the home timelines of its author and first followers, and to the timelines of lists.

        Job workers update the timelines that ``status`` does not name and, if this call fails, those that it names.
        """
        if status.fence:
            await self._run_and_log_failure(self._run_first_pass("spread", status))

    async def fan_out_each(self, statuses: Sequence[FanOut]) -> None:
        """Do the same as :meth:`fan_out` for several statuses, in as few round trips as their readers allow.

        A transaction has the timelines of about one page of readers, so that others need not wait longer for Redis
        than behind one status of a popular author.
        """
        together, size = list[tuple[ClaimedJob, JobPass]](), 0
        for status in statuses:
            if not status.fence:
                continue
            job, job_pass = self._first_pass("spread", status)
            readers = len(job_pass.people) + len(job_pass.lists)
            if readers >= self._size_limits.fanout_batch_size:
                await self.fan_out(status)
                continue
            if size + readers > self._size_limits.fanout_batch_size:
                await self._run_and_log_failure(self._spread_together(together))
                together, size = [], 0
            together.append((job, job_pass))
            size += readers
        if together:
            await self._run_and_log_failure(self._spread_together(together))

    async def _spread_together(self, passes: Sequence[tuple[ClaimedJob, JobPass]]) -> None:
        outcomes = await self._runner.spread_together(passes)
        for (job, _), outcome in zip(passes, outcomes, strict=True):
            if not outcome.is_final:
                await self._runner.run_pass(job)

    async def withdraw(self, status: FanOut) -> None:
        """Remove a deleted status from the timelines of its author, and of its first followers and lists.

        If these are all followers and lists of the author, no job worker is needed: this call also deletes the status's
        likes and comments.
        """
        if status.fence:
            await self._run_and_log_failure(self._run_first_pass("clean", status))

    async def apply_changes(self, *changes: TimelineChange) -> None:
        """Change timelines after a write. The changes share round trips. If they fail, a job worker repeats them."""
        passes = []
        for each in changes:
            kind, owner, author, newest = each.timeline_kind, each.owner, each.author, list(each.newest_status_ids)
            if each.fence:
                job = ClaimedJob(f"{kind}-{owner}-{author}", each.fence.decode())
                passes.append((job, JobPass(each.mode, "", kind, owner, author, "", [], newest, [])))
        if passes:
            await self._run_and_log_failure(self._runner.merge_or_remove(passes, check_timeline=False))

    async def _run_first_pass(self, mode: str, status: FanOut) -> None:
        """Run the first pass of a status's job: one page of followers. If that is all, run the next pass too."""
        job, job_pass = self._first_pass(mode, status)
        is_only_page = len(job_pass.people) < self._size_limits.fanout_batch_size
        hold_ms = JOB_GRACE_MS if is_only_page else 0
        outcome = await self._runner.update_reader_timelines(job, job_pass, hold_ms=hold_ms, in_transaction=True)
        if is_only_page and not outcome.is_final:  # otherwise, the caller would wait too long for the rest
            await self._runner.run_pass(job)

    def _first_pass(self, mode: str, status: FanOut) -> tuple[ClaimedJob, JobPass]:
        """Return the job of a status, and its first pass with the readers that the write has returned."""
        is_full = len(status.followers) + len(status.lists) >= self._size_limits.fanout_batch_size
        # A script sends scores only with a full page, because they say where the next page begins.
        people, lists = (
            member_score_pairs(readers) if is_full else [(reader, b"") for reader in readers]
            for readers in (status.followers, status.lists)
        )
        job_pass = JobPass(mode, "", "", status.status_id, status.uid, "", people, [], lists, asleep=status.asleep)
        return ClaimedJob(f"status-{status.status_id}", status.fence.decode()), job_pass

    async def _run_and_log_failure(self, work: Awaitable[object]) -> None:
        try:
            await work
        except Exception as error:  # noqa: BLE001 - the write is done, so any failure here is left to a job worker
            self.failed_passes += 1
            level = logging.DEBUG if self._runner.is_known_outage(error) else logging.WARNING
            name = type(error).__name__
            logger.log(level, "updating timelines failed; a job worker will retry (%s: %s)", name, error)
