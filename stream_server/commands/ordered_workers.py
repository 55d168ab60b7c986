"""Work side by side, that of one author in its order."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, Self, TypeVar

Item = TypeVar("Item")

MAX_WAITING_ITEMS = 4
"""Items that wait in a lane at most: a slow server holds the reader back, and the file does not fill the memory."""


class OrderedWorkers(Generic[Item]):
    """``count`` workers with a queue each; what has the same key goes through the same lane.

    As ``async with``: leaving the block waits until all is done; leaving it by an exception drops what waits.
    """

    def __init__(self, count: int, work: Callable[[Item], Awaitable[None]]) -> None:
        self._queues: list[asyncio.Queue[Item | None]] = [asyncio.Queue(MAX_WAITING_ITEMS) for _ in range(count)]
        self._work = work
        self._group = asyncio.TaskGroup()

    async def __aenter__(self) -> Self:
        await self._group.__aenter__()
        for queue in self._queues:
            self._group.create_task(self._run(queue))
        return self

    async def __aexit__(self, *failure: object) -> None:
        if failure[0] is None:
            for queue in self._queues:
                await queue.put(None)
        await self._group.__aexit__(*failure)  # type: ignore[arg-type]  # the three go on as they came

    async def put(self, key: str, item: Item) -> None:
        """Hand over one item; waits while its lane is full."""
        await self._queues[hash(key) % len(self._queues)].put(item)

    async def _run(self, queue: asyncio.Queue[Item | None]) -> None:
        while (item := await queue.get()) is not None:
            await self._work(item)
