"""What `/readyz` says of a Redis Cluster."""

import random
from collections.abc import Sequence
from typing import Any, cast

from stream_server.jobs.write_guard import ClusterWatch
from stream_server.store.redis.client import RedisClient
from stream_server.store.redis.cluster_check import ClusterHealth
from stream_server.store.redis.guided_connection import HostPort


class HalfAway:
    """Derived data of which one node does not answer."""

    unreachable_nodes: Sequence[HostPort] = [("10.0.0.7", 6379)]


async def test_a_node_with_timelines_that_is_away_is_a_warning_and_no_fault() -> None:
    client = RedisClient("unix:///nowhere.sock", 1.0)
    watch = ClusterWatch(ClusterHealth(client, 0, cast(Any, HalfAway())), random.Random(1))
    assert watch.fault == ""
    assert watch.detail() == {"warnings": ("10.0.0.7:6379 does not answer: its timelines cannot be read",)}
    assert ClusterWatch(ClusterHealth(client, 0, client), random.Random(1)).detail() == {}
    await client.close()
