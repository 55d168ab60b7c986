"""The checks of ``doctor`` for a Redis Cluster: what is set up wrongly, and what to do."""

from stream_server.commands.check_result import CheckResult, advice, broken, good
from stream_server.store.redis.address import parse_cluster_url
from stream_server.store.redis.cluster_check import check_cluster
from stream_server.store.redis.cluster_topology import ClusterTopology

SET_UP_WELL = good("the cluster is set up well: the core is alone on its shard, and the nodes agree")


async def check_cluster_setup(url: str, timeout_seconds: float, write_replicas: int) -> list[CheckResult]:
    """Check the cluster of the Redis URL. Return [] for another URL. The results never contain its password."""
    seeds = parse_cluster_url(url)
    if seeds is None:
        return []
    found = await check_cluster(ClusterTopology(seeds, timeout_seconds), write_replicas)
    return [broken(each.sentence) if each.is_grave else advice(each.sentence) for each in found] or [SET_UP_WELL]
