"""Timelines after a write: the first pass of the job that the write has enqueued, before the caller is answered.

The write is done and acknowledged, whatever happens here. If this pass fails, a job worker claims the job and repeats
the pass.
"""

import logging
from collections.abc import Awaitable, Sequence
from typing import NamedTuple

from stream_server.store.jobs.queue import ClaimedJob, JobPass, JobQueue, member_score_pairs
from stream_server.store.jobs.runner import JobRunner
from stream_server.store.redis.scripts import JOB_GRACE_MS, SizeLimits

logger = logging.getLogger(__name__)


class TimelineChange(NamedTuple):
    """An author's statuses enter or leave one timeline.

    Attributes:
        timeline_kind: ``home`` or ``list``.
        owner: Id of the home timeline's user, or of the list.
        author: Id of the author.
        mode: ``merge`` to add the statuses, ``remove`` to remove them.
        fence: Fence of the job that the write has enqueued; empty if it enqueued none, and the change is skipped.
        newest_status_ids: The author's newest statuses.
    """

    timeline_kind: str
    owner: str
    author: str
    mode: str
    fence: bytes
    newest_status_ids: Sequence[bytes]


class Syndication:
    """Runs first passes. ``failed_passes`` counts the passes that failed and were left to a job worker."""

    def __init__(self, queue: JobQueue, runner: JobRunner, size_limits: SizeLimits) -> None:
        self._queue = queue
        self._runner = runner
        self._size_limits = size_limits
        self.failed_passes = 0

    async def fan_out(
        self, uid: str, status_id: str, fence: bytes, followers: Sequence[bytes], lists: Sequence[bytes]
    ) -> None:
        """Add a status to the home timelines of its author and of the first followers, and to the first lists.

        Lists are given only if ``followers`` holds all followers of the author.
        """
        await self._run_and_log_failure(self._run_first_pass("spread", uid, status_id, fence, followers, lists))

    async def withdraw(
        self, uid: str, status_id: str, fence: bytes, followers: Sequence[bytes], lists: Sequence[bytes]
    ) -> None:
        """Remove a status from its first readers' timelines. If these are all, delete its likes and comments too."""
        await self._run_and_log_failure(self._run_first_pass("clean", uid, status_id, fence, followers, lists))

    async def apply_changes(self, *changes: TimelineChange) -> None:
        """Apply the changes that a write made to timelines, all in the same round trips."""
        passes = [
            (
                ClaimedJob(f"{each.timeline_kind}-{each.owner}-{each.author}", each.fence.decode()),
                JobPass(
                    each.mode, "", each.timeline_kind, each.owner, each.author, "", [], list(each.newest_status_ids), []
                ),
            )
            for each in changes
            if each.fence
        ]
        if passes:
            await self._run_and_log_failure(self._runner.merge_or_remove(passes, check_timeline=False))

    async def _run_first_pass(
        self, mode: str, uid: str, status_id: str, fence: bytes, followers: Sequence[bytes], lists: Sequence[bytes]
    ) -> None:
        """Run the first pass of a status's job, and the rest of the job if the first page holds all followers.

        More passes would keep the caller waiting, so job workers do them.
        """
        job = ClaimedJob(f"status-{status_id}", fence.decode())
        job_pass = JobPass(
            mode, "", "", status_id, uid, "", member_score_pairs(followers), [], member_score_pairs(lists)
        )
        is_only_page = len(job_pass.people) < self._size_limits.fanout_batch_size
        outcome = await self._runner.update_reader_timelines(job, job_pass, hold_ms=JOB_GRACE_MS if is_only_page else 0)
        if is_only_page and not outcome.is_final:
            await self._runner.run_pass(job)

    async def _run_and_log_failure(self, work: Awaitable[object]) -> None:
        """Await a pass. A failure is only counted and logged, because the caller's write is done."""
        try:
            await work
        except Exception as error:  # noqa: BLE001 - the write is done, so any failure here is left to a job worker
            self.failed_passes += 1
            logger.warning("updating timelines failed; a job worker will retry (%s: %s)", type(error).__name__, error)
