"""The client of Redis: shared connections, one attempt per call, separate errors for unsent and unanswered commands.

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
from redis.asyncio import BlockingConnectionPool, ConnectionPool
from redis.asyncio.connection import AbstractConnection
from redis.exceptions import RedisError, ResponseError

from stream_server.errors import ApiError
from stream_server.store.redis import address, admission, timeout_budget
from stream_server.store.redis.connections import LaneConnections
from stream_server.store.redis.lanes import MAX_CONNECTIONS, Command, Lane, choose_lane
from stream_server.store.redis.pipelined_connection import Call, NoReply, NotSent, PipelinedConnection
from stream_server.store.redis.redis_transport import open_transport
from stream_server.store.redis.refusals import outcome_unknown_error, to_api_error, unavailable_error
from stream_server.store.redis.request_trace import RedisCall
from stream_server.store.redis.sentinel import CONNECTION_OPTIONS, Sentinels, pool_arguments
from stream_server.store.redis.subscription import Subscription

MAX_POOL_CONNECTIONS = 16
"""Most connections of redis-py's pool, which only the library for rate limits uses."""


def create_pool(url: str, timeout_seconds: float, sentinels: Sentinels | None = None) -> ConnectionPool:
    """Make a redis-py pool whose connections never repeat a command. They speak RESP 2 and return bytes.

    ``timeout_seconds`` limits connecting and the wait for a free connection. It does not limit the wait for a reply. If
    the URL names Sentinels, ``sentinels`` finds the server.
    """
    service = address.parse_sentinel_url(url)
    options: dict[str, Any] = {} if url.startswith("unix:") else {"socket_keepalive": True}
    if service is None or sentinels is None:
        make_pool: Any = partial(BlockingConnectionPool.from_url, url)
    else:
        make_pool = BlockingConnectionPool
        options |= pool_arguments(service, sentinels)
    pool: ConnectionPool = make_pool(
        max_connections=MAX_POOL_CONNECTIONS,
        timeout=timeout_seconds,
        socket_connect_timeout=timeout_seconds,
        decode_responses=False,
        redis_connect_func=_ping_on_connect,
        **CONNECTION_OPTIONS,
        **options,
    )
    return pool


class RedisClient:
    """Runs commands on one Redis server. Raises no errors of redis-py, only `ApiError` and :class:`NoReply`.

    Attributes:
        timeout_seconds: Longest wait in seconds for the replies of one call.
    """

    def __init__(self, url: str, timeout_seconds: float, *, replica: bool = False) -> None:
        """Make an unconnected client. If ``url`` names Sentinels, ``replica`` selects a replica, not the primary."""
        service = address.parse_sentinel_url(url)
        self._sentinels = None if service is None else Sentinels(service, timeout_seconds, replica=replica)
        self._pool = create_pool(url, timeout_seconds, self._sentinels)
        self._lanes = [LaneConnections(self._open_connection, MAX_CONNECTIONS[lane]) for lane in Lane]
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
        """Close all connections. Calls that wait for a reply get :class:`NoReply`."""
        for lane in self._lanes:
            await lane.close()
        await self._pool.disconnect()
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
        start, budget, allowed_seconds = time.monotonic(), timeout_budget.current_budget(), timeout_seconds
        if budget is not None:
            allowed_seconds = min(allowed_seconds, budget.remaining_seconds)
        if allowed_seconds <= 0:
            raise unavailable_error()  # otherwise the commands would be sent and given up at once
        # hiredis packs commands in C. In Python that would be a third of the cost of a post.
        packed = b"".join([pack_command(tuple(each)) for each in commands])  # type: ignore[arg-type]  # any length
        lane = self._lanes[choose_lane(commands, len(packed))]
        try:
            return await self._send(lane, packed, len(commands), start + min(allowed_seconds, self.timeout_seconds))
        finally:
            if budget is not None:
                budget.remaining_seconds -= (seconds := time.monotonic() - start)
                if budget.trace is not None:
                    ended_ns = time.time_ns()
                    call = RedisCall(ended_ns - int(seconds * 1e9), ended_ns, len(commands))
                    budget.trace.calls.append(call)

    async def _send(self, lane: LaneConnections, packed: bytes, command_count: int, deadline: float) -> list[Any]:
        """Send commands once and return their replies. A connection that ends before it takes them is replaced once."""
        try:
            for _ in range(2):
                connection = lane.find_free(self.timeout_seconds) or await lane.open_another(deadline)
                call = Call(packed, command_count, deadline)
                connection.submit(call)
                try:
                    return await call.future
                except NotSent:
                    continue
        except (RedisError, OSError, TimeoutError) as error:
            raise unavailable_error() from error
        raise unavailable_error()

    async def subscribe(self, channels: Sequence[str]) -> Subscription:
        """Subscribe to channels on a new connection. Redis has confirmed all subscriptions when this returns.

        Raises `Unavailable` if Redis does not answer in time. A connection may also go silent later without an error,
        so the caller must compare its position with the log. The caller must close the subscription.
        """
        try:
            async with asyncio.timeout(self.timeout_seconds):
                subscription = Subscription(await open_transport(self._pool, self.timeout_seconds))
                await subscription.start(channels)
        except (RedisError, OSError, TimeoutError) as error:
            raise unavailable_error() from error
        return subscription

    async def _open_connection(self, on_lost: Callable[[PipelinedConnection], None]) -> PipelinedConnection:
        opened = await open_transport(self._pool, self.timeout_seconds)
        return PipelinedConnection(opened, self.timeout_seconds, partial(self._is_current, opened.address), on_lost)

    def _is_current(self, address: tuple[str, int]) -> bool:
        """Return whether the Sentinels, if any, still name the server at this address."""
        return self._sentinels is None or self._sentinels.address == address


async def _ping_on_connect(connection: AbstractConnection) -> None:
    """Set up a new connection and send PING, so that a refusal by Redis answers the PING and no caller's command."""
    await connection.on_connect()
    await connection.send_command("PING", check_health=False)
    await connection.read_response()
