"""Guides of connections to a Redis Cluster: to the owner of the core's slot, to its replica, or to a given node."""

import random

from redis.exceptions import ConnectionError as RedisConnectionError

from stream_server.store.redis.cluster_topology import CORE_SLOT, ClusterTopology
from stream_server.store.redis.guided_connection import HostPort


class CoreOwnerGuide:
    """Guides connections to the primary that owns the core's slot."""

    def __init__(self, topology: ClusterTopology) -> None:
        self._topology = topology

    @property
    def address(self) -> HostPort | None:
        """The owner by the last answers. None during a failover, so no command goes to a primary that has failed."""
        return self._topology.core_owner

    async def resolve(self) -> HostPort:
        """Return the owner by an answer that is at most 0.1 s old. Raises redis-py's ConnectionError if none is."""
        await self._topology.recent()
        owner = self._topology.core_owner
        if owner is None:
            raise RedisConnectionError("no node of the cluster owns the core's slot")
        return owner

    def start_polling(self) -> None:
        """Follow failovers of the core's shard from now on."""
        self._topology.start_polling()


class CoreReplicaGuide:
    """Guides connections to a replica of the core's shard: the one in use, or else one of the preferred, or any.

    Of several, a random one is used, to spread the load.
    """

    def __init__(self, topology: ClusterTopology, preferred: tuple[HostPort, ...] = ()) -> None:
        """``preferred`` are nodes by the addresses that the cluster names. Those that are no such replica are left."""
        self._topology = topology
        self._preferred = preferred
        self._chosen: HostPort | None = None

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
            self._chosen = random.choice([each for each in self._preferred if each in replicas] or replicas)
        return self._chosen

    def start_polling(self) -> None:
        """Follow changes of the core's shard from now on, because a node that left it knows no more of the log."""
        self._topology.start_polling()


class NodeGuide:
    """Guides connections to one node, whatever it owns."""

    def __init__(self, address: HostPort) -> None:
        self.address = address

    async def resolve(self) -> HostPort:
        """Return the node's address."""
        return self.address

    def start_polling(self) -> None:
        """Do nothing: the owner of this guide follows the cluster."""
