"""Derived data: on the one Redis that has all keys, or spread over the nodes of a Redis Cluster.

The truth is on one shard and its link is :class:`~stream_server.store.redis.client.RedisClient`. Derived data (see
`store/keys.py`) may be on any shard. On one Redis both links are the same object, so the interface costs nothing there.
A caller gives commands of one key each, and must be able to repeat all of them.

In a cluster the commands of one call leave in one packet for each node. While slots move, a node names the node to ask
instead: MOVED for good, ASK for this time, after an ASKING. Each packet goes on by itself then, so a slow node delays
its own keys only. redis-py's own client of a cluster fails a whole call if one of its nodes is dead.

A node that is dead or frozen must not make each call wait for its timeout. So the first call that fails, or waits long,
makes this process send PING. Without an answer all calls fail at once until PING is answered.
"""

import asyncio
import logging
import time
from collections import Counter, defaultdict
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from contextlib import suppress
from contextvars import Context
from functools import partial
from itertools import chain, count
from typing import Any, NamedTuple

from redis.exceptions import AskError, MovedError, RedisError, ResponseError, TryAgainError

from stream_server.errors import ApiError, Unavailable
from stream_server.store.redis import timeout_budget
from stream_server.store.redis.client import RedisClient
from stream_server.store.redis.cluster_topology import CORE_SLOT, ClusterTopology, slot_of
from stream_server.store.redis.connecting import HostPort
from stream_server.store.redis.lanes import Command
from stream_server.store.redis.pipelined_connection import NoReply
from stream_server.store.redis.refusals import to_api_error, unavailable_error

PAUSE_SECONDS = 0.02
"""Pause in seconds after TRYAGAIN, and before a command follows more than one node's word."""

SUSPECT_SHARE = 0.3
"""Share of the timeout after which a call that waits makes this process send PING, and for which PING may wait.

Both together end before the timeout, so the first calls do not wait for all of it.
"""

ASKING: Command = ("ASKING",)
"""Lets a node that receives a slot run the next command on it, although another node still owns the slot."""

logger = logging.getLogger(__name__)


class Target(NamedTuple):
    """Where a command goes: a node, and whether ASKING goes before the command."""

    node: HostPort
    asking: bool = False


class Node:
    """A node of the cluster.

    Attributes:
        client: Its client, made anew after it was away.
        is_away: Whether calls fail at once, because the node does not answer.
        is_suspect: Whether the node must show by PING that it answers.
    """

    def __init__(self, address: HostPort, client: RedisClient) -> None:
        self.address, self.client = address, client
        self.is_away = self.is_suspect = False


class DerivedRouter:
    """The derived data of a Redis Cluster: each command goes to the node that has its key, which is its second word.

    Commands of one key run in their order. Commands of several keys may run in any order. The time limit of a request
    counts a call once, however many nodes it needs.

    Attributes:
        nodes_returned: How many times a node that did not answer came back, or another one took its place.
        follow_ups: How many commands were sent again, by the refusal of the node: ``moved``, ``ask``, ``tryagain``.
    """

    def __init__(self, core: RedisClient, topology: ClusterTopology, url: str) -> None:
        """``core`` is the client of the truth, which keeps ``topology`` and closes it. ``url`` is the cluster's."""
        self._core = core
        self._topology = topology
        self._make_client = partial(RedisClient, url, core.timeout_seconds, topology=topology)
        self._nodes: dict[HostPort, Node] = {}
        self._probing: asyncio.Task[None] | None = None
        self._closing: set[asyncio.Task[None]] = set()
        self.nodes_returned = 0
        self.follow_ups = Counter[str]()
        topology.on_table = self._follow_table

    @property
    def primaries(self) -> Sequence[RedisClient]:
        """A client for each primary, for a scan of all keys. The first one is that of the truth."""
        core_owner = self._topology.owner(CORE_SLOT)
        return [self._core, *(self._node(each).client for each in self._topology.primaries() if each != core_owner)]

    @property
    def unreachable_nodes(self) -> Sequence[HostPort]:
        """The primaries that do not answer, in order, as far as this process has used them.

        Commands for their keys fail at once until they do.
        """
        return sorted(node.address for node in self._nodes.values() if node.is_away)

    async def execute(self, *commands: Command) -> list[Any]:
        """Run commands on their nodes, and return their replies in order. Raises the API error of the first failure.

        The others have run nevertheless, unless their nodes failed too.
        """
        replies = await self.execute_each(*commands)
        for reply in replies:
            if isinstance(reply, ApiError):
                raise reply
        return replies

    async def execute_each(self, *commands: Command) -> list[Any]:
        """Run commands on their nodes. An `ApiError` stands in the place of the reply of each that failed.

        It is `Unavailable` if the node of the key did not answer or takes no writes now.
        """
        start, budget, seconds = time.monotonic(), timeout_budget.CURRENT.get(), self._core.remaining_seconds
        if seconds <= 0:
            return [unavailable_error()] * len(commands)
        try:
            replies = await self._run(commands, start + seconds)
        finally:
            if budget is not None:
                budget.charge(time.monotonic() - start, len(commands))
        return [to_api_error(reply) if isinstance(reply, ResponseError) else reply for reply in replies]

    async def close(self) -> None:
        """Close the connections to all nodes. The client of the truth stays open."""
        self._topology.on_table = lambda: None
        for task in (*self._closing, *([self._probing] if self._probing else [])):
            task.cancel()
            await asyncio.wait([task])
        for node in self._nodes.values():
            await node.client.close()

    async def _run(self, commands: Sequence[Command], deadline: float) -> list[Any]:
        replies: list[Any] = [None] * len(commands)
        groups = self._group(commands)
        if None in groups:
            await self._learn_owners(deadline)
            groups = self._group(commands)
        _fail(replies, groups.pop(None, ()))
        await _gather(
            [
                self._run_group(commands, replies, {Target(owner): indexes}, deadline)
                for owner, indexes in groups.items()
                if owner is not None
            ]
        )
        return replies

    def _group(self, commands: Sequence[Command]) -> dict[HostPort | None, list[int]]:
        """Return the indexes of the commands by the owner of their key. None stands for an unknown owner."""
        groups: dict[HostPort | None, list[int]] = defaultdict(list)
        find_owner = self._topology.owner
        for index, command in enumerate(commands):
            groups[find_owner(slot_of(str(command[1])))].append(index)
        return groups

    async def _learn_owners(self, deadline: float) -> None:
        """Ask the cluster which node owns which keys, unless it was asked just now."""
        with suppress(RedisError, OSError):
            async with asyncio.timeout(deadline - time.monotonic()):
                await self._topology.recent()
        self._topology.start_polling()

    async def _run_group(
        self, commands: Sequence[Command], replies: list[Any], groups: Mapping[Target, list[int]], deadline: float
    ) -> None:
        """Run the commands of one node. Until ``deadline``, send those that it refuses to the node that it names."""
        for attempt in count():
            waits = self.follow_ups["tryagain"]
            await _gather([self._send(commands, replies, to, each, deadline) for to, each in groups.items()])
            groups = self._find_refused(commands, replies, groups)
            if not groups:
                return
            if attempt or self.follow_ups["tryagain"] > waits:
                if time.monotonic() + PAUSE_SECONDS >= deadline:
                    _fail(replies, chain(*groups.values()))
                    return
                await asyncio.sleep(PAUSE_SECONDS)

    async def _send(
        self, commands: Sequence[Command], replies: list[Any], target: Target, indexes: list[int], deadline: float
    ) -> None:
        """Send some commands to one node once, and keep what it answers. If the call waits long, suspect the node."""
        node = self._node(target.node)
        packet = [commands[index] for index in indexes]
        if target.asking:
            packet = [each for command in packet for each in (ASKING, command)]
        alarm = asyncio.get_running_loop().call_later(SUSPECT_SHARE * self._core.timeout_seconds, self._suspect, node)
        try:
            if node.is_away:
                raise unavailable_error()
            found = await node.client.send(packet, deadline)
        except (Unavailable, NoReply) as error:
            self._suspect(node)
            _fail(replies, indexes, error)
        else:
            for index, reply in zip(indexes, found[1::2] if target.asking else found, strict=True):
                replies[index] = reply
        finally:
            alarm.cancel()

    def _find_refused(
        self, commands: Sequence[Command], replies: Sequence[Any], sent: Mapping[Target, Sequence[int]]
    ) -> Mapping[Target, list[int]]:
        """Return the indexes of the commands that must be sent again, by the target to which they go next.

        ``sent`` has the indexes of the commands that each target got, and ``replies`` has their replies. The commands
        of one key keep their order. So if a command is refused, all later commands of its key are sent again behind it.
        This holds even for a command that the node has run: the key may have moved to the node after the refusal.
        """
        refused: dict[Target, list[int]] = defaultdict(list)
        for target, indexes in sent.items():
            next_of_key: dict[str | bytes | int, Target] = {}
            for index in indexes:
                reply = replies[index]
                if not next_of_key and not isinstance(reply, ResponseError):
                    continue  # nearly always, so this is short
                key = commands[index][1]
                named = self._note_refusal(target, reply)
                following = next_of_key.get(key) or named
                if following is not None:
                    next_of_key[key] = following
                    refused[following].append(index)
        return refused

    def _note_refusal(self, target: Target, reply: Any) -> Target | None:
        """Return where a command goes next whose ``reply`` came from ``target``, and count the refusal.

        Return None if ``reply`` does not redirect the command: it is a result, or an error for the caller.
        """
        if isinstance(reply, TryAgainError):
            self.follow_ups["tryagain"] += 1
            return target
        if not isinstance(reply, AskError):
            return None
        host, port = reply.node_addr
        is_moved = isinstance(reply, MovedError)
        self.follow_ups["moved" if is_moved else "ask"] += 1
        # A node says `?` in place of a host that it does not know. A port without a host means the same host.
        named = target if host == "?" else Target((host or target.node[0], port), asking=not is_moved)
        if is_moved:
            self._topology.request_refresh(named.node)
        return named

    def _node(self, address: HostPort) -> Node:
        node = self._nodes.get(address)
        if node is None:
            node = self._nodes[address] = Node(address, self._make_client(node=address))
        return node

    def _suspect(self, node: Node) -> None:
        """Find out whether a node answers, unless that is being done."""
        node.is_suspect = True
        if self._probing is None or self._probing.done():
            self._probing = asyncio.create_task(self._probe(), name="probe of Redis nodes", context=Context())
            self._probing.add_done_callback(_log_failure)

    async def _probe(self) -> None:
        """Ask the suspected nodes until all of them answer or have left the table."""
        while suspects := [node for node in self._nodes.values() if node.is_suspect]:
            await asyncio.gather(*map(self._ping, suspects))
            await asyncio.sleep(0.25)

    async def _ping(self, node: Node) -> None:
        """Ask a node. If it is silent, the calls that wait for it fail.

        A silent node that is no primary by the table was named by a node that was late, and is forgotten.
        """
        try:
            await node.client.send((("PING",),), time.monotonic() + SUSPECT_SHARE * self._core.timeout_seconds)
        except (Unavailable, NoReply):
            if node.address not in self._topology.primaries():
                self._let_go(node)
            elif not node.is_away:
                node.is_away = True
                logger.warning("the Redis node %s:%d does not answer; requests for its keys fail", *node.address)
                await node.client.close()
                node.client = self._make_client(node=node.address)
            return
        if node.is_away and node.address in self._nodes:
            logger.warning("the Redis node %s:%d answers again", *node.address)
            self.nodes_returned += 1
        node.is_away = node.is_suspect = False

    def _follow_table(self) -> None:
        """Let go the nodes that are no primaries any more."""
        for node in [node for address, node in self._nodes.items() if address not in self._topology.primaries()]:
            self.nodes_returned += node.is_away
            self._let_go(node)

    def _let_go(self, node: Node) -> None:
        """Forget the client of a node, and close its connections when its last calls have ended.

        A later call to the node makes a new client.
        """
        if self._nodes.get(node.address) is node:
            del self._nodes[node.address]
            task = asyncio.create_task(self._close_later(node), name="closing of a Redis node")
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)

    async def _close_later(self, node: Node) -> None:
        try:
            await asyncio.sleep(self._core.timeout_seconds)
        finally:
            await node.client.close()


DerivedRedis = RedisClient | DerivedRouter
"""Runs commands on derived data, which the caller may safely repeat. The second word of each is its only key."""


def route_derived(core: RedisClient, url: str) -> DerivedRedis:
    """Return the interface to the derived data beside ``core``: a router in a cluster, otherwise ``core`` itself."""
    return core if core.topology is None else DerivedRouter(core, core.topology, url)


def _fail(replies: list[Any], indexes: Iterable[int], error: Exception | None = None) -> None:
    """Let `Unavailable` be the reply of the commands at these indexes, because of ``error``."""
    failure = error if isinstance(error, Unavailable) else unavailable_error()
    for index in indexes:
        replies[index] = failure


async def _gather(calls: Sequence[Coroutine[Any, Any, None]]) -> None:
    """Run calls at the same time. They raise nothing, so none goes on without an owner."""
    if len(calls) == 1:
        await calls[0]
    elif calls:
        await asyncio.gather(*calls)


def _log_failure(task: "asyncio.Task[None]") -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        logger.error("the probe of a Redis node failed", exc_info=error)
