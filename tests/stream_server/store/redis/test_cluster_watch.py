"""What `/readyz` says of a Redis Cluster."""

from collections.abc import Sequence
from typing import Any, cast

from stream_server.store.redis.client import RedisClient
from stream_server.store.redis.cluster_check import ClusterWatch
from stream_server.store.redis.connecting import HostPort


class HalfAway:
    """Derived data of which one node does not answer."""

    unreachable_nodes: Sequence[HostPort] = [("10.0.0.7", 6379)]


async def test_a_node_with_timelines_that_is_away_is_a_warning_and_no_fault() -> None:
    client = RedisClient("unix:///nowhere.sock", 1.0)
    watch = ClusterWatch(client, cast(Any, HalfAway()), 0)
    assert watch.fault == ""
    assert watch.all_warnings == ("10.0.0.7:6379 does not answer: its timelines cannot be read",)
    assert ClusterWatch(client, client, 0).all_warnings == ()
    await client.close()
