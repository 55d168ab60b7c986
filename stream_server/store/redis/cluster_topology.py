"""Redis Cluster: find the node that owns a slot, and follow failovers and moved slots.

Several nodes are asked at once, and for each slot the answer with the highest config epoch counts. A node that was cut
off, or stood still, names the old owner until it hears from the others. So its own word is not enough: a former primary
that wakes up confirms writes and then loses them.

The table is asked for when connections open, when a node refuses a command, and every 0.1 s while connections exist.

A command that a node refused with MOVED did not run. So it may be sent again to the new owner, also if it has no
idempotency key. The other commands of the call must not: they ran.
"""

import asyncio
import random
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import chain
from typing import Any, NamedTuple

from redis.asyncio import Redis
from redis.crc import REDIS_CLUSTER_HASH_SLOTS, key_slot
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import MovedError, RedisError, ResponseError

from stream_server.store import keys
from stream_server.store.redis.address import RedisGroup
from stream_server.store.redis.cluster_nodes import Claim, parse_claims, parse_rows
from stream_server.store.redis.connecting import CONNECTION_OPTIONS, HostPort
from stream_server.store.redis.lanes import Command
from stream_server.store.redis.protocol import MULTI
from stream_server.store.redis.shared_query import SharedQuery, query_all

MAX_ASKED_NODES = 3
"""Most nodes that are asked at once. They stay the same while they answer, so a large cluster costs few connections."""

NO_CLUSTER_TEXT = "cluster support disabled"
"""Text of the refusal of CLUSTER by a Redis that is not in a cluster."""


class NotACluster(RedisError):
    """Raised when a server of a cluster URL is a Redis without a cluster."""


class Shard(NamedTuple):
    """A primary of the cluster and its replicas, as its nodes said when they were last asked."""

    primary: HostPort
    replicas: tuple[HostPort, ...]


Answer = tuple[Claim, ...]
"""The claims on slots by the word of one node."""


def slot_of(key: str) -> int:
    """Return the slot of a Redis key: a number from 0 to 16383. Only the part in braces counts, if there is one."""
    return key_slot(key.encode())


CORE_SLOT = slot_of(keys.META)
"""The slot of the truth, which is all on one shard."""


class ClusterTopology:
    """The table of slots of one cluster. It is empty until the first :meth:`refresh`.

    Attributes:
        on_table: Called when the table has changed.
        timeout_seconds: Longest wait in seconds for a node's answer.
    """

    def __init__(self, group: RedisGroup, timeout_seconds: float) -> None:
        self.group = group
        self.timeout_seconds = timeout_seconds
        self.on_table: Callable[[], None] = lambda: None  # a process that uses the truth only needs no news of it
        self._shard_by_slot: list[Shard | None] = [None] * REDIS_CLUSTER_HASH_SLOTS
        self._shards: list[Shard] = []
        self._is_core_failing_over = False
        self._answers: list[Answer] = []
        self._clients: dict[HostPort, Redis] = {}
        self._silent: set[HostPort] = set()
        self._asked: list[HostPort] = []
        self._hints: list[HostPort] = []
        self._query = SharedQuery(self._ask, self._take)
        self._requested: asyncio.Task[None] | None = None

    def __repr__(self) -> str:
        """Return the number of seeds, without their addresses, because logs may show this text."""
        return f"<ClusterTopology: {len(self.group.hosts)} seeds>"

    @property
    def core_owner(self) -> HostPort | None:
        """The primary that owns the core's slot. None before the first answer and during a failover."""
        return None if self._is_core_failing_over else self.owner(CORE_SLOT)

    @property
    def core_nodes(self) -> tuple[HostPort, ...]:
        """The nodes of the core's shard, its primary first. Empty while none is known."""
        core = self._shard_by_slot[CORE_SLOT]
        return () if core is None else (core.primary, *core.replicas)

    def owner(self, slot: int) -> HostPort | None:
        """Return the primary that owns a slot, or None if none is known."""
        shard = self._shard_by_slot[slot]
        return None if shard is None else shard.primary

    def replicas(self, slot: int) -> tuple[HostPort, ...]:
        """Return the replicas of a slot's owner that were in use when the table was made."""
        shard = self._shard_by_slot[slot]
        return () if shard is None else shard.replicas

    def primaries(self) -> list[HostPort]:
        """Return all primaries that own slots, in the order of their first slots."""
        return list(dict.fromkeys(shard.primary for shard in self._shards))

    async def recent(self) -> None:
        """Refresh the table of slots unless it is less than 0.1 s old. Raises what :meth:`refresh` raises."""
        await self._query.recent()

    async def refresh(self, moved_to: HostPort | None = None) -> None:
        """Ask the nodes from now on, and use their answer. Concurrent calls share one question.

        ``moved_to`` is a node that another node named as the new owner of a slot; it is asked too. Raises redis-py's
        ConnectionError if no node answers, and :class:`NotACluster` for a Redis without a cluster.
        """
        if moved_to is not None:
            self._hints = [moved_to]
        await self._query.next()

    def request_refresh(self, moved_to: HostPort | None = None) -> None:
        """Begin to ask the nodes for the table of slots, in a task of this object."""
        if self._requested is None or self._requested.done():
            self._requested = asyncio.create_task(self._refresh_quietly(moved_to), name="cluster refresh")

    def start_polling(self) -> None:
        """Start a task that asks every 0.1 s, until :meth:`close`."""
        self._query.start_polling()

    async def close(self) -> None:
        """Stop polling, cancel a running question, and close the connections to the nodes."""
        if self._requested is not None:
            self._requested.cancel()
            await asyncio.wait([self._requested])
        await self._query.close()
        for client in self._clients.values():
            await client.aclose()
        self._clients.clear()

    def open_client(self, node: HostPort) -> Redis:
        """Make a redis-py client of one node, for commands about that node. The caller closes it."""
        credentials: dict[str, Any] = {**self.group.credentials, **self.group.tls_options}
        return Redis(
            host=node[0],
            port=node[1],
            socket_connect_timeout=self.timeout_seconds,
            ssl=self.group.use_tls,
            **CONNECTION_OPTIONS,
            **credentials,
        )

    async def _refresh_quietly(self, moved_to: HostPort | None) -> None:
        with suppress(RedisError, OSError):
            await self.refresh(moved_to)

    async def _ask(self) -> list[Answer]:
        """Ask some nodes which node owns which slot; if none of them answers, ask all known nodes. Return the answers.

        Raises what :meth:`refresh` raises.
        """
        listed = (node for shard in self._shards for node in (shard.primary, *shard.replicas))
        known = list(dict.fromkeys([*self._asked, *listed, *self.group.hosts]))
        chosen = self._choose(known)
        hints, self._hints = self._hints, []  # one that comes meanwhile is for the next question
        answers = await self._ask_nodes([*chosen, *(hint for hint in hints if hint not in chosen)])
        if not answers:
            answers = await self._ask_nodes([node for node in known if node not in chosen])
        if not answers:
            raise RedisConnectionError("no node of the cluster answered")
        usable = [answer for answer in answers if answer is not None]
        if not usable:
            raise NotACluster("the Redis of the cluster URL is not in a cluster")
        # Nodes that are not asked any more lose their connection. If this is cancelled, `close` closes the rest.
        for node in self._clients.keys() - set(self._asked):
            await self._clients[node].aclose()
            del self._clients[node]
        return usable

    def _choose(self, known: list[HostPort]) -> list[HostPort]:
        """Return the nodes to ask: those that answered before, and others at random in the place of silent ones."""
        kept = [node for node in self._asked if node not in self._silent][:MAX_ASKED_NODES]
        others = [node for node in known if node not in kept]
        random.shuffle(others)
        others.sort(key=self._silent.__contains__)
        return kept + others[: MAX_ASKED_NODES - len(kept)]

    async def _ask_nodes(self, nodes: list[HostPort]) -> list[Answer | None]:
        """Return the answers of the nodes that answered. None stands for a Redis without a cluster."""
        results = await query_all(nodes, self._query_node, self.timeout_seconds)
        answered = [node for node, result in zip(nodes, results, strict=True) if result is not None]
        self._silent = (self._silent | set(nodes)) - set(answered)
        if answered:
            self._asked = answered[:MAX_ASKED_NODES]
        return [result[0] for result in results if result is not None]

    async def _query_node(self, node: HostPort) -> tuple[Answer | None]:
        async with self._client(node).pipeline(transaction=True) as pipeline:
            pipeline.execute_command("CLUSTER", "NODES")
            pipeline.execute_command("CLUSTER", "SLOTS")
            try:
                nodes_text, slot_rows = await pipeline.execute()
            except ResponseError as error:
                if NO_CLUSTER_TEXT in str(error):
                    return (None,)
                raise
        return (tuple(parse_claims(slot_rows, parse_rows(nodes_text), node)),)

    def _client(self, node: HostPort) -> Redis:
        client = self._clients.get(node)
        if client is None:
            client = self._clients[node] = self.open_client(node)
        return client

    def _take(self, answers: list[Answer] | Exception) -> None:
        """Make a new table of slots from the answers, unless they are equal to the last answers."""
        if isinstance(answers, Exception) or answers == self._answers:
            return
        self._answers = answers
        # Where two nodes have the same epoch, Redis gives a higher one to the node with the smaller id.
        claims = sorted(chain.from_iterable(answers), key=lambda claim: claim.node_id, reverse=True)
        table: list[Shard | None] = [None] * REDIS_CLUSTER_HASH_SLOTS
        for claim in sorted(claims, key=lambda claim: claim.epoch):
            size = claim.last_slot - claim.first_slot + 1
            table[claim.first_slot : claim.last_slot + 1] = [Shard(claim.primary, claim.replicas)] * size
        self._shard_by_slot = table
        self._shards = list(dict.fromkeys(shard for shard in table if shard is not None))
        self._is_core_failing_over = _is_failing_over(claims, self.owner(CORE_SLOT))
        self.on_table()


class CoreOwnerGuide:
    """Guides connections to the primary that owns the core's slot."""

    def __init__(self, topology: ClusterTopology) -> None:
        self._topology = topology

    @property
    def address(self) -> HostPort | None:
        """Host and port of the primary by the last answers. None during a failover, when it may have failed."""
        return self._topology.core_owner

    async def resolve(self) -> HostPort:
        """Return host and port by answers at most 0.1 s old. Raises redis-py's ConnectionError without a primary."""
        await self._topology.recent()
        owner = self._topology.core_owner
        if owner is None:
            raise RedisConnectionError("no node of the cluster owns the core's slot")
        self._topology.start_polling()
        return owner


class CoreReplicaGuide:
    """Guides connections to a replica of the core's shard: the one in use, or else one of the preferred, or any.

    Of several, a random one is used, to spread the load.
    """

    def __init__(self, topology: ClusterTopology, preferred: tuple[HostPort, ...] = ()) -> None:
        """``preferred`` are nodes by the addresses that the cluster names. Those that are no such replica are left."""
        self._topology = topology
        self._preferred = preferred
        self._chosen: HostPort | None = None
        self._left: HostPort | None = None

    @property
    def address(self) -> HostPort | None:
        """The replica in use. None before the first connection, and when that node has left the core's shard."""
        return self._chosen if self._chosen in self._topology.core_nodes else None

    async def resolve(self) -> HostPort:
        """Return the replica to connect to. Raises redis-py's ConnectionError if the cluster names none."""
        await self._topology.recent()
        replicas = self._topology.replicas(CORE_SLOT)
        if not replicas:
            raise RedisConnectionError("the core's shard has no replica")
        if self._chosen not in replicas:
            allowed = [each for each in self._preferred if each in replicas] or replicas
            self._chosen = random.choice([each for each in allowed if each != self._left] or allowed)
        self._topology.start_polling()  # a node that left the shard knows no more of the log
        return self._chosen

    def leave(self) -> None:
        """Guide the next connections to another replica than the one in use, if another may be used."""
        self._left, self._chosen = self._chosen or self._left, None


class NodeGuide:
    """Guides connections to one node of the cluster, whichever slots it owns."""

    def __init__(self, address: HostPort) -> None:
        self.address = address

    async def resolve(self) -> HostPort:
        """Return the address of the node, which never changes."""
        return self.address


def _is_failing_over(claims: list[Claim], core_owner: HostPort | None) -> bool:
    """Return whether most nodes that name this owner of the core's slot say that a replica is to take its place."""
    votes = [
        claim.is_failing_over
        for claim in claims
        if claim.first_slot <= CORE_SLOT <= claim.last_slot and claim.primary == core_owner
    ]
    return 2 * sum(votes) > len(votes)


def find_refused(commands: Sequence[Command], replies: Sequence[Any]) -> list[int]:
    """Return the indexes of the commands on the core's slot that were refused with MOVED, and so did not run.

    Of a transaction these are all commands, because it runs as a whole or not at all. A WAIT behind refused commands is
    among them, because it must follow them again.
    """
    refused = [index for index, reply in enumerate(replies) if _is_core_moved(reply)]
    if not refused or commands[0] == MULTI or commands[0][0] == "MULTI":
        return [*range(len(commands))] if refused else []
    return [*refused, len(commands) - 1] if commands[-1][0] == "WAIT" else refused


def named_owner(replies: Sequence[Any]) -> HostPort | None:
    """Return the node that the first refusal names as the owner of the slot, or None if it names no host."""
    owner = next((reply.node_addr for reply in replies if _is_core_moved(reply)), None)
    # Both hosts stand for one that the node does not know.
    return None if owner is None or owner[0] in {"", "?"} else owner


def insert_replies(commands: Sequence[Command], replies: list[Any], refused: Sequence[int], again: list[Any]) -> None:
    """Put the replies of the repeated commands in the places of the refusals.

    If other commands ran before, their replicas count too: the reply of WAIT becomes the worse one of both.
    """
    has_wait = commands[-1][0] == "WAIT"
    ran_before = len(refused) < len(commands)
    for index, reply in zip(refused, again, strict=True):
        is_wait = has_wait and index == len(commands) - 1
        replies[index] = _worse(replies[index], reply) if is_wait and ran_before else reply


def _is_core_moved(reply: object) -> bool:
    return isinstance(reply, MovedError) and reply.slot_id == CORE_SLOT


def _worse(first: Any, second: Any) -> Any:
    """Return the reply of WAIT with fewer replicas. An error counts as none."""
    error = next((reply for reply in (first, second) if isinstance(reply, ResponseError)), None)
    return min(first, second) if error is None else error
