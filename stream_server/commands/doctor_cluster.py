"""The checks of ``doctor`` for a Redis Cluster: what is set up wrongly, and what to do."""

from stream_server.commands.check_result import CheckResult, advice, broken, good
from stream_server.store.redis.address import parse_cluster_url
from stream_server.store.redis.cluster_check import ClusterFinding, check_seeds

SET_UP_WELL = good("the cluster is set up well: the core is alone on its shard, and the nodes agree")


async def check_cluster_setup(url: str, timeout_seconds: float, write_replicas: int) -> list[CheckResult]:
    """Check the cluster of the Redis URL. Return [] for another URL. The results never contain its password."""
    seeds = parse_cluster_url(url)
    if seeds is None:
        return []
    found = await check_seeds(seeds, timeout_seconds, write_replicas)
    return [_to_result(finding) for finding in found] or [SET_UP_WELL]


def _to_result(finding: ClusterFinding) -> CheckResult:
    return broken(finding.sentence) if finding.is_grave else advice(finding.sentence)
