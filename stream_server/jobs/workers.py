"""Receivers: they claim due jobs and do their passes, one of each in turn, until nothing is due; and a caretaker.

A receiver may die between any two commands. What it held is due again when its lease is over, and every pass may be
done twice. Nobody tells a receiver that there is work: it asks, a few times a second, with one cheap command.
"""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from typing import TypeVar

from stream_server.errors import ApiError
from stream_server.store.jobs.queue import ClaimedJob, JobQueue, QueueDepth
from stream_server.store.jobs.repair import Repair
from stream_server.store.jobs.runner import JobRunner

Result = TypeVar("Result")

logger = logging.getLogger(__name__)

JOBS_PER_CLAIM = 4
"""Jobs that one receiver holds at a time: few, so that others find some too."""

IDLE_POLL_SECONDS = (0.25, 0.75)
"""Between two looks while nothing is due; at random, so that many receivers do not ask together."""

LOCK_POLL_SECONDS = 10.0
"""How often it is asked whether it is one's turn to look everything over."""

DEPTH_POLL_SECONDS = 5.0
"""How old the known number of waiting jobs may get."""


class JobWorkers:
    """Some receivers in one process, and what they did; ``queue_depth`` is what was left when they last looked."""

    def __init__(self, queue: JobQueue, runner: JobRunner, random_source: random.Random) -> None:
        self._queue = queue
        self._runner = runner
        self._random = random_source
        self.passes_done = 0
        self.jobs_done = 0
        self.failed_passes = 0
        self.queue_depth = QueueDepth(0, 0, 0)

    async def run(self, worker_count: int) -> None:
        """Receive until cancelled, ``worker_count`` jobs' passes side by side; with none this only waits for its end."""
        if not worker_count:
            await asyncio.Event().wait()
        async with asyncio.TaskGroup() as group:
            for number in range(worker_count):
                group.create_task(self._work_forever(), name=f"receiver {number}")
            group.create_task(self._poll_queue_depth(), name="receivers: count")

    async def run_until_empty(self) -> None:
        """Do what is due until nothing is."""
        while await self.run_claimed():
            pass

    async def run_claimed(self) -> int:
        """Claim some due jobs and do all of their passes; gives how many were claimed. Raises Unavailable."""
        claimed = jobs = await self._queue.claim(JOBS_PER_CLAIM)
        while jobs:
            jobs = [job for job in jobs if await self._run_pass(job)]
        return len(claimed)

    async def _run_pass(self, job: ClaimedJob) -> bool:
        """One pass; gives whether there is another one to do now."""
        try:
            word = await self._runner.run_pass(job)
        except Exception as error:  # noqa: BLE001 - whatever it is, the job is tried again, and parked in the end
            await self._record_failure(job, error)
            return False
        self.passes_done += 1
        self.jobs_done += word == "done"
        return word in {"more", "moved"}

    async def _record_failure(self, job: ClaimedJob, error: Exception) -> None:
        self.failed_passes += 1
        logger.warning("a pass of job %s failed (%s: %s)", job.id, type(error).__name__, error)
        if await self._queue.record_failure(job):
            logger.error("job %s failed too often and is parked; `stream-server repair` tries it again", job.id)

    async def _work_forever(self) -> None:
        while True:
            claimed = await _none_if_unavailable(self.run_claimed)
            if not claimed:
                await asyncio.sleep(self._random.uniform(*IDLE_POLL_SECONDS))

    async def _poll_queue_depth(self) -> None:
        while True:
            self.queue_depth = await _none_if_unavailable(self._queue.measure_depth) or self.queue_depth
            await asyncio.sleep(DEPTH_POLL_SECONDS)


async def _none_if_unavailable(call: Callable[[], Awaitable[Result]]) -> Result | None:
    """What ``call`` gives, or None while Redis is away, which others say loudly enough."""
    try:
        return await call()
    except ApiError as error:
        logger.debug("receivers wait: %s", error.message)
        return None


class RepairLoop:
    """Looks everything over once in so many seconds, wherever that is done: of all processes one has the turn."""

    def __init__(self, repair: Repair, random_source: random.Random) -> None:
        self._repair = repair
        self._random = random_source
        self.findings = 0

    async def run(self, interval_seconds: float) -> None:
        """Look after ``interval_seconds``, and every so often again, until cancelled; with 0 this only waits for its end."""
        if not interval_seconds:
            await asyncio.Event().wait()
        await _none_if_unavailable(lambda: self._repair.try_lock(interval_seconds))  # a start is no reason to look
        while True:
            await asyncio.sleep(min(LOCK_POLL_SECONDS, interval_seconds) * self._random.uniform(0.5, 1))
            if await _none_if_unavailable(lambda: self._repair.try_lock(interval_seconds)):
                await self._run_repair()

    async def _run_repair(self) -> None:
        for finding in await _none_if_unavailable(lambda: self._repair.run(fix=True)) or []:
            self.findings += 1
            logger.warning("mended %s %s: %s", finding.kind, finding.subject, finding.message)
