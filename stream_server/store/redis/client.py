"""The way to Redis: bounded connections, one attempt a call, and the difference between not sent and not answered.

redis-py repeats a command whose answer was lost, ten times by default: a write would be made twice. Nothing is
repeated here; :mod:`stream_server.store.redis.scripts` does it once, under a request key.
"""

import asyncio
import math
import time
from collections.abc import AsyncGenerator, Sequence
from functools import partial
from typing import Any

from hiredis import pack_command
from redis.asyncio import BlockingConnectionPool, ConnectionPool, Redis
from redis.asyncio.connection import AbstractConnection
from redis.exceptions import AuthenticationError, BusyLoadingError, RedisError, ResponseError
from redis.exceptions import ConnectionError as RedisConnectionError

from stream_server.errors import Unavailable
from stream_server.store.redis import address, admission, timeout_budget
from stream_server.store.redis.refusals import is_demoted_primary, to_api_error
from stream_server.store.redis.sentinel import CONNECTION_OPTIONS, Sentinels, pool_arguments

Command = Sequence[str | bytes | int]
"""One command: its name and arguments."""

MAX_CONNECTIONS = 64
"""Most connections of one process; whoever finds none free waits, at most for the time-out."""

NOT_EXECUTED_ERRORS = (BusyLoadingError, AuthenticationError)
"""Answers that redis-py takes for a broken connection: the command was not run."""


class NoReply(Exception):
    """The command was sent and not answered: it may have been run, or not."""


def create_redis_py_client(
    url: str, timeout_seconds: float, max_connections: int = MAX_CONNECTIONS, sentinels: Sentinels | None = None
) -> Redis:
    """A client of the Redis at ``url``, or of the one that ``sentinels`` name, that repeats nothing by itself.

    It is not connected yet. RESP 2, answers as bytes; ``timeout_seconds`` bounds a connect, and the wait for a free
    connection. The time for an answer is watched in one place by :class:`RedisClient`: redis-py's own way costs a task a
    command.
    """
    watched = address.parse_sentinel_url(url)
    given: dict[str, Any] = {} if url.startswith("unix:") else {"socket_keepalive": True}
    if watched is None or sentinels is None:
        make: Any = partial(BlockingConnectionPool.from_url, url)
    else:
        make = BlockingConnectionPool
        given |= pool_arguments(watched, sentinels)
    pool = make(
        max_connections=max_connections,
        timeout=timeout_seconds,
        socket_connect_timeout=timeout_seconds,
        decode_responses=False,
        redis_connect_func=_ping_on_connect,
        **CONNECTION_OPTIONS,
        **given,
    )
    return Redis(connection_pool=pool)


class RedisClient:
    """Commands to one Redis, in one round trip each; the errors that leave here are ours.

    Where the URL names Sentinels, that is the primary of their service or, with ``replica``, one of its replicas.
    """

    def __init__(self, url: str, timeout_seconds: float, *, replica: bool = False) -> None:
        watched = address.parse_sentinel_url(url)
        self._sentinels = None if watched is None else Sentinels(watched, timeout_seconds, replica=replica)
        self._client = create_redis_py_client(url, timeout_seconds, sentinels=self._sentinels)
        self._pool = self._client.connection_pool
        self._late_reply_tasks: set[asyncio.Task[None]] = set()
        self.timeout_seconds = timeout_seconds

    @property
    def pool(self) -> ConnectionPool:
        """The connections, for a library that brings commands of its own; whoever uses them watches the time."""
        return self._pool

    @property
    def remaining_seconds(self) -> float:
        """How long the next answer may be waited for: the time-out, or what is left of the request's time."""
        spent = timeout_budget.current_budget()
        return self.timeout_seconds if spent is None else max(0.0, min(self.timeout_seconds, spent.remaining_seconds))

    async def close(self) -> None:
        """Close all connections."""
        await self._client.aclose()
        await self._pool.disconnect()
        for late in self._late_reply_tasks:
            late.cancel()
        await asyncio.gather(*self._late_reply_tasks, return_exceptions=True)
        if self._sentinels is not None:
            await self._sentinels.close()

    async def execute(self, *commands: Command, max_seconds: float = math.inf) -> list[Any]:
        """The answers of commands that only read, within ``max_seconds`` if that is less than the time-out.

        One of a crowd waits for its turn before that. Raises Unavailable if there are none.
        """
        try:
            replies = await self.run_pipeline(commands, min(max_seconds, self.timeout_seconds))
        except NoReply as lost:
            raise unavailable_error() from lost
        return _raise_first_refusal(replies)

    async def execute_write(self, *commands: Command) -> list[Any]:
        """The answers of commands that write beside the log and are not repeated: whoever loses them asks anew.

        Raises OutcomeUnknown when they were sent and not answered.
        """
        try:
            replies = await self.run_pipeline(commands, self.timeout_seconds)
        except NoReply as lost:
            raise timeout_budget.outcome_unknown_error() from lost
        return _raise_first_refusal(replies)

    async def run_pipeline(self, commands: Sequence[Command], timeout_seconds: float) -> list[Any]:
        """One attempt: the answers in order, a refusal in its place as an exception; one of a crowd waits for its turn.

        Raises Unavailable when nothing was sent, :class:`NoReply` when it was and no answer came.
        """
        place = admission.current_admission()
        if place is None:
            return await self._run_pipeline(commands, timeout_seconds)
        async with place.slot():
            return await self._run_pipeline(commands, timeout_seconds)

    async def _run_pipeline(self, commands: Sequence[Command], timeout_seconds: float) -> list[Any]:
        sent, began, spent = False, time.monotonic(), timeout_budget.current_budget()
        allowed = min(timeout_seconds, self.remaining_seconds)
        if allowed <= 0:
            raise unavailable_error()  # else it would be sent, and given up at once
        try:
            async with asyncio.timeout(allowed) as limit:
                connection = await self._pool.get_connection()  # type: ignore[no-untyped-call]  # redis-py
                sent = True
                return await self._send_and_read(connection, commands, limit)
        except NOT_EXECUTED_ERRORS as error:
            raise unavailable_error() from error
        except (RedisError, OSError, TimeoutError) as error:
            if sent:
                raise NoReply from error
            raise unavailable_error() from error
        finally:
            if spent is not None:
                spent.remaining_seconds -= time.monotonic() - began

    async def subscribe(self, channels: Sequence[str]) -> AsyncGenerator[bytes | None, None]:
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
            raise unavailable_error() from error
        finally:
            await connection.disconnect(nowait=True)

    async def _send_and_read(
        self, connection: AbstractConnection, commands: Sequence[Command], timeout: asyncio.Timeout
    ) -> list[Any]:
        """Sends all, then reads all. Behind its limit the rest is left to be read: it would be the next caller's.

        On any other failure, a cancellation too, the connection is closed for the same reason.
        """
        replies: list[Any] = []
        try:
            # redis-py's own packing is Python and would be a third of a post's cost.
            packed = b"".join(pack_command(tuple(each)) for each in commands)  # type: ignore[arg-type]  # any length
            await connection.send_packed_command(packed, check_health=False)
            await _read_replies(connection, replies, len(commands))
        except BaseException as why:
            if isinstance(why, asyncio.CancelledError) and timeout.expired() and connection.is_connected:
                late = asyncio.create_task(
                    self._drain_late_replies(connection, len(commands) - len(replies)), name="late answer"
                )
                self._late_reply_tasks.add(late)
                late.add_done_callback(self._late_reply_tasks.discard)
            else:
                await connection.disconnect(nowait=True)
                await self._pool.release(connection)
            raise
        await self._pool.release(connection)
        return replies

    async def _drain_late_replies(self, connection: AbstractConnection, reply_count: int) -> None:
        """Read what comes too late, for one more time-out, so that a slow Redis is not slower by a new connection."""
        try:
            async with asyncio.timeout(self.timeout_seconds):
                await _read_replies(connection, [], reply_count)
        except (RedisError, OSError, TimeoutError, NoReply):
            await connection.disconnect(nowait=True)
        except BaseException:
            await connection.disconnect(nowait=True)
            raise
        finally:
            await self._pool.release(connection)


async def _ping_on_connect(connection: AbstractConnection) -> None:
    """A new connection is one when Redis has answered on it: one that is not let in has taken no command of ours."""
    await connection.on_connect()
    await connection.send_command("PING", check_health=False)
    await connection.read_response()


def _raise_first_refusal(replies: list[Any]) -> list[Any]:
    """The answers, if none of them is a refusal, which is raised as ours."""
    for reply in replies:
        if isinstance(reply, ResponseError):
            raise to_api_error(reply) from reply
    return replies


def unavailable_error() -> Unavailable:
    """What a caller is told when Redis is away."""
    return Unavailable("the data store cannot be reached; nothing was written", retry_after=1)


async def _read_replies(connection: AbstractConnection, replies: list[Any], count: int) -> None:
    """So many replies are added; raises :class:`NoReply` if Redis refused to go on when it had run some of the commands.

    A connection to a primary that is none any more is closed, so that the next is made to whoever it is by then.
    """
    try:
        for _ in range(count):
            replies.append(await _read_reply(connection))  # noqa: PERF401 - whoever gives up has to know how many there are
    except NOT_EXECUTED_ERRORS as error:
        if replies:
            raise NoReply from error
        raise
    if any(isinstance(reply, ResponseError) and is_demoted_primary(reply) for reply in replies):
        await connection.disconnect(nowait=True)


async def _read_reply(connection: AbstractConnection) -> Any:
    """Not closed by redis-py: it would do so for whoever is tired of waiting, too."""
    try:
        return await connection.read_response(disconnect_on_error=False)
    except RedisConnectionError:
        raise
    except ResponseError as refusal:
        return refusal
