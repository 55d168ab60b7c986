"""The Lua scripts on all nodes of the core's shard, so that a promoted replica knows them.

A replica does not get scripts from its primary. Without this, all processes would load all scripts at once after a
failover, while writes wait.
"""

import asyncio
from collections.abc import Sequence
from contextlib import aclosing, suppress

from redis.exceptions import RedisError

from stream_server.store.redis.cluster_topology import ClusterTopology
from stream_server.store.redis.guided_connection import HostPort

RETRY_SECONDS = 2.0
"""Pause in seconds before a node that did not take the scripts is tried again. It may be reading its data."""


class ShardScripts:
    """Loads scripts into each node that joins the core's shard, by a task of its own.

    Attributes:
        nodes: The nodes that have the scripts, as far as known.
    """

    def __init__(self, topology: ClusterTopology, texts: Sequence[str]) -> None:
        self._topology = topology
        self._texts = texts
        self._loading: asyncio.Task[None] | None = None
        self.nodes: set[HostPort] = set()

    def start(self) -> None:
        """Load the scripts into the nodes of the shard, and from now on into each new one, until :meth:`close`."""
        self._topology.on_core_shard = self._take_nodes
        self._take_nodes(self._topology.core_nodes)

    async def close(self) -> None:
        """Stop loading the scripts into the nodes."""
        self._topology.on_core_shard = _ignore_nodes
        if self._loading is not None:
            self._loading.cancel()
            await asyncio.wait([self._loading])

    def _take_nodes(self, nodes: tuple[HostPort, ...]) -> None:
        self.nodes &= set(nodes)  # a node that comes back may have been restarted
        if self._loading is None or self._loading.done():
            self._loading = asyncio.create_task(self._load_missing(), name="scripts of the core's shard")

    async def _load_missing(self) -> None:
        """Load the scripts into one node after another, until all nodes of the shard have them."""
        while missing := [node for node in self._topology.core_nodes if node not in self.nodes]:
            for node in missing:
                with suppress(RedisError, OSError, TimeoutError):
                    async with asyncio.timeout(self._topology.timeout_seconds):
                        await self._load(node)
            if not self.nodes.issuperset(missing):
                await asyncio.sleep(RETRY_SECONDS)

    async def _load(self, node: HostPort) -> None:
        async with aclosing(self._topology.open_client(node)) as client:
            pipeline = client.pipeline(transaction=False)
            for text in self._texts:
                pipeline.execute_command("SCRIPT", "LOAD", text)
            await pipeline.execute()
        if node in self._topology.core_nodes:
            self.nodes.add(node)


def _ignore_nodes(nodes: tuple[HostPort, ...]) -> None:
    """Do nothing: the ``on_core_shard`` of a closed store."""
