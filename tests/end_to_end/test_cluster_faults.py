"""Real servers on a Redis Cluster under load, and its faults one after another.

After each fault: every acknowledged post is on the log once, in its author's order; every stream has each of them once
and in order; what streams had of posts that were lost before anybody acknowledged them is told as a `gap`.
"""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

import pytest

from stream_server.store import keys
from stream_server.store.redis.cluster_topology import slot_of
from tests.end_to_end.cluster_world import ClusterWorld, Load, cluster_world
from tests.redis_cluster import CORE_SLOT, Node, PrivateCluster
from tests.waiting import PATIENCE, eventually

pytestmark = pytest.mark.extended

Fault = Callable[[ClusterWorld, Load, float], Awaitable[None]]

SHORT_SECONDS, FULL_SECONDS = 1.0, 30.0
"""Seconds of load before and after each fault."""

CUT_SECONDS = 5.0
"""A replica without data for more than ten node timeouts is not promoted (``cluster-replica-validity-factor``)."""


async def _planned_failover(world: ClusterWorld, load: Load, seconds: float) -> None:
    """A plain CLUSTER FAILOVER refuses no post for long and loses none."""
    old = world.cluster.owner()
    replica = await asyncio.to_thread(world.cluster.rested_replica, old)
    await asyncio.to_thread(world.cluster.failover, replica)
    await load.goes_on(seconds)
    assert world.cluster.owner() is not old


async def _killed_primary(world: ClusterWorld, load: Load, seconds: float) -> None:
    """Posts are refused until a replica is promoted."""
    old = world.cluster.owner()
    old.kill()
    await asyncio.to_thread(world.cluster.promoted, old)
    await load.goes_on(seconds)
    assert load.refused["unavailable"]
    await asyncio.to_thread(world.heal, [old])


async def _frozen_primary(world: ClusterWorld, load: Load, seconds: float) -> None:
    """The frozen primary wakes when another one is there. What it then confirms is lost: no server may believe it."""
    old = world.cluster.owner()
    old.pause()
    await asyncio.to_thread(world.cluster.promoted, old)
    old.resume()
    await load.goes_on(seconds)
    assert load.refused
    await eventually(lambda: old.info()["role"] == "slave", what="the old primary demoted")
    await asyncio.to_thread(world.heal)


async def _open_core_slot(world: ClusterWorld, load: Load, seconds: float) -> None:
    """While the core's slot is MIGRATING by mistake, each post is a 503, and no second log begins."""
    core, target, *_ = world.cluster.primaries()
    world.cluster.open_slot(CORE_SLOT, core, target)
    before = load.refused["unavailable"]
    await eventually(lambda: load.refused["unavailable"] > before + 20, what="refused posts")
    await eventually(partial(_all_ready, world, wanted=False), what="not ready")
    acknowledged = load.acknowledged
    await eventually(lambda: load.refused["unavailable"] > before + 40, what="more refused posts")
    assert load.acknowledged == acknowledged
    assert world.logs() == [core]
    await asyncio.to_thread(world.heal)
    await load.goes_on(seconds)
    await eventually(partial(_all_ready, world, wanted=True), what="ready again")


async def _all_ready(world: ClusterWorld, *, wanted: bool) -> bool:
    async with asyncio.timeout(PATIENCE):
        return all([await world.is_ready(server) is wanted for server in world.servers])


async def _dead_derived_shard(world: ClusterWorld, load: Load, seconds: float) -> None:
    """Posts go on while a shard of timelines is dead. When it is back, their jobs complete the timelines."""
    shard = await _derived_shard(world, load)
    nodes = [*world.cluster.replicas(shard), shard]
    refused = load.refused.copy()
    for node in nodes:
        node.kill()
    await load.goes_on(seconds)
    assert load.refused == refused
    assert await world.jobs() > 0
    said = f"127.0.0.1:{shard.port} does not answer: its timelines cannot be read"
    await eventually(lambda: world.warns(world.servers[0], said), what="a warning of the dead shard")
    await asyncio.to_thread(world.heal, nodes)
    await load.goes_on(seconds)


async def _derived_shard(world: ClusterWorld, load: Load) -> Node:
    """Return the primary that has the home of the first author."""
    home = keys.home_timeline(load.authors[0].uid)
    owner = world.cluster.owner(slot_of(home))
    assert owner.run("EXISTS", home)
    return owner


async def _moved_derived_slots(world: ClusterWorld, load: Load, seconds: float) -> None:
    """The slots of all homes of the authors move to another shard under load."""
    _, one, other, *_ = world.cluster.primaries()
    homes = {slot_of(keys.home_timeline(author.uid)) for author in load.authors}
    moved = 0
    for source, target in ((one, other), (other, one)):
        slots = sorted(homes & {*world.cluster.slots(source)})
        moved += await asyncio.to_thread(world.cluster.reshard, source, target, slots)
        homes -= {*slots}
    await load.goes_on(seconds)
    assert moved >= len(load.authors)
    await asyncio.to_thread(world.cluster.agreed)


async def _cut_replica(world: ClusterWorld, load: Load, seconds: float) -> None:
    """A replica gets no data, but hears all messages of the bus. The server that reads from it does not wait for it."""
    near, *_ = await eventually(partial(_heard_replicas, world.cluster), what="a server listens to a replica")
    near.run("CONFIG", "SET", "masteruser", "nobody", "masterauth", "x")
    near.run("CLIENT", "KILL", "TYPE", "master")
    await eventually(lambda: near.info()["master_link_status"] == "down", what="a broken link")
    last = near.info()["slave_repl_offset"]
    await load.goes_on(seconds)
    assert near.info()["slave_repl_offset"] == last
    near.run("CONFIG", "SET", "masteruser", "", "masterauth", "")
    await asyncio.to_thread(world.cluster.linked, near)


def _heard_replicas(cluster: PrivateCluster) -> list[Node]:
    """Return the replicas of the core that servers listen to."""
    return [node for node in cluster.replicas(cluster.owner()) if node.run("PUBSUB", "CHANNELS", "events:*")]


FAULTS: tuple[Fault, ...] = (
    _planned_failover, _open_core_slot, _moved_derived_slots, _dead_derived_shard, _cut_replica, _killed_primary,
    _frozen_primary,
)  # fmt: skip


async def _posts_only_at_the_primary(world: ClusterWorld, load: Load, seconds: float) -> None:
    """All replicas of the core are cut off, then its primary dies: what it alone acknowledged is lost.

    Each stream that had such a post gets a `gap`. This also shows that the test sees a loss.
    """
    old = world.cluster.owner()
    before = {one for author in load.authors for one in author.acknowledged}
    await asyncio.to_thread(world.cluster.cut_replication, world.cluster.replicas(old)[0])
    await load.goes_on(min(seconds, CUT_SECONDS))
    old.kill()
    alone = {one for author in load.authors for one in author.acknowledged} - before
    await asyncio.to_thread(world.cluster.promoted, old)
    await load.goes_on(seconds)
    await asyncio.to_thread(world.heal, [old])
    assert await load.finish(may_lose=True) == []
    assert 0 < len(load.lost) <= len(alone) + len(load.authors)


@pytest.mark.timeout(1500)
async def test_nothing_acknowledged_is_lost_in_the_faults_of_a_cluster(
    tmp_path: Path, subtests: pytest.Subtests, *, full: bool
) -> None:
    seconds = FULL_SECONDS if full else SHORT_SECONDS
    async with cluster_world(tmp_path) as world:
        for fault in FAULTS:
            with subtests.test(fault.__name__):
                async with Load(world, world.careful) as load:
                    await load.goes_on(seconds)
                    await fault(world, load, seconds)
                    assert await load.finish() == []
                await _assert_whole(world)
        with subtests.test(_posts_only_at_the_primary.__name__):
            async with Load(world, world.servers[2:]) as load:
                await load.goes_on(seconds)
                await _posts_only_at_the_primary(world, load, seconds)
            # The timelines are on other shards, which lost nothing, so they name statuses that are gone.
            assert {finding.kind for finding in await world.repair_findings(fix=True)} == {"timeline"}
            await _assert_whole(world)


async def _assert_whole(world: ClusterWorld) -> None:
    assert await world.repair_findings() == []
    assert world.logs() == [world.cluster.owner()]
