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
"""Seconds between two polls of the Sentinels. In a failover the first write is lost after 100 to 300 ms."""

SLOW_SENTINEL_WAIT_SECONDS = 0.1
"""Longest wait in seconds for the other Sentinels after the first answer. Each silent Sentinel costs this wait."""

HostPort = tuple[str, int]
SentinelState = dict[str, Any]


class FailoverInProgress(RedisConnectionError):
    """A failover has left the Redis service without a primary. The caller must close connections to the old primary."""


class Sentinels:
    """Asks the Sentinels of one Redis service for the address of its primary, or of one of its replicas.

    Attributes:
        address: Host and port from the last answer. None before the first answer and during a failover.
    """

    def __init__(self, service: SentinelService, timeout_seconds: float, *, replica: bool = False) -> None:
        """If ``replica`` is true, find a replica and keep it while it is healthy. Otherwise find the primary."""
        self._service = service.service
        self._timeout_seconds = timeout_seconds
        self._clients = [_create_sentinel_client(*each, service, timeout_seconds) for each in service.sentinels]
        self._polls_primary = not replica  # a former replica only gives old data
        self._query_target = self._query_replica if replica else self._query_primary
        self._resolving: asyncio.Task[HostPort] | None = None
        self._polling: asyncio.Task[None] | None = None
        self._resolved_at = -CACHE_SECONDS
        self.address: HostPort | None = None

    def __repr__(self) -> str:
        """Return the number of Sentinels, without their addresses, because logs may show this text."""
        return f"<Sentinels: {len(self._clients)}>"

    async def resolve(self) -> HostPort:
        """Return host and port of the server to connect to, by asking the Sentinels. An answer is used for 0.1 s.

        Concurrent calls share one query. Raises redis-py's ConnectionError if no Sentinel knows the server.
        """
        if self._resolving is None:
            if self.address is not None and asyncio.get_running_loop().time() - self._resolved_at < CACHE_SECONDS:
                return self.address
            self._resolving = asyncio.create_task(self._query_target(), name="sentinels")
            self._resolving.add_done_callback(self._on_resolved)
        return await asyncio.shield(self._resolving)

    def start_polling(self) -> None:
        """Start a task that keeps a primary's ``address`` current until :meth:`close`. Do nothing for a replica."""
        if self._polls_primary and (self._polling is None or self._polling.done()):
            self._polling = asyncio.create_task(self._poll(), name="sentinel polling")

    async def fetch_states(self) -> list[SentinelState | None]:
        """Return what each Sentinel reports about the service. None stands for no answer or an unknown service."""
        return await self._query_all(lambda client: client.sentinel_master(self._service, return_responses=True), None)

    async def close(self) -> None:
        """Close the connections to the Sentinels, stop polling, and cancel a running query."""
        for task in (self._polling, self._resolving):
            if task is not None:
                task.cancel()
                await asyncio.wait([task])
        for client in self._clients:
            await client.aclose()

    def _on_resolved(self, task: "asyncio.Task[HostPort]") -> None:
        self._resolving = None
        if task.cancelled():
            return
        error = task.exception()  # fetch it, or asyncio logs an error when all waiting callers have left
        if error is None:
            self.address, self._resolved_at = task.result(), asyncio.get_running_loop().time()
        elif isinstance(error, FailoverInProgress):
            self.address = None

    async def _poll(self) -> None:
        """Query the Sentinels every 0.1 s. If none answers, keep the address, because that does not show a failover."""
        while True:
            await asyncio.sleep(POLL_SECONDS)
            with suppress(RedisError, OSError):
                await self.resolve()

    async def _query_primary(self) -> HostPort:
        """Return host and port of the primary. Only the answers with the newest epoch (failover number) count.

        Raises `FailoverInProgress` during a failover, and redis-py's ConnectionError if no Sentinel answers.
        """
        states = await self._query_all(self._query_state)
        known = [state for state in states if state is not None]
        if not known:
            raise RedisConnectionError("no Sentinel answered with a primary")
        epoch = max(state["config-epoch"] for state in known)
        newest = [state for state in known if state["config-epoch"] == epoch]
        promoted: HostPort | None = next((state["promoted"] for state in newest if state["promoted"]), None)
        if promoted is not None:
            return promoted
        if any(_is_failing_over(state) for state in newest):
            raise FailoverInProgress("a Sentinel failover is in progress")
        up = [state for state in newest if not _is_down(state)]
        if not up:
            error = FailoverInProgress if any(state["is_odown"] for state in newest) else RedisConnectionError
            raise error("the Sentinels report the primary as down")
        return str(up[0]["ip"]), int(up[0]["port"])

    async def _query_state(self, client: Any) -> SentinelState:
        """Return a Sentinel's report about the service. Its ``promoted`` is the new primary of a running failover.

        ``promoted`` is a host and port, or None while no new primary is known. The report's ``ip`` names the old
        primary until all replicas follow the new one, which may take minutes.
        """
        state: SentinelState = await client.sentinel_master(self._service, return_responses=True)
        promoted = old = (str(state["ip"]), int(state["port"]))
        if _is_failing_over(state):
            host, port = await client.execute_command("SENTINEL", "GET-MASTER-ADDR-BY-NAME", self._service)
            promoted = (host.decode(), int(port))
        return state | {"promoted": None if promoted == old else promoted}

    async def _query_replica(self) -> HostPort:
        """Return host and port of a healthy replica: the one in use, or else a random one, to spread the load."""
        answers = await self._query_all(lambda client: client.sentinel_slaves(self._service))
        states = [state for answer in answers if answer is not None for state in answer]
        failed = [state for state in states if _is_down(state) or state["master-link-status"] != "ok"]
        unhealthy = {(state["ip"], state["port"]) for state in failed}
        healthy = sorted({(str(state["ip"]), int(state["port"])) for state in states} - unhealthy)
        if not healthy:
            raise RedisConnectionError("the Sentinels know no healthy replica")
        return self.address if self.address in healthy else random.choice(healthy)

    async def _query_all(
        self, query: Callable[[Any], Awaitable[Any]], slow_wait_seconds: float | None = SLOW_SENTINEL_WAIT_SECONDS
    ) -> list[Any]:
        """Query all Sentinels, and return their answers in order. None stands for a Sentinel without an answer.

        ``slow_wait_seconds`` limits the wait for the other Sentinels after the first answer. None means no limit.
        """
        tasks = [asyncio.create_task(self._query_one(query, client)) for client in self._clients]
        try:
            if slow_wait_seconds is not None:
                for first in asyncio.as_completed(tasks):
                    if await first is not None:
                        break
            await asyncio.wait(tasks, timeout=slow_wait_seconds)
            return [task.result() if task.done() else None for task in tasks]
        finally:
            for task in tasks:
                task.cancel()

    async def _query_one(self, query: Callable[[Any], Awaitable[Any]], client: Any) -> Any:
        try:
            async with asyncio.timeout(self._timeout_seconds):
                return await query(client)
        except (RedisError, OSError, TimeoutError):
            return None


CONNECTION_OPTIONS: dict[str, Any] = {
    "socket_timeout": None, "retry": Retry(NoBackoff(), 0), "protocol": 2, "driver_info": None
}  # fmt: skip
"""Options of every redis-py connection: no retries, and no timeout of its own."""


class SentinelConnection(Connection):
    """A redis-py connection to the Redis server that the Sentinels name."""

    def __init__(self, *, sentinels: Sentinels, **arguments: Any) -> None:
        self._sentinels = sentinels
        super().__init__(**arguments)

    async def connect(self) -> None:
        """Connect, or reconnect if the Sentinels name another server now. redis-py calls this before each use."""
        if self.is_connected and (self.host, self.port) != self._sentinels.address:
            await self.disconnect(nowait=True)
        await super().connect()  # type: ignore[no-untyped-call]  # redis-py

    async def _connect(self) -> None:
        self.host, self.port = await self._sentinels.resolve()
        self._sentinels.start_polling()
        await super()._connect()  # type: ignore[no-untyped-call]  # redis-py


class SentinelTlsConnection(SentinelConnection, SSLConnection):
    """A redis-py connection with TLS to the Redis server that the Sentinels name."""


def pool_arguments(service: SentinelService, sentinels: Sentinels) -> dict[str, Any]:
    """Return the arguments of a redis-py connection pool that finds its server through ``sentinels``."""
    return {
        "connection_class": SentinelTlsConnection if service.use_tls else SentinelConnection,
        "sentinels": sentinels,
        "db": service.db,
        **service.credentials,
        **service.tls_options,
    }


def _create_sentinel_client(host: str, port: int, service: SentinelService, timeout_seconds: float) -> Redis:
    credentials: dict[str, Any] = {**service.sentinel_credentials, **service.tls_options}
    return Redis(
        host=host,
        port=port,
        socket_connect_timeout=timeout_seconds,
        ssl=service.use_tls,
        **CONNECTION_OPTIONS,
        **credentials,
    )


def _is_failing_over(state: SentinelState) -> bool:
    return "failover_in_progress" in state["flags"]


def _is_down(state: SentinelState) -> bool:
    return bool(state["is_sdown"] or state["is_odown"] or state["is_disconnected"])
