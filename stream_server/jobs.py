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
from stream_server.store.jobs import Job, Jobs, Waiting
from stream_server.store.passes import Passes
from stream_server.store.repair import Repair

Found = TypeVar("Found")

logger = logging.getLogger(__name__)

AT_ONCE = 4
"""Jobs that one receiver holds at a time: few, so that others find some too."""

IDLE_SECONDS = (0.25, 0.75)
"""Between two looks while nothing is due; at random, so that many receivers do not ask together."""

TURN_SECONDS = 10.0
"""How often it is asked whether it is one's turn to look everything over."""

COUNT_SECONDS = 5.0
"""How old the known number of waiting jobs may get."""


class Receivers:
    """Some receivers in one process, and what they did; ``waiting`` is what was left when they last looked."""

    def __init__(self, jobs: Jobs, passes: Passes, random_source: random.Random) -> None:
        self._jobs = jobs
        self._passes = passes
        self._random = random_source
        self.passes = 0
        self.done = 0
        self.failures = 0
        self.waiting = Waiting(0, 0, 0)

    async def run(self, count: int) -> None:
        """Receive until cancelled, ``count`` jobs' passes side by side; with none this only waits for its end."""
        if not count:
            await asyncio.Event().wait()
        async with asyncio.TaskGroup() as group:
            for number in range(count):
                group.create_task(self._receive(), name=f"receiver {number}")
            group.create_task(self._count(), name="receivers: count")

    async def empty(self) -> None:
        """Do what is due until nothing is."""
        while await self.turn():
            pass

    async def turn(self) -> int:
        """Claim some due jobs and do all of their passes; gives how many were claimed. Raises Unavailable."""
        claimed = jobs = await self._jobs.claim(AT_ONCE)
        while jobs:
            jobs = [job for job in jobs if await self._goes_on(job)]
        return len(claimed)

    async def _goes_on(self, job: Job) -> bool:
        """One pass; gives whether there is another one to do now."""
        try:
            word = await self._passes.work(job)
        except Exception as error:  # noqa: BLE001 - whatever it is, the job is tried again, and parked in the end
            await self._failed(job, error)
            return False
        self.passes += 1
        self.done += word == "done"
        return word in {"more", "moved"}

    async def _failed(self, job: Job, error: Exception) -> None:
        self.failures += 1
        logger.warning("a pass of job %s failed (%s: %s)", job.id, type(error).__name__, error)
        if await self._jobs.fail(job):
            logger.error("job %s failed too often and is parked; `stream-server repair` tries it again", job.id)

    async def _receive(self) -> None:
        while True:
            claimed = await _if_redis_answers(self.turn)
            if not claimed:
                await asyncio.sleep(self._random.uniform(*IDLE_SECONDS))

    async def _count(self) -> None:
        while True:
            self.waiting = await _if_redis_answers(self._jobs.waiting) or self.waiting
            await asyncio.sleep(COUNT_SECONDS)


async def _if_redis_answers(ask: Callable[[], Awaitable[Found]]) -> Found | None:
    """What ``ask`` gives, or None while Redis is away, which others say loudly enough."""
    try:
        return await ask()
    except ApiError as error:
        logger.debug("receivers wait: %s", error.message)
        return None


class Caretaker:
    """Looks everything over once in so many seconds, wherever that is done: of all processes one has the turn."""

    def __init__(self, repair: Repair, random_source: random.Random) -> None:
        self._repair = repair
        self._random = random_source
        self.findings = 0

    async def run(self, seconds: float) -> None:
        """Look after ``seconds``, and every so often again, until cancelled; with 0 this only waits for its end."""
        if not seconds:
            await asyncio.Event().wait()
        await _if_redis_answers(lambda: self._repair.turn(seconds))  # a start is no reason to look
        while True:
            await asyncio.sleep(min(TURN_SECONDS, seconds) * self._random.uniform(0.5, 1))
            if await _if_redis_answers(lambda: self._repair.turn(seconds)):
                await self._look()

    async def _look(self) -> None:
        for finding in await _if_redis_answers(lambda: self._repair.look(mend=True)) or []:
            self.findings += 1
            logger.warning("mended %s %s: %s", finding.kind, finding.subject, finding.sentence)
