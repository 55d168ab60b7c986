"""The connections of one lane: open them when they are needed, and replace those that are closed, silent or outdated.

redis-py does the connecting: TLS, AUTH, the database, Sentinels, and the PING that shows that Redis answers. Then
:class:`PipelinedConnection` takes over the transport.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextvars import Context

from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import RedisError

from stream_server.store.redis.pipelined_connection import PipelinedConnection

SILENT_SHARE = 0.5
"""Share of the timeout after which a connection without any reply is silent, and new calls leave it.

Less than the share of a write's first attempt, so that its repetition uses a new connection.
"""

OpenConnection = Callable[[Callable[[PipelinedConnection], None]], Awaitable[PipelinedConnection]]


class LaneConnections:
    """The connections of one lane, at most ``max_connections``. Concurrent callers share an attempt to connect."""

    def __init__(self, open_connection: OpenConnection, max_connections: int) -> None:
        self._open_connection = open_connection
        self._max_connections = max_connections
        self._connections: list[PipelinedConnection] = []
        self._retired: set[PipelinedConnection] = set()
        self._opening: set[asyncio.Task[PipelinedConnection]] = set()

    def find_free(self, timeout_seconds: float) -> PipelinedConnection | None:
        """Return the connection with the fewest calls, or None if the caller should open one by :meth:`open_another`.

        ``timeout_seconds`` is the usual timeout of a call. A connection that is silent for a share of it is retired.
        """
        now, silent_seconds = time.monotonic(), SILENT_SHARE * timeout_seconds
        for each in self._connections:
            if not each.is_usable(now, silent_seconds):
                self._retire_unusable(now, silent_seconds)
                break
        if not self._connections:
            return None
        if self._max_connections == 1:
            return self._connections[0]
        best = min(self._connections, key=_load)
        return None if best.load and self._may_open else best

    async def open_another(self, deadline: float) -> PipelinedConnection:
        """Open a connection, or wait for one that is being opened if the lane may have no more.

        If Redis refuses it, return one that is in use. Raises redis-py's errors, `OSError` or `TimeoutError` if none is
        open before ``deadline`` (by `time.monotonic`). The attempt itself goes on for others.
        """
        is_shared = not self._may_open
        try:
            return await self._wait_for_opening(deadline)
        except (RedisError, OSError):
            if self._connections:
                return min(self._connections, key=_load)  # Redis may refuse one more, but the others work
            if not is_shared or time.monotonic() >= deadline:
                raise
        return await self._wait_for_opening(deadline)  # an attempt that began earlier may have ended too early

    @property
    def _may_open(self) -> bool:
        return len(self._connections) + len(self._opening) < self._max_connections

    async def _wait_for_opening(self, deadline: float) -> PipelinedConnection:
        """Start an attempt to connect, or share one, and wait for it until ``deadline``."""
        if self._may_open:
            opening = asyncio.create_task(self._open(), name="Redis connection", context=Context())
            self._opening.add(opening)
            opening.add_done_callback(_fetch_error)
        else:
            opening = next(iter(self._opening))
        await asyncio.wait({opening}, timeout=max(0.0, deadline - time.monotonic()))
        if not opening.done():
            raise TimeoutError
        if opening.cancelled():
            raise RedisConnectionError("the client was closed")
        return opening.result()

    async def close(self) -> None:
        """Close all connections, and cancel the attempts to connect."""
        for task in (*self._opening,):
            task.cancel()
            await asyncio.wait([task])
        for connection in (*self._connections, *self._retired):
            await connection.close()

    def _retire_unusable(self, now: float, silent_seconds: float) -> None:
        unusable = [each for each in self._connections if not each.is_usable(now, silent_seconds)]
        for each in unusable:
            self._connections.remove(each)
            self._retired.add(each)
            each.retire()

    async def _open(self) -> PipelinedConnection:
        try:
            connection = await self._open_connection(self._forget)
            self._connections.append(connection)
            return connection
        finally:
            self._opening = {task for task in self._opening if task is not asyncio.current_task()}

    def _forget(self, connection: PipelinedConnection) -> None:
        self._retired.discard(connection)
        if connection in self._connections:
            self._connections.remove(connection)


def _fetch_error(task: "asyncio.Task[PipelinedConnection]") -> None:
    """Fetch the error of an attempt, or asyncio logs it when all callers have left."""
    if not task.cancelled():
        task.exception()


def _load(connection: PipelinedConnection) -> int:
    return connection.load
