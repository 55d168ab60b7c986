"""The lanes: which calls share a connection to Redis, so that no call waits for a reply that Redis holds back.

Redis answers the commands of one connection in order. So a command that Redis holds back, or a reply of some MiB,
delays all commands behind it. This module is the one place that decides which calls may wait for each other.

A lane opens its connections when they are needed, and replaces those that are closed, silent or outdated. redis-py does
the connecting: TLS, AUTH, the database, Sentinels, and the PING that shows that Redis answers. Then
:class:`PipelinedConnection` takes over the transport.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextvars import Context
from enum import IntEnum

from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import RedisError

from stream_server.store import keys
from stream_server.store.redis.pipelined_connection import PipelinedConnection
from stream_server.store.redis.protocol import pack_words

Command = Sequence[str | bytes | int]
"""The words of a command, or a plain read in Redis' protocol as bytes (`protocol.py`)."""


class Lane(IntEnum):
    """A class of calls that share a connection. A call takes the highest lane that one of its commands needs.

    Attributes:
        READ: Plain reads, also pages and what a stream needs to open. Redis answers them also while writes are paused.
        SCRIPT: Scripts without an idempotency key, such as those of jobs. CLIENT PAUSE holds them.
        WRITE: All other commands. A crowd of reads cannot delay them, and CLIENT PAUSE in a failover delays no reads.
        BULK: Calls with replies or commands of up to some MiB.
        BLOCKING: Calls that end with WAIT, which blocks its connection until the replicas have answered.
    """

    READ = 0
    SCRIPT = 1
    WRITE = 2
    BULK = 3
    BLOCKING = 4


MAX_CONNECTIONS = {Lane.READ: 1, Lane.SCRIPT: 1, Lane.WRITE: 1, Lane.BULK: 4, Lane.BLOCKING: 16}
"""Most connections of each lane. A lane opens one more only while all of its connections wait for replies."""

BULK_BYTES = 1 << 16
"""Size in bytes from which the commands of one call go on the lane BULK: the timelines of many followers."""

READ_NEWEST_ENTRY = b"*6\r\n" + pack_words([b"XREVRANGE", keys.LOG.encode(), b"+", b"-", b"COUNT", b"1"])
"""Reads the last entry of the log. Its reply is short, other than that of a page of the log."""

_LANE_BY_COMMAND: dict[str | bytes | int, Lane] = {
    **dict.fromkeys(
        ("DBSIZE", "ECHO", "EXISTS", "GET", "HEXISTS", "HGET", "HGETALL", "HMGET", "HVALS", "INFO", "LRANGE", "PING",
         "PTTL", "SMISMEMBER", "TIME", "ZCARD", "ZCOUNT", "ZINTER", "ZMSCORE", "ZRANGE", "ZRANK", "ZREVRANK", "ZSCAN",
         "ZSCORE", "MULTI", "EXEC"), Lane.READ
    ),
    **dict.fromkeys(("SCAN", "SSCAN", "XRANGE", "XREVRANGE"), Lane.BULK),
    "WAIT": Lane.BLOCKING,
    ord("*"): Lane.READ,  # the first byte of a packed command
}  # fmt: skip

PACKED = frozenset((bytes,))
"""The types of commands that are all packed reads. A set compares them quickly, because a page has thirty."""

_WRITE_KEY_PREFIX = keys.key_for("request", "")


def choose_lane(commands: Sequence[Command], packed_bytes: int) -> Lane:
    """Return the lane of a call with these commands, which take ``packed_bytes`` bytes on the wire."""
    if PACKED.issuperset(map(type, commands)) and packed_bytes < BULK_BYTES:
        return Lane.READ
    if len(commands) == 1 and packed_bytes < BULK_BYTES:
        return _lane_of(commands[0])
    if commands[-1][0] == "WAIT":
        return Lane.BLOCKING
    if packed_bytes >= BULK_BYTES:
        return Lane.BULK
    return max(map(_lane_of, commands))


def is_write(commands: Sequence[Command]) -> bool:
    """Return whether a call may change data by an idempotency key or without a script.

    Its first command shows it. A transaction may change data unless all its commands are plain reads.
    """
    if commands[0][0] == "MULTI":
        return any(_lane_of(command) is not Lane.READ for command in commands)
    return _lane_of(commands[0]) is Lane.WRITE


def _lane_of(command: Command) -> Lane:
    name = command[0]
    if name == "EVALSHA":
        key = command[3]
        return Lane.WRITE if isinstance(key, str) and key.startswith(_WRITE_KEY_PREFIX) else Lane.SCRIPT
    return _LANE_BY_COMMAND.get(name, Lane.WRITE)


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
