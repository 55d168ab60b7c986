"""A question to servers that know where the data is: Sentinels, or the nodes of a cluster.

Concurrent callers share one question, and an answer is used for a short time. So a failover, in which every request
opens connections, does not ask once for each request.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from typing import Any, Generic, TypeVar

from redis.exceptions import RedisError

Answer = TypeVar("Answer")
Server = TypeVar("Server")

CACHE_SECONDS = 0.1
"""Time in seconds for which an answer is reused. Otherwise every request would query all servers in a failover."""

POLL_SECONDS = 0.1
"""Seconds between two polls. In a failover the first write is lost after 100 to 300 ms."""

SLOW_SERVER_WAIT_SECONDS = 0.1
"""Longest wait in seconds for the other servers after the first answer. Each silent server costs this wait."""


class SharedQuery(Generic[Answer]):
    """Runs one query at a time, shares its answer, and repeats it regularly if asked to."""

    def __init__(self, query: Callable[[], Awaitable[Answer]], on_done: Callable[[Answer | Exception], None]) -> None:
        """``query`` gives the answers to share. ``on_done`` gets each answer, or the error, before any caller."""
        self._query = query
        self._on_done = on_done
        self._running: asyncio.Task[Answer] | None = None
        self._polling: asyncio.Task[None] | None = None
        self._answer: Answer | None = None
        self._answered_at = 0.0

    async def recent(self) -> Answer:
        """Return the last answer if it is less than 0.1 s old, else that of a query. Raises what the query raises."""
        is_recent = asyncio.get_running_loop().time() - self._answered_at < CACHE_SECONDS
        if self._running is None and self._answer is not None and is_recent:
            return self._answer
        return await asyncio.shield(self._running or self._start())

    async def next(self) -> Answer:
        """Return the answer of a query that begins after this call: not of one that runs already.

        Raises what the query raises.
        """
        earlier = self._running
        if earlier is not None:
            await asyncio.wait([earlier])
        return await asyncio.shield(self._running or self._start())

    def start_polling(self) -> None:
        """Ask every 0.1 s until :meth:`close`. Do nothing if this runs already."""
        if self._polling is None or self._polling.done():
            self._polling = asyncio.create_task(self._poll(), name="Redis address polling")

    async def close(self) -> None:
        """Stop polling, and cancel a running query."""
        for task in (self._polling, self._running):
            if task is not None:
                task.cancel()
                await asyncio.wait([task])

    def _start(self) -> "asyncio.Task[Answer]":
        self._running = asyncio.create_task(self._ask(), name="Redis address query")
        self._running.add_done_callback(self._on_end)
        return self._running

    async def _poll(self) -> None:
        """Ask again and again. If no server answers, keep what is known, because silence does not show a failover."""
        while True:
            await asyncio.sleep(POLL_SECONDS)
            with suppress(RedisError, OSError):
                await self.recent()

    async def _ask(self) -> Answer:
        return await self._query()

    def _on_end(self, task: "asyncio.Task[Answer]") -> None:
        self._running = None
        if task.cancelled():
            return
        error = task.exception()  # fetch it, or asyncio logs an error when all waiting callers have left
        if error is None:
            self._answer, self._answered_at = task.result(), asyncio.get_running_loop().time()
            self._on_done(task.result())
        elif isinstance(error, Exception):
            self._answer = None
            self._on_done(error)


async def query_all(
    servers: Iterable[Server],
    query: Callable[[Server], Awaitable[Any]],
    timeout_seconds: float,
    slow_wait_seconds: float | None = SLOW_SERVER_WAIT_SECONDS,
) -> list[Any]:
    """Query all servers at once, and return their answers in order. None stands for a server without an answer.

    ``slow_wait_seconds`` limits the wait for the other servers after the first answer. None means no limit.
    """
    tasks = [asyncio.create_task(_query_one(query, server, timeout_seconds)) for server in servers]
    try:
        if slow_wait_seconds is not None:
            for first in asyncio.as_completed(tasks):
                if await first is not None:
                    break
        if tasks:
            await asyncio.wait(tasks, timeout=slow_wait_seconds)
        return [task.result() if task.done() else None for task in tasks]
    finally:
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)  # a connection that they open is closed before the caller closes its clients


async def _query_one(query: Callable[[Server], Awaitable[Any]], server: Server, timeout_seconds: float) -> Any:
    try:
        async with asyncio.timeout(timeout_seconds):
            return await query(server)
    except (RedisError, OSError, TimeoutError):
        return None
