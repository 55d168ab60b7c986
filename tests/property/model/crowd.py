"""Many who do the same things at once, without a model: each is done or refused, and then the data is looked at."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

import redis

from stream_server.events.entry import Entry
from stream_server.events.position import LOG_START
from stream_server.jobs.workers import JobWorkers
from stream_server.store.store import Store
from tests.property.model.journal import Journal
from tests.property.model.moves import Move
from tests.property.model.walk import Walk, hasten, outcome

T = TypeVar("T")

EXPECTED = {None, "not_found", "not_yours", "invalid_parameter", "suspended"}
"""What may be answered to those who come too late, and to those who may not."""


class Crowd(Walk):
    """A walk that many take at once: what is refused is refused, anything else must be done."""

    def __init__(self, store: Store, raw: "redis.Redis") -> None:
        super().__init__(store, raw, cap=1, prompt=False)
        self.done = 0

    async def do(self, what: str, ask: Awaitable[T], model: Callable[[Any], object]) -> T | None:
        """Ask the store alone."""
        self.trace.append(what)
        made, code = await outcome(ask)
        assert code in EXPECTED, f"{what}: {code}"
        self.done += code is None
        return made

    async def run(self, moves: Mapping[str, tuple[int, Move]], seed: int, *, tasks: int, steps: int) -> None:
        """Some tasks with ``steps`` moves each, and a receiver that is ahead of its time, so that jobs race too."""
        hurry = asyncio.create_task(self._hurry())
        try:
            async with asyncio.TaskGroup() as group:
                for number in range(tasks):
                    group.create_task(self._wander(moves, random.Random(seed * 1000 + number), steps))
        finally:
            hurry.cancel()
        await asyncio.gather(hurry, return_exceptions=True)
        await self.settle()

    async def _wander(self, moves: Mapping[str, tuple[int, Move]], source: random.Random, steps: int) -> None:
        names = [name for name, (often, _) in moves.items() for _ in range(often)]
        for _ in range(steps):
            name = source.choice(names)
            await moves[name][1](self, *(source.randrange(64) for _ in range(3)))

    async def _hurry(self) -> None:
        """What is due in a while is due now: a receiver takes jobs from under those who are at them."""
        receivers = JobWorkers(self.store.job_queue, self.store.job_runner, random.Random(0))
        while True:
            hasten(self.raw, 3)
            await receivers.run_claimed()
            assert receivers.failed_passes == 0
            await asyncio.sleep(0)  # a turn with nothing due gives way to nobody by itself

    async def journal_of(self) -> Journal:
        """The whole log, told again."""
        journal = Journal()
        for entry in await self.entries():
            journal.hear(entry)
        return journal

    async def entries(self) -> list[Entry]:
        """The whole log."""
        found: list[Entry] = []
        while page := await self.store.log.read(found[-1].position if found else LOG_START, 1000):
            found += page
        return found
