"""Whether the core of the server's own cluster takes writes, and what is set up wrongly in the cluster."""

from stream_server.errors import ApiError
from stream_server.store.redis.client import RedisClient
from stream_server.store.redis.cluster_check import ClusterFinding, check_seeds, is_core_open
from stream_server.store.redis.cluster_node import parse_row
from stream_server.store.redis.derived import DerivedRedis

NOT_OWNED = "no node of the Redis Cluster serves the core now"
CORE_OPEN = "the core's slot of the Redis Cluster is being moved"


class ClusterHealth:
    """Asks the nodes of the cluster of one client. Without a cluster it knows nothing, and nothing is wrong."""

    def __init__(self, client: RedisClient, write_replicas: int, derived: DerivedRedis) -> None:
        """``write_replicas`` is the number of replicas that must acknowledge each write."""
        self._client = client
        self._derived = derived
        self._topology = client.topology
        self._write_replicas = write_replicas

    @property
    def is_cluster(self) -> bool:
        """Whether the data are in a cluster."""
        return self._topology is not None

    @property
    def has_owner(self) -> bool:
        """Whether a node owns the core's slot by the last answers, and no failover goes on."""
        return self._topology is None or self._topology.core_owner is not None

    @property
    def unreachable_nodes(self) -> list[str]:
        """The nodes with derived data that do not answer, as host:port, as far as this process has used them."""
        return [f"{host}:{port}" for host, port in self._derived.unreachable_nodes]

    async def is_core_open(self) -> bool:
        """Ask the core's owner whether its slot is being moved, so that it refuses writes. One small command.

        False if it does not answer, because then the feed notices it.
        """
        try:
            (table,) = await self._client.execute(("CLUSTER", "NODES"))
        except ApiError:
            return False
        rows = map(parse_row, table.decode().splitlines())
        return any(is_core_open(row) for row in rows if "myself" in row.flags)

    async def find_faults(self) -> list[ClusterFinding]:
        """Ask all primaries what is set up wrongly."""
        if self._topology is None:
            return []
        return await check_seeds(self._topology.service, self._topology.timeout_seconds, self._write_replicas)
