"""Workers that process items in parallel, but items with the same key in order."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, Self, TypeVar

Item = TypeVar("Item")

MAX_WAITING_ITEMS = 4
"""Items that may wait in each queue.

A slow server thus slows the reader down, and the file does not fill the memory.
"""


class OrderedWorkers(Generic[Item]):
    """Runs ``count`` workers with one queue each.

    Items with the same key go to the same worker, so they keep their order.

    Use it with ``async with``. Leaving the block waits for all items; leaving it by an exception drops the waiting
    ones.
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
        await self._group.__aexit__(*failure)  # type: ignore[arg-type]  # passes the three arguments on unchanged

    async def put(self, key: str, item: Item) -> None:
        """Give one item to the worker of ``key``; wait while its queue is full."""
        await self._queues[hash(key) % len(self._queues)].put(item)

    async def _run(self, queue: asyncio.Queue[Item | None]) -> None:
        """Process the items of one queue until the end mark (None)."""
        while (item := await queue.get()) is not None:
            await self._work(item)
