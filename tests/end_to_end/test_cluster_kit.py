"""The kit that makes clusters does what its names say. Otherwise the tests of faults would prove nothing."""

from collections.abc import Iterator

import pytest
from redis.crc import key_slot

from stream_server.store import keys
from tests.redis_cluster import CORE_SLOT, PrivateCluster, layout
from tests.redis_process import newest

pytestmark = pytest.mark.extended


@pytest.fixture(scope="module")
def cluster() -> Iterator[PrivateCluster]:
    with PrivateCluster(newest()) as made:
        yield made


def test_the_layout_covers_each_slot_once_and_leaves_the_core_alone() -> None:
    shards = layout(4)
    assert shards[0] == [(CORE_SLOT, CORE_SLOT)]
    slots = sorted(slot for shard in shards for first, last in shard for slot in range(first, last + 1))
    assert slots == list(range(16_384))
    assert key_slot(keys.LOG.encode()) == CORE_SLOT


def test_a_failover_changes_the_owner_of_the_core(cluster: PrivateCluster) -> None:
    replica = cluster.rested_replica(cluster.owner())
    cluster.failover(replica)
    assert cluster.owner() is replica
    assert cluster.primaries()[0] is replica


def test_a_cut_replica_gets_no_data_and_still_hears_the_bus(cluster: PrivateCluster) -> None:
    primary = cluster.owner()
    (replica,) = cluster.replicas(primary)
    with replica.client() as listener:
        heard = listener.pubsub(ignore_subscribe_messages=True)
        heard.subscribe("cut")
        cluster.cut_replication(replica)
        primary.run("SET", "{core}:cut", "1")
        heard.get_message(timeout=10)  # the confirmation
        primary.run("PUBLISH", "cut", "heard")
        message = heard.get_message(timeout=10)
        assert message is not None
        assert message["data"] == b"heard"
        heard.close()
    assert replica.run("DBSIZE") == 0
    cluster.mend_replication(primary)
    assert replica.run("DBSIZE") == 1


def test_a_reshard_moves_slots_with_their_keys(cluster: PrivateCluster) -> None:
    cluster.flush()
    homes = [f"home:{{{uid}}}" for uid in range(20)]
    with cluster.client() as client:
        for home in homes:
            client.zadd(home, {"1": 1})
    _, source, target = cluster.primaries()
    slots = sorted({key_slot(home.encode()) for home in homes} & {*cluster.slots(source)})
    assert cluster.reshard(source, target, slots) == len(slots)
    assert source.run("DBSIZE") == 0
    assert target.run("DBSIZE") == 20
    cluster.agreed()


def test_a_killed_primary_is_replaced_and_comes_back_as_a_replica(cluster: PrivateCluster) -> None:
    old = cluster.owner()
    cluster.kill(old)
    new = cluster.promoted(old)
    cluster.start_again(old)
    cluster.agreed()
    assert cluster.replicas(new) == [old]
