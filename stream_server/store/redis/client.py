"""The client of Redis: shared connections, one attempt per call, separate errors for unsent and unanswered commands.

redis-py repeats a command whose reply was lost, ten times by default, so a write would be made twice. This client
repeats no command. :mod:`stream_server.store.redis.scripts` repeats a write once, under its idempotency key.
"""

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

from hiredis import pack_command
from redis.asyncio import ConnectionPool
from redis.asyncio.connection import AbstractConnection
from redis.exceptions import OutOfMemoryError, RedisError, ResponseError

from stream_server.errors import ApiError, Unavailable
from stream_server.store.redis import address, cluster_topology, timeout_budget
from stream_server.store.redis.cluster_topology import ClusterTopology, CoreOwnerGuide, CoreReplicaGuide, NodeGuide
from stream_server.store.redis.connecting import (
    CONNECTION_OPTIONS,
    Guide,
    HostPort,
    guided_pool_arguments,
    open_transport,
)
from stream_server.store.redis.lanes import (
    MAX_CONNECTIONS,
    PACKED,
    Command,
    Lane,
    LaneConnections,
    choose_lane,
    is_write,
)
from stream_server.store.redis.pipelined_connection import Call, NoReply, NotSent, PipelinedConnection, find_instance
from stream_server.store.redis.protocol import EXEC, MULTI
from stream_server.store.redis.refusals import outcome_unknown_error, to_api_error, unavailable_error
from stream_server.store.redis.sentinel import Sentinels
from stream_server.store.redis.subscription import Asides, Subscription

SAME_OWNER_PAUSE_SECONDS = 0.05
"""Pause in seconds before a command goes again to the node that refused it, because the others still name that node."""

Result = TypeVar("Result")


def create_pool(
    url: str, timeout_seconds: float, guide: Guide | None, set_up: Callable[[AbstractConnection], Awaitable[None]]
) -> ConnectionPool:
    """Make a redis-py pool whose connections never repeat a command. They speak RESP 2 and return bytes.

    ``timeout_seconds`` limits connecting and the wait for a free connection. It does not limit the wait for a reply. If
    the URL names Sentinels or a cluster, ``guide`` finds the server. ``set_up`` prepares a new connection.
    """
    group = address.parse_group_url(url)
    make_pool: Any
    options: dict[str, Any] = {} if url.startswith("unix:") else {"socket_keepalive": True}
    if group is None or guide is None:
        make_pool = partial(ConnectionPool.from_url, url)
    else:
        make_pool = ConnectionPool
        options |= guided_pool_arguments(guide, group)
    pool: ConnectionPool = make_pool(
        socket_connect_timeout=timeout_seconds,
        decode_responses=False,
        redis_connect_func=set_up,
        **CONNECTION_OPTIONS,
        **options,
    )
    return pool


class RedisClient:
    """Runs commands on one Redis server. Raises no errors of redis-py, only `ApiError` and :class:`NoReply`.

    Attributes:
        timeout_seconds: Longest wait in seconds for the replies of one call.
        topology: The table of the cluster, or None if the URL names no cluster.
    """

    def __init__(
        self,
        url: str,
        timeout_seconds: float,
        *,
        replica: bool = False,
        node: HostPort | None = None,
        topology: ClusterTopology | None = None,
    ) -> None:
        """Make an unconnected client.

        If ``url`` names Sentinels or a cluster, ``replica`` selects a replica of the truth, not its primary. With the
        URL of a cluster, ``node`` is the one node to use, whatever it owns. Its refusals MOVED, ASK and TRYAGAIN are
        among the replies of :meth:`run_pipeline`, as redis-py's errors. ``topology`` is the table of this cluster, to
        share it; :meth:`close` leaves it open.
        """
        group = address.parse_group_url(url)
        self._guide: Guide | None = None
        self._owns_topology = topology is None
        self.topology = None
        if group is not None and not group.is_cluster:
            self._guide = Sentinels(group, timeout_seconds, replica=replica)
        elif group is not None:
            self.topology = topology or ClusterTopology(group, timeout_seconds)
            if node is not None:
                self._guide = NodeGuide(node)
            elif replica:
                self._guide = CoreReplicaGuide(self.topology, group.hosts)
            else:
                self._guide = CoreOwnerGuide(self.topology)
        self._repeats_refused = isinstance(self._guide, CoreOwnerGuide)
        may_be_in_cluster = replica and not isinstance(self._guide, Sentinels)
        set_up = _read_only_on_connect if may_be_in_cluster else _ping_on_connect
        self._pool = create_pool(url, timeout_seconds, self._guide, set_up)
        self._lanes = [LaneConnections(self._open_connection, MAX_CONNECTIONS[lane]) for lane in Lane]
        self.timeout_seconds = timeout_seconds

    @property
    def remaining_seconds(self) -> float:
        """Longest wait in seconds for the next reply: the timeout, or less if the request has less time left."""
        budget = timeout_budget.CURRENT.get()
        return self.timeout_seconds if budget is None else max(0.0, min(self.timeout_seconds, budget.remaining_seconds))

    @property
    def primaries(self) -> "Sequence[RedisClient]":
        """The clients of all servers that a scan of all keys must ask: only this one.

        The same attribute of `DerivedRouter` has one client for each primary of a cluster.
        """
        return (self,)

    @property
    def unreachable_nodes(self) -> "Sequence[HostPort]":
        """Always empty, because only a cluster has nodes that are left out.

        A call to this server finds out by itself.
        """
        return ()

    @property
    def nodes_returned(self) -> int:
        """Number of unreachable nodes that have answered again. Always 0, because only a cluster has such nodes."""
        return 0

    @property
    def follow_ups(self) -> Mapping[str, int]:
        """Always empty, because only a cluster sends a command on to another node."""
        return {}

    async def execute_each(self, *commands: Command) -> list[Any]:
        """Run commands as :meth:`execute` does. An `ApiError` stands in the place of each that failed."""
        try:
            replies = await self.run_pipeline(commands, self.timeout_seconds)
        except (Unavailable, NoReply):
            return [unavailable_error()] * len(commands)
        return [to_api_error(reply) if isinstance(reply, ResponseError) else reply for reply in replies]

    async def close(self) -> None:
        """Close all connections. Calls that wait for a reply get :class:`NoReply`."""
        for lane in self._lanes:
            await lane.close()
        await self._pool.disconnect()
        if isinstance(self._guide, Sentinels):
            await self._guide.close()
        if self.topology is not None and self._owns_topology:
            await self.topology.close()

    async def execute(self, *commands: Command, max_seconds: float = math.inf) -> list[Any]:
        """Run commands that the caller may safely repeat, and return their replies in order.

        Waits at most ``max_seconds`` or the client's timeout, whichever is less, then raises `Unavailable`.
        """
        return await self._execute(commands, min(max_seconds, self.timeout_seconds), _not_in_time)

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
        refused = find_instance(replies, ResponseError)
        if refused is not None:
            raise to_api_error(refused) from refused
        return replies

    async def execute_at_once(self, *commands: Command) -> list[Any]:
        """Run reads as one step, so that all replies are of the same moment. Return them in order.

        A full Redis refuses to queue commands, also reads. Then they run one after another. As long as Redis is full,
        no write adds a log entry, so nothing changes in between that has one. Raises what :meth:`execute` raises.
        """
        if len(commands) == 1:
            return await self.execute(*commands)
        try:
            replies = await self.run_pipeline((MULTI, *commands, EXEC), self.timeout_seconds)
        except NoReply as lost:
            raise _not_in_time() from lost
        found: list[Any] = replies[-1] if isinstance(replies[-1], list) else replies
        refused = find_instance(found, ResponseError)
        if refused is None:
            return found
        if isinstance(refused, OutOfMemoryError):
            return await self.execute(*commands)
        raise to_api_error(refused) from refused

    async def run_pipeline(self, commands: Sequence[Command], timeout_seconds: float) -> list[Any]:
        """Send commands once and return their replies in order. The list contains an exception for each error reply.

        Raises `Unavailable` if the commands were not sent, and :class:`NoReply` if they were sent and not answered.
        """
        start, budget, allowed_seconds = time.monotonic(), timeout_budget.CURRENT.get(), timeout_seconds
        if budget is not None:
            allowed_seconds = min(allowed_seconds, budget.remaining_seconds)
        if allowed_seconds <= 0:
            raise _not_in_time()  # otherwise the commands would be sent and given up at once
        deadline = start + min(allowed_seconds, self.timeout_seconds)
        try:
            replies = await self.send(commands, deadline)
            if self._repeats_refused:
                await self._repeat_refused(commands, replies, deadline)
            return replies
        finally:
            if budget is not None:
                budget.charge(time.monotonic() - start, len(commands))

    async def _repeat_refused(self, commands: Sequence[Command], replies: list[Any], deadline: float) -> None:
        """Repeat the commands that a former owner of the core's slot refused, until another one takes them.

        If none takes them before ``deadline``, their refusals stay among the ``replies``.
        """
        while refused := cluster_topology.find_refused(commands, replies):
            again = [commands[index] for index in refused]
            try:
                await self._find_owner(cluster_topology.named_owner(replies), deadline)
                repeated = await self.send(again, deadline)
            except (RedisError, OSError, TimeoutError, Unavailable):
                return
            cluster_topology.insert_replies(commands, replies, refused, repeated)

    async def _find_owner(self, named: HostPort | None, deadline: float) -> None:
        """Ask the cluster who owns the core's slot. Connections to another node are then closed before their next use.

        Raises redis-py's errors, `OSError` or `TimeoutError`.
        """
        assert self.topology is not None
        before = self.topology.core_owner
        async with asyncio.timeout(deadline - time.monotonic()):
            await self.topology.refresh(named)
            if self.topology.core_owner == before:
                await asyncio.sleep(SAME_OWNER_PAUSE_SECONDS)

    async def send(self, commands: Sequence[Command], deadline: float) -> list[Any]:
        """Run commands as :meth:`run_pipeline` does, until ``deadline`` (by `time.monotonic`).

        The time does not count against the timeout of the present request. A caller that asks several servers at once
        uses this method, and counts the time of all of them once. A connection that ends before it takes the commands
        is replaced once.
        """
        if PACKED.issuperset(map(type, commands)):
            packed = b"".join(commands)  # type: ignore[arg-type]  # all are bytes
        else:  # hiredis packs in C; in Python it would be a third of the cost of a post
            packed = b"".join([each if isinstance(each, bytes) else pack_command(tuple(each)) for each in commands])  # type: ignore[arg-type]  # any length
        lane = self._lanes[choose_lane(commands, len(packed))]
        try:
            for _ in range(2):
                connection = lane.find_free(self.timeout_seconds) or await lane.open_another(deadline)
                may_write = lane is self._lanes[Lane.WRITE] or is_write(commands)
                future = asyncio.get_running_loop().create_future()
                call = Call(packed, len(commands), deadline, future, is_write=may_write)
                connection.submit(call)
                try:
                    return await call.future
                except NotSent:
                    continue
                except (NoReply, asyncio.CancelledError):
                    if not call.packed and (budget := timeout_budget.CURRENT.get()) is not None:
                        budget.is_unread = True  # the connection has written the commands
                    raise
        except (RedisError, OSError, TimeoutError) as error:
            raise unavailable_error(error) from error
        raise unavailable_error()

    async def subscribe(self, channels: Sequence[str], asides: Asides) -> Subscription:
        """Subscribe to ``channels`` and those of ``asides`` on a new connection. Return when Redis has confirmed all.

        Raises `Unavailable` if Redis does not answer in time. A connection may also go silent later without an error,
        so the caller must compare its position with the log. The caller must close the subscription.
        """
        try:
            async with asyncio.timeout(self.timeout_seconds):
                subscription = Subscription(await open_transport(self._pool, self.timeout_seconds), asides)
                await subscription.start(channels)
        except (RedisError, OSError, TimeoutError) as error:
            raise unavailable_error(error) from error
        return subscription

    def leave_replica(self) -> None:
        """Use another replica from now on, if the cluster or the Sentinels of the URL have another one to use."""
        if isinstance(self._guide, CoreReplicaGuide | Sentinels):
            self._guide.leave()

    async def _open_connection(self, on_lost: Callable[[PipelinedConnection], None]) -> PipelinedConnection:
        opened = await open_transport(self._pool, self.timeout_seconds)
        is_current = None if self._guide is None else partial(_is_named, self._guide, opened.address)
        return PipelinedConnection(opened, self.timeout_seconds, is_current, on_lost)


def _is_named(guide: Guide, address: tuple[str, int]) -> bool:
    """Return whether the Sentinels or the cluster still name the server at this address."""
    return guide.address == address


def _not_in_time() -> Unavailable:
    return unavailable_error(TimeoutError())


async def _ping_on_connect(connection: AbstractConnection) -> None:
    """Set up a new connection and send PING, so that a refusal by Redis answers the PING and no caller's command."""
    await connection.on_connect()
    await connection.send_command("PING", check_health=False)
    await connection.read_response()


async def _read_only_on_connect(connection: AbstractConnection) -> None:
    """Set up a new connection to a replica. In a cluster, it serves reads only after READONLY.

    A Redis without a cluster refuses READONLY, and a user without the right to it gets the refusal of each read.
    """
    await connection.on_connect()
    await connection.send_command("READONLY", check_health=False)
    await connection.send_command("PING", check_health=False)
    with suppress(ResponseError):
        await connection.read_response()
    await connection.read_response()
