"""Redis Sentinel: find the current primary or a replica, and make connections to it.

All Sentinels are queried at once, and the newest answer counts. Each answer has the epoch of its failover. A Sentinel
that is cut off from the others may name the old primary until it is connected again. A connection goes to the server
named last. If that server changes, an old connection is closed before its next use.

The Sentinels are queried at each new connection. For the primary they are also polled while connections exist. In a
manual failover the old primary accepts writes for ten more seconds, confirms them, and then discards them. So no
command is sent from the beginning of a failover until the new primary is known.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from redis.asyncio import Connection, Redis, SSLConnection
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import RedisError

from stream_server.store.redis.address import SentinelService

CACHE_SECONDS = 0.1
"""Time in seconds for which an answer is reused. Otherwise every request would query all Sentinels in a failover."""

POLL_SECONDS = 0.1
"""Interval in seconds between two polls of the Sentinels while connections exist.

Between the beginning of a failover and the first lost write there are two or three steps of 50 to 100 ms each.
"""

SLOW_SENTINEL_WAIT_SECONDS = 0.1
"""Longest wait in seconds for the other Sentinels after the first answer. Each silent Sentinel costs this wait."""

HostPort = tuple[str, int]
"""Host and port of a server."""

SentinelState = dict[str, Any]
"""What a Sentinel knows about one server, as redis-py parses it."""


class FailoverInProgress(RedisConnectionError):
    """The service has no primary at the moment. Connections to the last primary must be closed."""


class Sentinels:
    """The Sentinels of one service.

    Attributes:
        address: Host and port of the server named last, or None during a failover.
    """

    def __init__(self, sentinel_service: SentinelService, timeout_seconds: float, *, replica: bool = False) -> None:
        """Look for the primary, or with ``replica`` for a healthy replica. A replica is kept while it stays healthy."""
        self._service = sentinel_service.service
        self._timeout_seconds = timeout_seconds
        self._clients = [
            _create_sentinel_client(host, port, sentinel_service, timeout_seconds)
            for host, port in sentinel_service.sentinels
        ]
        self._polls_primary = not replica  # a former replica only gives old data
        self._query_target = self._query_replica if replica else self._query_primary
        self._resolving: asyncio.Task[HostPort] | None = None
        self._polling: asyncio.Task[None] | None = None
        self._resolved_at = -CACHE_SECONDS
        self.address: HostPort | None = None

    def __repr__(self) -> str:
        """Return the number of Sentinels, without addresses, because logs may show the arguments of a connection."""
        return f"<Sentinels: {len(self._clients)}>"

    async def resolve(self) -> HostPort:
        """Return host and port of the server. Concurrent calls share one query.

        Raises redis-py's ConnectionError if no Sentinel knows the server.
        """
        if self._resolving is None:
            if self.address is not None and asyncio.get_running_loop().time() - self._resolved_at < CACHE_SECONDS:
                return self.address
            self._resolving = asyncio.create_task(self._query_target(), name="sentinels")
            self._resolving.add_done_callback(self._on_resolved)
        return await asyncio.shield(self._resolving)

    def start_polling(self) -> None:
        """Keep the ``address`` of the primary current until :meth:`close`. For a replica, do nothing."""
        if self._polls_primary and (self._polling is None or self._polling.done()):
            self._polling = asyncio.create_task(self._poll(), name="sentinel polling")

    async def fetch_states(self) -> list[SentinelState | None]:
        """Return each Sentinel's state of the service, or None if it does not answer or does not know the service."""
        return await self._query_all(lambda client: client.sentinel_master(self._service, return_responses=True), None)

    async def close(self) -> None:
        """Close the connections to the Sentinels, and cancel a running query."""
        for task in (self._polling, self._resolving):
            if task is not None:
                task.cancel()
                await asyncio.wait([task])
        for client in self._clients:
            await client.aclose()

    def _on_resolved(self, task: "asyncio.Task[HostPort]") -> None:
        """Store the result of a query."""
        self._resolving = None
        if task.cancelled():
            return
        error = task.exception()  # fetch it, or asyncio logs an error when all waiting callers have left
        if error is None:
            self.address, self._resolved_at = task.result(), asyncio.get_running_loop().time()
        elif isinstance(error, FailoverInProgress):
            self.address = None

    async def _poll(self) -> None:
        """Query the Sentinels until cancelled. Without an answer the address stays: dead Sentinels make no failover."""
        while True:
            await asyncio.sleep(POLL_SECONDS)
            with suppress(RedisError, OSError):
                await self.resolve()

    async def _query_primary(self) -> HostPort:
        """Return host and port of the primary by the newest epoch.

        Raises `FailoverInProgress` during a failover, and redis-py's ConnectionError without an answer.
        """
        states = await self._query_all(self._query_state, SLOW_SENTINEL_WAIT_SECONDS)
        known = [state for state in states if state is not None]
        if not known:
            raise RedisConnectionError("no Sentinel answered with a primary")
        epoch = max(state["config-epoch"] for state in known)
        newest = [state for state in known if state["config-epoch"] == epoch]
        for state in newest:
            if state["promoted"] is not None:
                promoted: HostPort = state["promoted"]
                return promoted
        if any(_is_failing_over(state) for state in newest):
            raise FailoverInProgress("a Sentinel failover is in progress")
        up = [state for state in newest if not _is_down(state)]
        if not up:
            error = FailoverInProgress if any(state["is_odown"] for state in newest) else RedisConnectionError
            raise error("the Sentinels report the primary as down")
        return str(up[0]["ip"]), int(up[0]["port"])

    async def _query_state(self, client: Any) -> SentinelState:
        """Return the Sentinel's state of the primary. During a failover ``promoted`` is the new primary, if known.

        The state itself names the old primary until all other replicas follow the new one. This may take minutes.
        """
        state: SentinelState = await client.sentinel_master(self._service, return_responses=True)
        promoted = old = (str(state["ip"]), int(state["port"]))
        if _is_failing_over(state):
            host, port = await client.execute_command("SENTINEL", "GET-MASTER-ADDR-BY-NAME", self._service)
            promoted = (host.decode(), int(port))
        return state | {"promoted": None if promoted == old else promoted}

    async def _query_replica(self) -> HostPort:
        """Return a random healthy replica, so that processes spread over the replicas.

        A replica is healthy if no Sentinel reports it as down. Raises redis-py's ConnectionError without one.
        """
        answers = await self._query_all(
            lambda client: client.sentinel_slaves(self._service), SLOW_SENTINEL_WAIT_SECONDS
        )
        states = [state for answer in answers if answer is not None for state in answer]
        unhealthy = {
            (state["ip"], state["port"]) for state in states if _is_down(state) or state["master-link-status"] != "ok"
        }
        healthy = sorted({(str(state["ip"]), int(state["port"])) for state in states} - unhealthy)
        if not healthy:
            raise RedisConnectionError("the Sentinels know no healthy replica")
        return self.address if self.address in healthy else random.choice(healthy)

    async def _query_all(
        self, query: Callable[[Any], Awaitable[Any]], wait_after_first_seconds: float | None
    ) -> list[Any]:
        """Return the answers in the order of the Sentinels. None stands for a Sentinel without an answer.

        Args:
            query: Queries one Sentinel.
            wait_after_first_seconds: Wait in seconds for the other Sentinels after the first answer, or None to wait
                for all.
        """
        tasks = [asyncio.create_task(self._query_one(query, client)) for client in self._clients]
        try:
            if wait_after_first_seconds is not None:
                for first in asyncio.as_completed(tasks):
                    if await first is not None:
                        break
            await asyncio.wait(tasks, timeout=wait_after_first_seconds)
            return [task.result() if task.done() else None for task in tasks]
        finally:
            for task in tasks:
                task.cancel()

    async def _query_one(self, query: Callable[[Any], Awaitable[Any]], client: Any) -> Any:
        """Return one Sentinel's answer, or None without an answer within the timeout."""
        try:
            async with asyncio.timeout(self._timeout_seconds):
                return await query(client)
        except (RedisError, OSError, TimeoutError):
            return None


CONNECTION_OPTIONS: dict[str, Any] = {
    "socket_timeout": None,
    "retry": Retry(NoBackoff(), 0),
    "protocol": 2,
    "driver_info": None,
}
"""Options of every redis-py connection: no retries, and no timeout of its own."""


class SentinelConnection(Connection):
    """A connection to the server that the Sentinels name."""

    def __init__(self, *, sentinels: Sentinels, **arguments: Any) -> None:
        """Pass the other ``arguments`` to redis-py's connection."""
        self._sentinels = sentinels
        super().__init__(**arguments)

    async def connect(self) -> None:
        """Connect if necessary. redis-py calls this before each use. A connection to a former server is replaced."""
        if self.is_connected and (self.host, self.port) != self._sentinels.address:
            await self.disconnect(nowait=True)
        await super().connect()  # type: ignore[no-untyped-call]  # redis-py

    async def _connect(self) -> None:
        """Open the connection to the server that the Sentinels name now."""
        self.host, self.port = await self._sentinels.resolve()
        self._sentinels.start_polling()
        await super()._connect()  # type: ignore[no-untyped-call]  # redis-py


class SentinelTlsConnection(SentinelConnection, SSLConnection):
    """A connection with TLS to the server that the Sentinels name."""


def pool_arguments(sentinel_service: SentinelService, sentinels: Sentinels) -> dict[str, Any]:
    """Return the arguments of a redis-py pool whose connections go to the service."""
    return {
        "connection_class": SentinelTlsConnection if sentinel_service.use_tls else SentinelConnection,
        "sentinels": sentinels,
        "db": sentinel_service.db,
        **sentinel_service.credentials,
        **sentinel_service.tls_options,
    }


def _create_sentinel_client(host: str, port: int, sentinel_service: SentinelService, timeout_seconds: float) -> Redis:
    """Make a redis-py client for one Sentinel."""
    credentials: dict[str, Any] = {**sentinel_service.sentinel_credentials, **sentinel_service.tls_options}
    return Redis(
        host=host,
        port=port,
        socket_connect_timeout=timeout_seconds,
        ssl=sentinel_service.use_tls,
        **CONNECTION_OPTIONS,
        **credentials,
    )


def _is_failing_over(state: SentinelState) -> bool:
    """Return whether this Sentinel runs a failover of the service."""
    return "failover_in_progress" in state["flags"]


def _is_down(state: SentinelState) -> bool:
    """Return whether this Sentinel considers the server down or has no connection to it."""
    return bool(state["is_sdown"] or state["is_odown"] or state["is_disconnected"])
