"""The client of Redis: bounded connections, one attempt per call, separate errors for unsent and unanswered commands.

redis-py repeats a command whose reply was lost, ten times by default, so a write would be made twice. This client
repeats no command. :mod:`stream_server.store.redis.scripts` repeats a write once, under its idempotency key.
"""

import asyncio
import math
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from hiredis import pack_command
from redis.asyncio import BlockingConnectionPool, ConnectionPool, Redis
from redis.asyncio.connection import AbstractConnection
from redis.exceptions import AuthenticationError, BusyLoadingError, RedisError, ResponseError
from redis.exceptions import ConnectionError as RedisConnectionError

from stream_server.errors import ApiError
from stream_server.store.redis import address, admission, timeout_budget
from stream_server.store.redis.refusals import (
    is_demoted_primary,
    outcome_unknown_error,
    to_api_error,
    unavailable_error,
)
from stream_server.store.redis.sentinel import CONNECTION_OPTIONS, Sentinels, pool_arguments
from stream_server.store.redis.subscription import Subscription

Command = Sequence[str | bytes | int]
MAX_CONNECTIONS = 64
"""Most connections of one process. A call waits for a free connection, at most for the timeout."""

NOT_EXECUTED_ERRORS = (BusyLoadingError, AuthenticationError)
"""Error replies that redis-py treats as a broken connection. Redis did not execute the command."""


class NoReply(Exception):
    """Raised when a command was sent to Redis and no reply came. Redis may have executed the command."""


def create_redis_py_client(
    url: str, timeout_seconds: float, max_connections: int = MAX_CONNECTIONS, sentinels: Sentinels | None = None
) -> Redis:
    """Make a redis-py client that never repeats a command. It speaks RESP 2, returns bytes, and is not connected yet.

    ``timeout_seconds`` limits connecting and the wait for a free connection. It does not limit the wait for a reply:
    :class:`RedisClient` does that, because redis-py's own limit costs a task per command. If the URL names Sentinels,
    ``sentinels`` finds the server.
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
    """Runs commands on one Redis server. Raises no errors of redis-py, only `ApiError` and :class:`NoReply`.

    Attributes:
        timeout_seconds: Longest wait in seconds for the replies of one call.
    """

    def __init__(self, url: str, timeout_seconds: float, *, replica: bool = False) -> None:
        """Make an unconnected client. If ``url`` names Sentinels, ``replica`` selects a replica, not the primary."""
        service = address.parse_sentinel_url(url)
        self._sentinels = None if service is None else Sentinels(service, timeout_seconds, replica=replica)
        self._client = create_redis_py_client(url, timeout_seconds, sentinels=self._sentinels)
        self._pool = self._client.connection_pool
        self._late_reply_tasks: set[asyncio.Task[None]] = set()
        self.timeout_seconds = timeout_seconds

    @property
    def pool(self) -> ConnectionPool:
        """The redis-py connection pool, for a library that sends commands itself and so needs a timeout of its own."""
        return self._pool

    @property
    def remaining_seconds(self) -> float:
        """Longest wait in seconds for the next reply: the timeout, or less if the request has less time left."""
        budget = timeout_budget.current_budget()
        return self.timeout_seconds if budget is None else max(0.0, min(self.timeout_seconds, budget.remaining_seconds))

    async def close(self) -> None:
        """Close all connections, and cancel the tasks that read late replies (those that came after their timeout)."""
        await self._client.aclose()
        await self._pool.disconnect()
        for task in self._late_reply_tasks:
            task.cancel()
        await asyncio.gather(*self._late_reply_tasks, return_exceptions=True)
        if self._sentinels is not None:
            await self._sentinels.close()

    async def execute(self, *commands: Command, max_seconds: float = math.inf) -> list[Any]:
        """Run commands that the caller may safely repeat, and return their replies in order.

        Waits at most ``max_seconds`` or the client's timeout, whichever is less, then raises `Unavailable`. A call of
        an opening stream first waits for a slot of `ReadAdmission`.
        """
        return await self._execute(commands, min(max_seconds, self.timeout_seconds), unavailable_error)

    async def execute_write(self, *commands: Command) -> list[Any]:
        """Run write commands without an idempotency key, and so only once. Return their replies in order.

        Raises `OutcomeUnknown` if the commands were sent and not answered, and `Unavailable` if they were not sent.
        """
        return await self._execute(commands, self.timeout_seconds, outcome_unknown_error)

    async def _execute(
        self, commands: Sequence[Command], timeout_seconds: float, no_reply_error: Callable[[], ApiError]
    ) -> list[Any]:
        try:
            replies = await self.run_pipeline(commands, timeout_seconds)
        except NoReply as lost:
            raise no_reply_error() from lost
        for reply in replies:
            if isinstance(reply, ResponseError):
                raise to_api_error(reply) from reply
        return replies

    async def run_pipeline(self, commands: Sequence[Command], timeout_seconds: float) -> list[Any]:
        """Send commands once and return their replies in order. The list contains an exception for each error reply.

        A call of an opening stream first waits for a slot of `ReadAdmission`. Raises `Unavailable` if the commands were
        not sent, and :class:`NoReply` if they were sent and not answered.
        """
        request_admission = admission.current_admission()
        if request_admission is None:
            return await self._run_pipeline(commands, timeout_seconds)
        async with request_admission.slot():
            return await self._run_pipeline(commands, timeout_seconds)

    async def _run_pipeline(self, commands: Sequence[Command], timeout_seconds: float) -> list[Any]:
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

    async def subscribe(self, channels: Sequence[str]) -> Subscription:
        """Subscribe to channels on a new connection. Redis has confirmed all subscriptions when this returns.

        Raises `Unavailable` if Redis does not answer in time. A connection may also go silent later without an error,
        so the caller must compare its position with the log. The caller must close the subscription.
        """
        connection: AbstractConnection = self._pool.make_connection()  # type: ignore[no-untyped-call]  # redis-py
        subscription: Subscription | None = None
        try:
            async with asyncio.timeout(self.timeout_seconds):
                await connection.connect()  # type: ignore[no-untyped-call]  # redis-py
                subscription = Subscription(connection)
                await subscription.start(channels)
        except BaseException as error:
            await connection.disconnect(nowait=True)
            if subscription is not None:
                subscription.close()
            if isinstance(error, RedisError | OSError | TimeoutError):
                raise unavailable_error() from error
            raise
        return subscription

    async def _send_and_read(
        self, connection: AbstractConnection, commands: Sequence[Command], time_limit: asyncio.Timeout
    ) -> list[Any]:
        """Send all commands, then read all replies.

        The next call on the connection must not get replies to these commands. So after a timeout, a background task
        reads the remaining replies. After another error or a cancellation, this method closes the connection.
        """
        replies: list[Any] = []
        try:
            # redis-py packs commands in Python, which would be a third of the cost of a post.
            packed = b"".join(pack_command(tuple(each)) for each in commands)  # type: ignore[arg-type]  # any length
            await connection.send_packed_command(packed, check_health=False)
            await _read_replies(connection, replies, len(commands))
        except BaseException as error:
            if isinstance(error, asyncio.CancelledError) and time_limit.expired() and connection.is_connected:
                draining = self._drain_late_replies(connection, len(commands) - len(replies))
                task = asyncio.create_task(draining, name="late Redis reply")
                self._late_reply_tasks.add(task)
                task.add_done_callback(self._late_reply_tasks.discard)
            else:
                await connection.disconnect(nowait=True)
                await self._pool.release(connection)
            raise
        await self._pool.release(connection)
        return replies

    async def _drain_late_replies(self, connection: AbstractConnection, reply_count: int) -> None:
        """For one more timeout, read and discard late replies. A new connection would cost a busy Redis more work."""
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
    """Set up a new connection and send PING, so that a refusal by Redis answers the PING and no caller's command."""
    await connection.on_connect()
    await connection.send_command("PING", check_health=False)
    await connection.read_response()


async def _read_replies(connection: AbstractConnection, replies: list[Any], count: int) -> None:
    """Read ``count`` replies and append them to ``replies``.

    Raises :class:`NoReply` if a reply says that Redis did not execute the command, but an earlier command was executed.
    If a reply says that the server is no longer the primary, closes the connection, so that the next one goes to the
    new primary.
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
    """Read one reply. Unlike redis-py, return an error reply as a value, and do not disconnect after a timeout."""
    try:
        return await connection.read_response(disconnect_on_error=False)
    except RedisConnectionError:
        raise
    except ResponseError as refusal:
        return refusal
