"""Timelines after a write: the first pass of the job that the write has left, in the same call.

The write is done and acknowledged whatever becomes of this: a pass that fails is done again by whoever claims the job.
"""

import logging
from collections.abc import Awaitable, Sequence
from typing import NamedTuple

from stream_server.store.jobs.queue import ClaimedJob, JobPass, JobQueue, member_score_pairs
from stream_server.store.jobs.runner import JobRunner
from stream_server.store.redis.scripts import JOB_GRACE_MS, SizeLimits

logger = logging.getLogger(__name__)


class TimelineChange(NamedTuple):
    """An author's statuses enter (``merge``) or leave (``remove``) a ``home`` (of ``owner``) or a ``list``'s timeline.

    ``fence`` is of the job that the write has left for it, empty where it left none.
    """

    timeline_kind: str
    owner: str
    author: str
    mode: str
    fence: bytes
    newest_status_ids: Sequence[bytes]


class Syndication:
    """First passes; ``failed_passes`` counts those that were left to a receiver because they failed."""

    def __init__(self, queue: JobQueue, runner: JobRunner, size_limits: SizeLimits) -> None:
        self._queue = queue
        self._runner = runner
        self._size_limits = size_limits
        self.failed_passes = 0

    async def fan_out(
        self, uid: str, status_id: str, fence: bytes, people: Sequence[bytes], lists: Sequence[bytes]
    ) -> None:
        """A status goes to its author's home and the first followers', and, if there are no more, to the lists."""
        await self._run_and_log_failure(self._run_first_pass("spread", uid, status_id, fence, people, lists))

    async def withdraw(
        self, uid: str, status_id: str, fence: bytes, people: Sequence[bytes], lists: Sequence[bytes]
    ) -> None:
        """A status leaves its first readers; then, if there are no more, what hung on it goes."""
        await self._run_and_log_failure(self._run_first_pass("clean", uid, status_id, fence, people, lists))

    async def apply_changes(self, *changes: TimelineChange) -> None:
        """Timelines of pairs follow what was written, all in the same round trips."""
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
        self, mode: str, uid: str, status_id: str, fence: bytes, people: Sequence[bytes], lists: Sequence[bytes]
    ) -> None:
        """The first page, and what follows if it was the only one; more than that would keep the caller waiting."""
        job = ClaimedJob(f"status-{status_id}", fence.decode())
        about = JobPass(mode, "", "", status_id, uid, "", member_score_pairs(people), [], member_score_pairs(lists))
        alone = len(about.people) < self._size_limits.fanout_batch_size
        outcome = await self._runner.update_reader_timelines(job, about, hold_ms=JOB_GRACE_MS if alone else 0)
        if alone and not outcome.is_final:
            await self._runner.run_pass(job)

    async def _run_and_log_failure(self, work: Awaitable[object]) -> None:
        """The caller's write stands: what fails here is no failure of it."""
        try:
            await work
        except Exception as error:  # noqa: BLE001 - the answer is that of the write, which is done
            self.failed_passes += 1
            logger.warning("timelines are left to a receiver (%s: %s)", type(error).__name__, error)
