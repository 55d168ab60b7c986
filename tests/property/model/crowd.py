"""Concurrent actions without a model: each is done or refused, and then the data is audited."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

import redis

from stream_server.events.entry import Entry
from stream_server.events.position import LOG_START
from stream_server.store.jobs.workers import JobWorkers
from stream_server.store.store import Store
from tests.property.model.journal import Journal
from tests.property.model.moves import Move
from tests.property.model.walk import Walk, make_due, outcome

T = TypeVar("T")

EXPECTED = {None, "not_found", "not_yours", "invalid_parameter", "suspended"}
"""Codes of refusals that late or unauthorized actions may get."""


class Crowd(Walk):
    """A walk by several tasks. Expected refusals are no error."""

    def __init__(self, store: Store, raw: "redis.Redis") -> None:
        super().__init__(store, raw, cap=1, prompt=False)
        self.done = 0

    async def do(self, what: str, ask: Awaitable[T], model: Callable[[Any], object]) -> T | None:
        """Ask the store only."""
        self.trace.append(what)
        made, code = await outcome(ask)
        assert code in EXPECTED, f"{what}: {code}"
        self.done += code is None
        return made

    async def pause(self) -> None:
        """Go on: other tasks add jobs all the time."""

    async def run(self, moves: Mapping[str, tuple[int, Move]], seed: int, *, tasks: int, steps: int) -> None:
        """Run ``tasks`` tasks of ``steps`` actions, and a job worker that races with their jobs."""
        hurrying = asyncio.create_task(self._make_jobs_due())
        try:
            async with asyncio.TaskGroup() as group:
                for number in range(tasks):
                    group.create_task(self._wander(moves, random.Random(seed * 1000 + number), steps))
        finally:
            hurrying.cancel()
        await asyncio.gather(hurrying, return_exceptions=True)
        await self.settle()

    async def _wander(self, moves: Mapping[str, tuple[int, Move]], source: random.Random, steps: int) -> None:
        names = [name for name, (often, _) in moves.items() for _ in range(often)]
        for _ in range(steps):
            name = source.choice(names)
            await moves[name][1](self, *(source.randrange(64) for _ in range(3)))

    async def _make_jobs_due(self) -> None:
        """Claim jobs early, so that a job worker takes them from the requests that made them."""
        job_workers = JobWorkers(self.store.job_queue, self.store.job_runner)
        while True:
            make_due(self.raw, 3)
            await job_workers.run_claimed()
            assert job_workers.failed_passes == 0
            await asyncio.sleep(0)  # lets other tasks run when no job is due

    async def journal_of(self) -> Journal:
        journal = Journal()
        for entry in await self.entries():
            journal.apply(entry)
        return journal

    async def entries(self) -> list[Entry]:
        found: list[Entry] = []
        while page := await self.store.log.read(found[-1].position if found else LOG_START, 1000):
            found += page
        return found
