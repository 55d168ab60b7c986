"""Job workers: they claim due jobs and run the passes of each job until it is done.

A worker may die between any two commands. Its jobs are due again when their lease ends, and every pass may be repeated.
Nothing notifies a worker of a new job: it polls the queue a few times a second with one cheap command.
"""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from typing import TypeVar

from stream_server.errors import ApiError
from stream_server.store.jobs.queue import ClaimedJob, JobQueue, PassOutcome, QueueDepth
from stream_server.store.jobs.runner import JobRunner

Result = TypeVar("Result")

logger = logging.getLogger(__name__)


class JobWorkers:
    """The job workers of one process: asyncio tasks that run background jobs in small steps (passes).

    Attributes:
        queue_depth: Three numbers of jobs, for all servers: due now; due now or later; parked. Updated every 5 s.
    """

    def __init__(self, queue: JobQueue, runner: JobRunner) -> None:
        self._queue = queue
        self._runner = runner
        self.passes_done = 0
        self.jobs_done = 0
        self.failed_passes = 0
        self._known_returns = runner.servers_returned
        self.queue_depth = QueueDepth(0, 0, 0)

    async def run(self, worker_count: int) -> None:
        """Run ``worker_count`` job workers concurrently until cancelled. With 0 workers, only wait."""
        if not worker_count:
            await asyncio.Event().wait()
        async with asyncio.TaskGroup() as group:
            for number in range(worker_count):
                group.create_task(self._work_forever(), name=f"job worker {number}")
            group.create_task(self._poll_queue_depth(), name="job workers: queue depth")

    async def run_until_empty(self) -> None:
        """Run jobs until no job is due. Raises `Unavailable` if Redis does not answer."""
        while await self.run_claimed():
            pass

    async def run_claimed(self) -> int:
        """Claim a few due jobs, run them and return their number. Raises `Unavailable` if Redis does not answer."""
        claimed = jobs = await self._queue.claim(4)  # so few that other workers get jobs too
        while jobs:
            jobs = [job for job in jobs if await self._run_pass(job)]
        return len(claimed)

    async def _run_pass(self, job: ClaimedJob) -> bool:
        """Run one pass (step) of a job; if it fails, schedule a retry. Return whether the next pass can run now."""
        try:
            outcome = await self._runner.run_pass(job)
        except Exception as error:  # noqa: BLE001 - after any error the job is retried, and parked in the end
            await self._record_failure(job, error)
            return False
        self.passes_done += 1
        self.jobs_done += outcome is PassOutcome.DONE
        return not outcome.is_final

    async def _record_failure(self, job: ClaimedJob, error: Exception) -> None:
        """Log a failed pass (step); schedule a retry. After too many failures in a row, Redis parks (stops) the job."""
        self.failed_passes += 1
        is_known = self._runner.is_known_outage(error)  # one line for each job would fill the disk
        logger.log(
            logging.DEBUG if is_known else logging.WARNING, "a pass of job %s failed (%s: %s)",
            job.id, type(error).__name__, error,
        )  # fmt: skip
        if await self._queue.record_failure(job) and not is_known:
            logger.error("job %s failed too often and is parked; `stream-server repair` tries it again", job.id)

    async def unpark_after_outage(self) -> None:
        """If a server of timelines has come back, try all parked jobs again. Raises `Unavailable` as the queue does."""
        returned = self._runner.servers_returned
        if returned != self._known_returns:
            await self._queue.unpark_all()
            self._known_returns = returned

    async def _work_forever(self) -> None:
        while True:
            if not await none_if_unavailable(self.run_claimed):
                await asyncio.sleep(random.uniform(0.25, 0.75))  # random, to spread the workers

    async def _poll_queue_depth(self) -> None:
        while True:
            self.queue_depth = await none_if_unavailable(self._queue.measure_depth) or self.queue_depth
            await none_if_unavailable(self.unpark_after_outage)
            await asyncio.sleep(5)


async def none_if_unavailable(call: Callable[[], Awaitable[Result]]) -> Result | None:
    """Return the result of ``call``, or None if it raised an `ApiError`, for example because Redis does not answer."""
    try:
        return await call()
    except ApiError as error:
        logger.debug("job workers wait for Redis: %s", error.message)
        return None
