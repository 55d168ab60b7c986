"""Redis Sentinel: find the current primary or a replica, and make connections to it.

All Sentinels are queried at once, and the newest answer counts. Each answer has the epoch of its failover. A Sentinel
that is cut off from the others may name the old primary until it is connected again. A connection goes to the server
named last. If that server changes, an old connection is closed before its next use.

The Sentinels are queried at each new connection. For the primary they are also polled while connections exist. In a
manual failover the old primary accepts writes for ten more seconds, confirms them, and then discards them. So no
command is sent from the beginning of a failover until the new primary is known.
"""

import random
from typing import Any

from redis.asyncio import Redis
from redis.exceptions import ConnectionError as RedisConnectionError

from stream_server.store.redis.address import RedisGroup
from stream_server.store.redis.connecting import CONNECTION_OPTIONS, HostPort
from stream_server.store.redis.shared_query import SharedQuery, query_all

SentinelState = dict[str, Any]


class FailoverInProgress(RedisConnectionError):
    """A failover has left the Redis service without a primary. The caller must close connections to the old primary."""


class Sentinels:
    """Asks the Sentinels of one Redis service for the address of its primary, or of one of its replicas.

    Attributes:
        address: Host and port from the last answer. None before the first answer and during a failover.
    """

    def __init__(self, group: RedisGroup, timeout_seconds: float, *, replica: bool = False) -> None:
        """If ``replica`` is true, find a replica and keep it while it is healthy. Otherwise find the primary."""
        self._service = group.service
        self._timeout_seconds = timeout_seconds
        self._clients = [_create_sentinel_client(*each, group, timeout_seconds) for each in group.hosts]
        self._polls_primary = not replica  # a former replica only gives old data
        self._query = SharedQuery(self._query_replica if replica else self._query_primary, self._on_resolved)
        self.address: HostPort | None = None
        self._left: HostPort | None = None

    def __repr__(self) -> str:
        """Return the number of Sentinels, without their addresses, because logs may show this text."""
        return f"<Sentinels: {len(self._clients)}>"

    async def resolve(self) -> HostPort:
        """Return host and port of the server to connect to, by asking the Sentinels. An answer is used for 0.1 s.

        Concurrent calls share one query. From then on a task keeps a primary's ``address`` current until :meth:`close`.
        Raises redis-py's ConnectionError if no Sentinel knows the server.
        """
        found = await self._query.recent()
        if self._polls_primary:
            self._query.start_polling()
        return found

    def leave(self) -> None:
        """Find another replica than the one in use from now on, if another is healthy."""
        self._left, self.address = self.address or self._left, None

    async def fetch_states(self) -> list[SentinelState | None]:
        """Return what each Sentinel reports about the service. None stands for no answer or an unknown service."""
        return await query_all(
            self._clients,
            lambda client: client.sentinel_master(self._service, return_responses=True),
            self._timeout_seconds,
            None,
        )

    async def close(self) -> None:
        """Close the connections to the Sentinels, stop polling, and cancel a running query."""
        await self._query.close()
        for client in self._clients:
            await client.aclose()

    def _on_resolved(self, answer: HostPort | Exception) -> None:
        if isinstance(answer, tuple):
            self.address = answer
        elif isinstance(answer, FailoverInProgress):
            self.address = None

    async def _query_primary(self) -> HostPort:
        """Return host and port of the primary. Only the answers with the newest epoch (failover number) count.

        Raises `FailoverInProgress` during a failover, and redis-py's ConnectionError if no Sentinel answers.
        """
        states = await query_all(self._clients, self._query_state, self._timeout_seconds)
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
        # A Sentinel that has just learned of a failover is not connected to the new primary yet, but names it.
        up = [state for state in newest if not (state["is_sdown"] or state["is_odown"])]
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
        answers = await query_all(
            self._clients, lambda client: client.sentinel_slaves(self._service), self._timeout_seconds
        )
        states = [state for answer in answers if answer is not None for state in answer]
        failed = [
            state for state in states
            if state["is_sdown"] or state["is_odown"] or state["is_disconnected"]
            or state["master-link-status"] != "ok"
        ]  # fmt: skip
        unhealthy = {(state["ip"], state["port"]) for state in failed}
        healthy = sorted({(str(state["ip"]), int(state["port"])) for state in states} - unhealthy)
        if not healthy:
            raise RedisConnectionError("the Sentinels know no healthy replica")
        if self.address in healthy:
            return self.address
        return random.choice([each for each in healthy if each != self._left] or healthy)


def _create_sentinel_client(host: str, port: int, group: RedisGroup, timeout_seconds: float) -> Redis:
    credentials: dict[str, Any] = {**group.sentinel_credentials, **group.tls_options}
    return Redis(
        host=host,
        port=port,
        socket_connect_timeout=timeout_seconds,
        ssl=group.use_tls,
        **CONNECTION_OPTIONS,
        **credentials,
    )


def _is_failing_over(state: SentinelState) -> bool:
    return "failover_in_progress" in state["flags"]
