"""The client of Redis: bounded connections, one attempt per call, separate errors for unsent and unanswered commands.

redis-py repeats a command whose reply was lost, ten times by default, so a write would be made twice. This client
repeats no command. :mod:`stream_server.store.redis.scripts` repeats a write once, under its idempotency key.
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

from stream_server.store.redis import address, admission, timeout_budget
from stream_server.store.redis.errors import outcome_unknown_error, unavailable_error
from stream_server.store.redis.refusals import is_demoted_primary, to_api_error
from stream_server.store.redis.sentinel import CONNECTION_OPTIONS, Sentinels, pool_arguments

Command = Sequence[str | bytes | int]
"""A Redis command: its name and its arguments."""

MAX_CONNECTIONS = 64
"""Most connections of one process. A call waits for a free connection, at most for the timeout."""

NOT_EXECUTED_ERRORS = (BusyLoadingError, AuthenticationError)
"""Error replies that redis-py treats as a broken connection. Redis did not execute the command."""


class NoReply(Exception):
    """A command was sent and not answered. Redis may have executed it."""


def create_redis_py_client(
    url: str, timeout_seconds: float, max_connections: int = MAX_CONNECTIONS, sentinels: Sentinels | None = None
) -> Redis:
    """Make a redis-py client that never repeats a command. It speaks RESP 2, returns bytes, and is not connected yet.

    :class:`RedisClient` limits the wait for a reply, because redis-py's own limit costs a task per command.

    Args:
        url: URL of Redis.
        timeout_seconds: Longest time in seconds for a connect, and for the wait for a free connection.
        max_connections: Size of the connection pool.
        sentinels: Finds the server if the URL names Sentinels.
    """
    service = address.parse_sentinel_url(url)
    options: dict[str, Any] = {} if url.startswith("unix:") else {"socket_keepalive": True}
    if service is None or sentinels is None:
        make_pool: Any = partial(BlockingConnectionPool.from_url, url)
    else:
        make_pool = BlockingConnectionPool
        options |= pool_arguments(service, sentinels)
    pool = make_pool(
        max_connections=max_connections,
        timeout=timeout_seconds,
        socket_connect_timeout=timeout_seconds,
        decode_responses=False,
        redis_connect_func=_ping_on_connect,
        **CONNECTION_OPTIONS,
        **options,
    )
    return Redis(connection_pool=pool)


class RedisClient:
    """Runs commands on one Redis. All its errors are errors of this project.

    Attributes:
        timeout_seconds: Longest wait in seconds for the replies of one call.
    """

    def __init__(self, url: str, timeout_seconds: float, *, replica: bool = False) -> None:
        """If ``url`` names Sentinels, use the primary of their service, or with ``replica`` one of its replicas."""
        service = address.parse_sentinel_url(url)
        self._sentinels = None if service is None else Sentinels(service, timeout_seconds, replica=replica)
        self._client = create_redis_py_client(url, timeout_seconds, sentinels=self._sentinels)
        self._pool = self._client.connection_pool
        self._late_reply_tasks: set[asyncio.Task[None]] = set()
        self.timeout_seconds = timeout_seconds

    @property
    def pool(self) -> ConnectionPool:
        """The connection pool, for a library with its own commands. The caller must limit the time of its calls."""
        return self._pool

    @property
    def remaining_seconds(self) -> float:
        """Longest wait in seconds for the next reply: the timeout, or the rest of the request's budget if less."""
        budget = timeout_budget.current_budget()
        return self.timeout_seconds if budget is None else max(0.0, min(self.timeout_seconds, budget.remaining_seconds))

    async def close(self) -> None:
        """Close all connections, and stop reading late replies."""
        await self._client.aclose()
        await self._pool.disconnect()
        for task in self._late_reply_tasks:
            task.cancel()
        await asyncio.gather(*self._late_reply_tasks, return_exceptions=True)
        if self._sentinels is not None:
            await self._sentinels.close()

    async def execute(self, *commands: Command, max_seconds: float = math.inf) -> list[Any]:
        """Return the replies of commands that may safely be repeated. Raises `Unavailable` without a reply.

        Wait at most ``max_seconds`` or the timeout, whichever is less. An opening stream also waits for admission.
        """
        try:
            replies = await self.run_pipeline(commands, min(max_seconds, self.timeout_seconds))
        except NoReply as lost:
            raise unavailable_error() from lost
        return _raise_first_refusal(replies)

    async def execute_write(self, *commands: Command) -> list[Any]:
        """Return the replies of commands that write without an idempotency key.

        Raises `OutcomeUnknown` if they were sent and not answered, and `Unavailable` if they were not sent.
        """
        try:
            replies = await self.run_pipeline(commands, self.timeout_seconds)
        except NoReply as lost:
            raise outcome_unknown_error() from lost
        return _raise_first_refusal(replies)

    async def run_pipeline(self, commands: Sequence[Command], timeout_seconds: float) -> list[Any]:
        """Send the commands once and return the replies in order. An error reply stands in its place as an exception.

        An opening stream waits for admission first. Raises `Unavailable` if the commands were not sent, and
        :class:`NoReply` if they were sent and not answered.
        """
        request_admission = admission.current_admission()
        if request_admission is None:
            return await self._run_pipeline(commands, timeout_seconds)
        async with request_admission.slot():
            return await self._run_pipeline(commands, timeout_seconds)

    async def _run_pipeline(self, commands: Sequence[Command], timeout_seconds: float) -> list[Any]:
        """Send the commands once within the timeout and the budget, and subtract the time from the budget."""
        sent, start, budget = False, time.monotonic(), timeout_budget.current_budget()
        allowed_seconds = min(timeout_seconds, self.remaining_seconds)
        if allowed_seconds <= 0:
            raise unavailable_error()  # otherwise the commands would be sent and given up at once
        try:
            async with asyncio.timeout(allowed_seconds) as time_limit:
                connection = await self._pool.get_connection()  # type: ignore[no-untyped-call]  # redis-py
                sent = True
                return await self._send_and_read(connection, commands, time_limit)
        except NOT_EXECUTED_ERRORS as error:
            raise unavailable_error() from error
        except (RedisError, OSError, TimeoutError) as error:
            if sent:
                raise NoReply from error
            raise unavailable_error() from error
        finally:
            if budget is not None:
                budget.remaining_seconds -= time.monotonic() - start

    async def subscribe(self, channels: Sequence[str]) -> AsyncGenerator[bytes | None, None]:
        """Yield the messages of these channels, from a connection of its own.

        The first item is None, once: all channels are subscribed. Raises `Unavailable` when the connection ends. A
        silent connection raises nothing, so the caller must compare with the log.
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
        self, connection: AbstractConnection, commands: Sequence[Command], time_limit: asyncio.Timeout
    ) -> list[Any]:
        """Send all commands, then read all replies.

        The next call on the connection must not get replies of this call. So after the timeout a task reads the
        remaining replies. After any other failure or a cancellation the connection is closed.
        """
        replies: list[Any] = []
        try:
            # redis-py packs commands in Python, which would be a third of the cost of a post.
            packed = b"".join(pack_command(tuple(each)) for each in commands)  # type: ignore[arg-type]  # any length
            await connection.send_packed_command(packed, check_health=False)
            await _read_replies(connection, replies, len(commands))
        except BaseException as error:
            if isinstance(error, asyncio.CancelledError) and time_limit.expired() and connection.is_connected:
                task = asyncio.create_task(
                    self._drain_late_replies(connection, len(commands) - len(replies)), name="late Redis reply"
                )
                self._late_reply_tasks.add(task)
                task.add_done_callback(self._late_reply_tasks.discard)
            else:
                await connection.disconnect(nowait=True)
                await self._pool.release(connection)
            raise
        await self._pool.release(connection)
        return replies

    async def _drain_late_replies(self, connection: AbstractConnection, reply_count: int) -> None:
        """Read late replies for one more timeout. A new connection would make a slow Redis even slower."""
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
    """Check a new connection with PING. If Redis refuses the connection, no command has been sent on it."""
    await connection.on_connect()
    await connection.send_command("PING", check_health=False)
    await connection.read_response()


def _raise_first_refusal(replies: list[Any]) -> list[Any]:
    """Return the replies, or raise the first error reply as an error of this project."""
    for reply in replies:
        if isinstance(reply, ResponseError):
            raise to_api_error(reply) from reply
    return replies


async def _read_replies(connection: AbstractConnection, replies: list[Any], count: int) -> None:
    """Read ``count`` replies and append them to ``replies``.

    Raises :class:`NoReply` if Redis executed some commands and refused the rest. If the server is no longer the
    primary, close the connection, so that the next connection goes to the new primary.
    """
    try:
        for _ in range(count):
            replies.append(await _read_reply(connection))  # noqa: PERF401 - after a failure the caller needs the replies so far
    except NOT_EXECUTED_ERRORS as error:
        if replies:
            raise NoReply from error
        raise
    if any(isinstance(reply, ResponseError) and is_demoted_primary(reply) for reply in replies):
        await connection.disconnect(nowait=True)


async def _read_reply(connection: AbstractConnection) -> Any:
    """Read one reply. An error reply is returned. redis-py would also close the connection after a timeout."""
    try:
        return await connection.read_response(disconnect_on_error=False)
    except RedisConnectionError:
        raise
    except ResponseError as refusal:
        return refusal
