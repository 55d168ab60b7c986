"""The way to Redis: bounded connections, one attempt a call, and the difference between not sent and not answered.

redis-py repeats a command whose answer was lost, ten times by default: a write would be made twice. Nothing is
repeated here; :mod:`stream_server.store.scripts` does it once, under a request key.
"""

import asyncio
import math
from collections.abc import AsyncGenerator, Sequence
from typing import Any

from hiredis import pack_command
from redis.asyncio import BlockingConnectionPool, ConnectionPool, Redis
from redis.asyncio.connection import AbstractConnection
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import AuthenticationError, BusyLoadingError, RedisError, ResponseError
from redis.exceptions import ConnectionError as RedisConnectionError

from stream_server.errors import OutcomeUnknown, Unavailable
from stream_server.store.refusals import refused

Command = Sequence[str | bytes | int]
"""One command: its name and arguments."""

CONNECTIONS = 64
"""Most connections of one process; whoever finds none free waits, at most for the time-out."""

REFUSED = (BusyLoadingError, AuthenticationError)
"""Answers that redis-py takes for a broken connection: the command was not run."""


class Lost(Exception):
    """The command was sent and not answered: it may have been run, or not."""


def connect(url: str, timeout_seconds: float, connections: int = CONNECTIONS) -> Redis:
    """A client of the Redis at ``url`` (redis://, rediss://, unix://) that repeats nothing by itself.

    It is not connected yet. RESP 2, answers as bytes; ``timeout_seconds`` bounds a connect, and the wait for a free
    connection. The time for an answer is watched in one place by :class:`Link`: redis-py's own way costs a task a
    command.
    """
    tcp = {} if url.startswith("unix:") else {"socket_keepalive": True}
    pool = BlockingConnectionPool.from_url(
        url,
        max_connections=connections,
        timeout=timeout_seconds,
        socket_connect_timeout=timeout_seconds,
        socket_timeout=None,
        **tcp,
        retry=Retry(NoBackoff(), 0),
        protocol=2,
        decode_responses=False,
        driver_info=None,
    )
    return Redis(connection_pool=pool)


class Link:
    """Commands to one Redis, in one round trip each; the errors that leave here are ours."""

    def __init__(self, url: str, timeout_seconds: float) -> None:
        self._client = connect(url, timeout_seconds)
        self._pool = self._client.connection_pool
        self.timeout_seconds = timeout_seconds

    @property
    def pool(self) -> ConnectionPool:
        """The connections, for a library that brings commands of its own; whoever uses them watches the time."""
        return self._pool

    async def close(self) -> None:
        """Close all connections."""
        await self._client.aclose()
        await self._pool.disconnect()

    async def ask(self, *commands: Command) -> list[Any]:
        """The answers of commands that only read; raises Unavailable if there are none."""
        try:
            replies = await self.exchange(commands, self.timeout_seconds)
        except Lost as lost:
            raise unavailable() from lost
        return _good(replies)

    async def once(self, *commands: Command) -> list[Any]:
        """The answers of commands that write beside the log and are not repeated: whoever loses them asks anew.

        Raises OutcomeUnknown when they were sent and not answered.
        """
        try:
            replies = await self.exchange(commands, self.timeout_seconds)
        except Lost as lost:
            raise OutcomeUnknown("the data store did not answer", retry_after=1) from lost
        return _good(replies)

    async def exchange(self, commands: Sequence[Command], timeout_seconds: float) -> list[Any]:
        """One attempt: the answers in order, a refusal in its place as an exception.

        Raises Unavailable when nothing was sent, :class:`Lost` when it was and no answer came.
        """
        sent = False
        try:
            async with asyncio.timeout(timeout_seconds):
                connection = await self._pool.get_connection()  # type: ignore[no-untyped-call]  # redis-py
                sent = True
                return await self._converse(connection, commands)
        except REFUSED as error:
            raise unavailable() from error
        except (RedisError, OSError, TimeoutError) as error:
            if sent:
                raise Lost from error
            raise unavailable() from error

    async def listen(self, channels: Sequence[str]) -> AsyncGenerator[bytes | None, None]:
        """What is PUBLISHed, on a connection of its own; first, and once, None: all channels are subscribed.

        Raises Unavailable when the link ends; a silent link is noticed by whoever compares with the log.
        """
        connection: AbstractConnection = self._pool.make_connection()  # type: ignore[no-untyped-call]  # redis-py
        try:
            async with asyncio.timeout(self.timeout_seconds):
                await connection.connect()  # type: ignore[no-untyped-call]  # redis-py
                await connection.send_command("SUBSCRIBE", *channels)
                for _ in channels:
                    await connection.read_response()
            yield None
            while True:
                yield (await connection.read_response(timeout=math.inf))[2]
        except (RedisError, OSError, TimeoutError) as error:
            raise unavailable() from error
        finally:
            await connection.disconnect(nowait=True)

    async def _converse(self, connection: AbstractConnection, commands: Sequence[Command]) -> list[Any]:
        """Sends all, then reads all; on any failure, a cancellation too, redis-py closes the connection itself.

        That matters: an answer still on its way would be read by the next caller as its own.
        """
        try:
            # redis-py's own packing is Python and would be a third of a post's cost.
            packed = b"".join(pack_command(tuple(each)) for each in commands)  # type: ignore[arg-type]  # any length
            await connection.send_packed_command(packed, check_health=False)
            return [await _reply(connection) for _ in commands]
        finally:
            await self._pool.release(connection)


def _good(replies: list[Any]) -> list[Any]:
    """The answers, if none of them is a refusal, which is raised as ours."""
    for reply in replies:
        if isinstance(reply, ResponseError):
            raise refused(reply) from reply
    return replies


def unavailable() -> Unavailable:
    """What a caller is told when Redis is away."""
    return Unavailable("the data store cannot be reached; nothing was written", retry_after=1)


async def _reply(connection: AbstractConnection) -> Any:
    try:
        return await connection.read_response()
    except RedisConnectionError:
        raise
    except ResponseError as refusal:
        return refusal
