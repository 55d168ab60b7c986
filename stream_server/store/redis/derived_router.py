"""The router of derived data on a Redis Cluster: each command goes to the node that has its key.

redis-py's own client of a cluster would repeat commands as it likes, and after a failover it closes all its connections
again and again. Here the commands of one call leave in one packet for each node. Each packet goes on by itself if its
node refuses some commands, because their slots move. So a slow node delays its own keys only.

The time limit of a request and its turn among opening streams count a call once, however many nodes it needs.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from typing import Any, TypeVar

from redis.exceptions import AskError, MovedError, RedisError, ResponseError, TryAgainError

from stream_server.errors import ApiError, Unavailable
from stream_server.store.redis import timeout_budget
from stream_server.store.redis.client import RedisClient
from stream_server.store.redis.cluster_topology import ClusterTopology, slot_of
from stream_server.store.redis.derived import DerivedRedis
from stream_server.store.redis.derived_batch import Batch, Target, next_target
from stream_server.store.redis.derived_nodes import DerivedNodes
from stream_server.store.redis.guided_connection import HostPort
from stream_server.store.redis.lanes import Command
from stream_server.store.redis.refusals import to_api_error, unavailable_error

PAUSE_SECONDS = 0.02
"""Pause in seconds after TRYAGAIN, and before a command follows more than one node's word."""

Result = TypeVar("Result")


class DerivedRouter:
    """The derived data of a Redis Cluster. See `DerivedRedis`."""

    def __init__(self, core: RedisClient, topology: ClusterTopology, url: str) -> None:
        """``core`` is the client of the truth, which keeps ``topology`` and closes it. ``url`` is the cluster's."""
        self._core = core
        self._topology = topology
        self._nodes = DerivedNodes(core, topology, url)
        self._follow_ups = Counter[str]()

    @property
    def primaries(self) -> Sequence[RedisClient]:
        """The clients of all primaries, first that of the truth."""
        return self._nodes.primaries

    @property
    def unreachable_nodes(self) -> Sequence[HostPort]:
        """The nodes that do not answer, as far as this process has used them."""
        return self._nodes.away

    @property
    def nodes_returned(self) -> int:
        """How many times a node that did not answer came back, or another one took its place."""
        return self._nodes.returned

    @property
    def follow_ups(self) -> Mapping[str, int]:
        """How many commands were sent again, by the refusal of the node: ``moved``, ``ask``, ``tryagain``."""
        return self._follow_ups

    async def execute(self, *commands: Command) -> list[Any]:
        """Run commands on their nodes, and return their replies in order. Raises the API error of the first failure."""
        replies = await self.execute_each(*commands)
        for reply in replies:
            if isinstance(reply, ApiError):
                raise reply
        return replies

    async def execute_each(self, *commands: Command) -> list[Any]:
        """Run commands on their nodes. An `ApiError` stands in the place of the reply of each that failed."""
        return await self._execute_each(commands)

    async def use_server_of(self, key: str, use: Callable[[RedisClient], Awaitable[Result]]) -> Result:
        """Return the result of ``use`` for the client of the node that has a key. Follows MOVED once, but not ASK.

        Raises `Unavailable` if that node does not answer, or if the key is just moving to another node.
        """
        owner = await self._find_owner(key)
        try:
            try:
                return await self._use(owner, use)
            except MovedError as moved:
                named = next_target(Target(owner), moved)
                self._note_refusal(moved, named)
                return await self._use(named.node, use)
        except (RedisError, OSError) as error:
            raise unavailable_error(error) from error

    async def close(self) -> None:
        """Close the connections to all nodes. The client of the truth stays open."""
        await self._nodes.close()

    async def _execute_each(self, commands: Sequence[Command]) -> list[Any]:
        start, budget, seconds = time.monotonic(), timeout_budget.current_budget(), self._core.remaining_seconds
        if seconds <= 0:
            return [unavailable_error()] * len(commands)
        batch = Batch(commands)
        try:
            await self._run(batch, start + seconds)
        finally:
            if budget is not None:
                budget.charge(time.monotonic() - start, len(commands))
        return [to_api_error(reply) if isinstance(reply, ResponseError) else reply for reply in batch.replies]

    async def _run(self, batch: Batch, deadline: float) -> None:
        groups, unknown = self._group(batch)
        if unknown:
            await self._learn_owners(deadline)
            groups, unknown = self._group(batch)
        batch.fail(unknown, unavailable_error())
        await _gather([self._run_group(batch, target, each, deadline) for target, each in groups.items()])

    def _group(self, batch: Batch) -> tuple[dict[Target, list[int]], list[int]]:
        """Return the commands by node, and those whose node is unknown."""
        indexes_by_owner: dict[HostPort | None, list[int]] = {}
        find_owner = self._topology.owner
        for index, command in enumerate(batch.commands):
            owner = find_owner(slot_of(str(command[1])))
            found = indexes_by_owner.get(owner)
            if found is None:
                found = indexes_by_owner[owner] = []
            found.append(index)
        unknown = indexes_by_owner.pop(None, [])
        return {Target(owner): each for owner, each in indexes_by_owner.items() if owner is not None}, unknown

    async def _run_group(self, batch: Batch, target: Target, indexes: list[int], deadline: float) -> None:
        """Run the commands of one node, and follow its word until all have run or ``deadline`` has passed."""
        groups: Mapping[Target, list[int]] = {target: indexes}
        must_wait = False
        while True:
            await _gather([self._send(batch, to, each, deadline) for to, each in groups.items()])
            groups = batch.find_refused(groups)
            if not groups:
                return
            if self._note_refusals(batch, groups) or must_wait:
                if time.monotonic() + PAUSE_SECONDS >= deadline:
                    batch.fail(chain(*groups.values()), unavailable_error())
                    return
                await asyncio.sleep(PAUSE_SECONDS)
            must_wait = True

    async def _send(self, batch: Batch, target: Target, indexes: list[int], deadline: float) -> None:
        """Send some commands to one node once, and keep what it answers."""
        try:
            replies = await self._nodes.get(target.node).send(batch.packet(target, indexes), deadline)
        except Unavailable as error:
            batch.fail(indexes, error)
        else:
            batch.take_replies(target, indexes, replies)

    async def _use(self, owner: HostPort, use: Callable[[RedisClient], Awaitable[Result]]) -> Result:
        node = self._nodes.get(owner)
        with node.watched():
            return await use(node.client)

    async def _find_owner(self, key: str) -> HostPort:
        slot = slot_of(key)
        owner = self._topology.owner(slot)
        if owner is None:
            await self._learn_owners(time.monotonic() + self._core.remaining_seconds)
            owner = self._topology.owner(slot)
        if owner is None:
            raise unavailable_error()
        return owner

    async def _learn_owners(self, deadline: float) -> None:
        """Ask the cluster for its table, unless it was asked just now."""
        with suppress(RedisError, OSError):
            async with asyncio.timeout(deadline - time.monotonic()):
                await self._topology.recent()
        self._topology.start_polling()

    def _note_refusals(self, batch: Batch, following: Mapping[Target, list[int]]) -> bool:
        """Count the refusals, and let the table of the cluster be asked for. Return whether one was TRYAGAIN."""
        tried = self._follow_ups["tryagain"]
        for target, indexes in following.items():
            for index in indexes:
                self._note_refusal(batch.replies[index], target)
        return self._follow_ups["tryagain"] > tried

    def _note_refusal(self, reply: Any, target: Target) -> None:
        """Count a refusal. Commands that are sent again only to keep their order have another reply."""
        if isinstance(reply, MovedError):
            self._follow_ups["moved"] += 1
            self._topology.request_refresh(target.node)
        elif isinstance(reply, (AskError, TryAgainError)):
            self._follow_ups["ask" if isinstance(reply, AskError) else "tryagain"] += 1


def route_derived(core: RedisClient, url: str) -> DerivedRedis:
    """Return the interface to the derived data beside ``core``: a router in a cluster, otherwise ``core`` itself."""
    return core if core.topology is None else DerivedRouter(core, core.topology, url)


async def _gather(calls: Sequence[Coroutine[Any, Any, None]]) -> None:
    """Run calls at the same time. They raise nothing, so none goes on without an owner."""
    if len(calls) == 1:
        await calls[0]
    elif calls:
        await asyncio.gather(*calls)
