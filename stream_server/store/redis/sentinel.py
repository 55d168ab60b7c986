"""Sentinels: which of the servers that they watch is the primary now, or a replica, and connections that go there.

All Sentinels are asked at once, and the newest of their answers counts (each has the epoch of the failover that it
comes from): one that is cut off from the others may name the old primary for as long as that lasts. Whoever gets a
connection gets one to the server that was named last; where that has changed, the old ones are closed when they would
be used again.

They are asked at each new connection, and for the primary as long as there are any: in a failover that somebody asked
for, the old primary takes writes for ten seconds more, answers them, and then throws them away. So nobody writes from
when a Sentinel begins to change it until the new one is known.
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
"""An answer is good for so long: in a failover, every request would ask every Sentinel anew."""

POLL_SECONDS = 0.1
"""How often the Sentinels are asked while there are connections: two to three steps of a failover of theirs, each of
which takes 50 to 100 ms, lie between its beginning and the moment from which the old primary's writes are lost."""

SLOW_SENTINEL_WAIT_SECONDS = 0.1
"""How long the others are waited for once one has answered: what a Sentinel that is silent costs each asking."""

HostPort = tuple[str, int]
SentinelState = dict[str, Any]


class FailoverInProgress(RedisConnectionError):
    """Nobody is the primary at the moment; whoever is connected to the last one is to leave it."""


class Sentinels:
    """The Sentinels of one service, asked for its primary or, with ``replica``, for one of its healthy replicas.

    ``address`` is what they named last, None while the primary is being changed. The same replica is kept for as long
    as they call it healthy.
    """

    def __init__(self, sentinel_service: SentinelService, timeout_seconds: float, *, replica: bool = False) -> None:
        self._service = sentinel_service.service
        self._timeout_seconds = timeout_seconds
        self._clients = [
            _create_sentinel_client(host, port, sentinel_service, timeout_seconds)
            for host, port in sentinel_service.sentinels
        ]
        self._polls_primary = not replica  # a replica that is none any more only reads late
        self._query_target = self._query_replica if replica else self._query_primary
        self._resolving: asyncio.Task[HostPort] | None = None
        self._polling: asyncio.Task[None] | None = None
        self._resolved_at = -CACHE_SECONDS
        self.address: HostPort | None = None

    def __repr__(self) -> str:
        """Without the addresses: this may be shown as part of a connection's arguments."""
        return f"<Sentinels: {len(self._clients)}>"

    async def resolve(self) -> HostPort:
        """Host and port of the server, asked now; raises redis-py's ConnectionError if no Sentinel can say it.

        Those who want to know it at the same time ask once.
        """
        if self._resolving is None:
            if self.address is not None and asyncio.get_running_loop().time() - self._resolved_at < CACHE_SECONDS:
                return self.address
            self._resolving = asyncio.create_task(self._query_target(), name="sentinels")
            self._resolving.add_done_callback(self._on_resolved)
        return await asyncio.shield(self._resolving)

    def start_polling(self) -> None:
        """From now on ``address`` follows what they say, until :meth:`close`; a replica's does not."""
        if self._polls_primary and (self._polling is None or self._polling.done()):
            self._polling = asyncio.create_task(self._poll(), name="watched sentinels")

    async def fetch_states(self) -> list[SentinelState | None]:
        """What each Sentinel knows of the service, None for one that does not answer or does not watch it."""
        return await self._query_all(lambda client: client.sentinel_master(self._service, return_responses=True), None)

    async def close(self) -> None:
        """Close the connections to the Sentinels; whoever waits for an answer of theirs is cancelled."""
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
        error = task.exception()  # looked at here too: all who waited may have left
        if error is None:
            self.address, self._resolved_at = task.result(), asyncio.get_running_loop().time()
        elif isinstance(error, FailoverInProgress):
            self.address = None

    async def _poll(self) -> None:
        """Without an answer the last one holds: with all Sentinels dead there is no failover to be missed."""
        while True:
            await asyncio.sleep(POLL_SECONDS)
            with suppress(RedisError, OSError):
                await self.resolve()

    async def _query_primary(self) -> HostPort:
        found = await self._query_all(self._query_state, SLOW_SENTINEL_WAIT_SECONDS)
        known = [state for state in found if state is not None]
        if not known:
            raise RedisConnectionError("no Sentinel says where the primary is")
        epoch = max(state["config-epoch"] for state in known)
        newest = [state for state in known if state["config-epoch"] == epoch]
        for state in newest:
            if state["promoted"] is not None:
                promoted: HostPort = state["promoted"]
                return promoted
        if any(_is_failing_over(state) for state in newest):
            raise FailoverInProgress("the Sentinels are changing the primary")
        up = [state for state in newest if not _is_down(state)]
        if not up:
            raise (FailoverInProgress if any(state["is_odown"] for state in newest) else RedisConnectionError)(
                "the Sentinels say that the primary is down"
            )
        return str(up[0]["ip"]), int(up[0]["port"])

    async def _query_state(self, client: Any) -> SentinelState:
        """What it knows of the primary, and who was ``promoted`` if it is changing it and has come so far.

        Its state names the old one until all other replicas have followed, which may take minutes.
        """
        state: SentinelState = await client.sentinel_master(self._service, return_responses=True)
        named = old = (str(state["ip"]), int(state["port"]))
        if _is_failing_over(state):
            host, port = await client.execute_command("SENTINEL", "GET-MASTER-ADDR-BY-NAME", self._service)
            named = (host.decode(), int(port))
        return state | {"promoted": None if named == old else named}

    async def _query_replica(self) -> HostPort:
        """Any, so that processes spread over them; healthy is one that none of the Sentinels calls down."""
        found = await self._query_all(lambda client: client.sentinel_slaves(self._service), SLOW_SENTINEL_WAIT_SECONDS)
        told = [state for states in found if states is not None for state in states]
        ill = {(state["ip"], state["port"]) for state in told if _is_down(state) or state["master-link-status"] != "ok"}
        healthy = sorted({(str(state["ip"]), int(state["port"])) for state in told} - ill)
        if not healthy:
            raise RedisConnectionError("the Sentinels know of no healthy replica")
        return self.address if self.address in healthy else random.choice(healthy)

    async def _query_all(
        self, query: Callable[[Any], Awaitable[Any]], wait_after_first_seconds: float | None
    ) -> list[Any]:
        """The answers in the Sentinels' order, None for none, when all are there.

        With ``wait_after_first_seconds`` not for much longer than until the first one is.
        """
        asking = [asyncio.create_task(self._query_one(query, client)) for client in self._clients]
        try:
            if wait_after_first_seconds is not None:
                for first in asyncio.as_completed(asking):
                    if await first is not None:
                        break
            await asyncio.wait(asking, timeout=wait_after_first_seconds)
            return [task.result() if task.done() else None for task in asking]
        finally:
            for task in asking:
                task.cancel()

    async def _query_one(self, query: Callable[[Any], Awaitable[Any]], client: Any) -> Any:
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
"""What redis-py is told wherever it connects: to repeat nothing, and to leave the time to us."""


class SentinelConnection(Connection):
    """A connection that asks ``sentinels`` where to go."""

    def __init__(self, *, sentinels: Sentinels, **arguments: Any) -> None:
        self._sentinels = sentinels
        super().__init__(**arguments)

    async def connect(self) -> None:
        """Every use begins with this; one to a server that is not the one any more is closed, and opened anew."""
        if self.is_connected and (self.host, self.port) != self._sentinels.address:
            await self.disconnect(nowait=True)
        await super().connect()  # type: ignore[no-untyped-call]  # redis-py

    async def _connect(self) -> None:
        self.host, self.port = await self._sentinels.resolve()
        self._sentinels.start_polling()
        await super()._connect()  # type: ignore[no-untyped-call]  # redis-py


class SentinelTlsConnection(SentinelConnection, SSLConnection):
    """One with TLS."""


def pool_arguments(sentinel_service: SentinelService, sentinels: Sentinels) -> dict[str, Any]:
    """What a pool of connections takes so that they go to the service."""
    return {
        "connection_class": SentinelTlsConnection if sentinel_service.use_tls else SentinelConnection,
        "sentinels": sentinels,
        "db": sentinel_service.db,
        **sentinel_service.credentials,
        **sentinel_service.tls_options,
    }


def _create_sentinel_client(host: str, port: int, sentinel_service: SentinelService, timeout_seconds: float) -> Redis:
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
    return "failover_in_progress" in state["flags"]


def _is_down(state: SentinelState) -> bool:
    return bool(state["is_sdown"] or state["is_odown"] or state["is_disconnected"])
