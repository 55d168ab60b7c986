"""The nodes of a Redis Cluster with derived data: one client for each address, made when it is first needed.

A client is closed when its node has left the table of the cluster, some time later: until then its calls end.
"""

import asyncio
from collections.abc import Sequence
from functools import partial

from stream_server.store.redis.client import RedisClient
from stream_server.store.redis.cluster_topology import CORE_SLOT, ClusterTopology
from stream_server.store.redis.derived_node import DerivedNode
from stream_server.store.redis.guided_connection import HostPort


class DerivedNodes:
    """The nodes in use. They share the table of the cluster with the client of the truth.

    Attributes:
        returned: How many times a node that did not answer came back, or left the table because another replaced it.
    """

    def __init__(self, core: RedisClient, topology: ClusterTopology, url: str) -> None:
        """``url`` is that of the cluster."""
        self._core = core
        self._topology = topology
        self._make_client = partial(RedisClient, url, core.timeout_seconds, topology=topology)
        self._nodes: dict[HostPort, DerivedNode] = {}
        self._closing: set[asyncio.Task[None]] = set()
        self.returned = 0
        topology.on_table = self._follow_table

    def get(self, address: HostPort) -> DerivedNode:
        """Return the node at an address."""
        node = self._nodes.get(address)
        if node is None:
            node = DerivedNode(address, partial(self._make_client, node=address), self._count_return)
            node.was_listed = address in self._topology.primaries()
            self._nodes[address] = node
        return node

    @property
    def away(self) -> Sequence[HostPort]:
        """The addresses of the primaries that do not answer, in order."""
        return sorted(address for address, node in self._nodes.items() if node.is_away and node.was_listed)

    @property
    def primaries(self) -> list[RedisClient]:
        """A client for each primary. The first one is that of the truth."""
        core_owner = self._topology.owner(CORE_SLOT)
        others = [self.get(each).client for each in self._topology.primaries() if each != core_owner]
        return [self._core, *others]

    async def close(self) -> None:
        """Close all connections, also those that are being closed."""
        self._topology.on_table = _ignore_table
        for task in (*self._closing,):
            task.cancel()
            await asyncio.wait([task])
        for node in self._nodes.values():
            await node.close()

    def _follow_table(self) -> None:
        """Let go the nodes that are no primaries any more. A node that gets its first slot is not one yet.

        A node that is away and was none is an address by the word of a node that was late.
        """
        primaries = set(self._topology.primaries())
        for address, node in [*self._nodes.items()]:
            if address in primaries:
                node.was_listed = True
            elif node.was_listed or node.is_away:
                del self._nodes[address]
                self.returned += node.is_away and node.was_listed
                task = asyncio.create_task(self._close_later(node), name="closing of a Redis node")
                self._closing.add(task)
                task.add_done_callback(self._closing.discard)

    async def _close_later(self, node: DerivedNode) -> None:
        """Close a node when its last calls have ended. A silent one ends them itself."""
        try:
            await asyncio.sleep(self._core.timeout_seconds)
        finally:
            await node.close()

    def _count_return(self) -> None:
        self.returned += 1


def _ignore_table() -> None:
    """Do nothing: the ``on_table`` of a closed store."""
