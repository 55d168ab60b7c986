"""Derived data on a real Redis Cluster: the same as on one Redis, while slots move, and while a shard is dead."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from redis.crc import key_slot

from stream_server.errors import Unavailable
from stream_server.store import keys
from stream_server.store.pagination import PageRequest
from stream_server.store.redis.derived import DerivedRouter
from stream_server.store.redis.script_settings import SizeLimits
from stream_server.store.store import Store
from tests.redis_cluster import Node, PrivateCluster
from tests.redis_process import newest
from tests.stream_server.store.derived_deeds import USERS, Deeds
from tests.stream_server.store.job_queue import job_workers
from tests.stream_server.store.people import People, new_key, open_store
from tests.stream_server.store.scenes import ids
from tests.waiting import eventually

pytestmark = pytest.mark.extended

SMALL_PAGES = SizeLimits(fanout_batch_size=4)
"""A post has several pages of readers."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[PrivateCluster]:
    with PrivateCluster(newest(), replicas=0) as made:
        yield made


@pytest.fixture
async def store(cluster: PrivateCluster) -> AsyncIterator[Store]:
    cluster.flush()
    async with open_store(cluster.url, size_limits=SMALL_PAGES) as made:
        yield made


def router_of(store: Store) -> DerivedRouter:
    assert isinstance(store._derived, DerivedRouter)
    return store._derived


def make_due(cluster: PrivateCluster) -> int:
    """Make all jobs due now, as if every lease and pause were over. Returns the number of jobs."""
    core = cluster.owner()
    jobs = core.run("ZRANGE", "{core}:due", 0, -1)
    for job in jobs:
        core.run("ZADD", "{core}:due", 0, job.decode())
    return len(jobs)


async def drain(store: Store, cluster: PrivateCluster) -> None:
    """Run all jobs to their end."""
    workers = job_workers(store)

    async def is_empty() -> bool:
        await workers.run_until_empty()
        return make_due(cluster) == 0

    await eventually(is_empty, what="an empty queue")


async def test_derived_data_are_those_of_one_redis(store: Store, cluster: PrivateCluster, redis_url: str) -> None:
    on_cluster = Deeds(store)
    await on_cluster.do()
    await drain(store, cluster)
    async with open_store(redis_url) as single:
        on_one = Deeds(single)
        await on_one.do()
        await job_workers(single).run_until_empty()
        assert await on_cluster.picture() == await on_one.picture()
    assert await store.repair.run(fix=False) == []
    homes = [key_slot(keys.home_timeline(uid).encode()) for uid in on_cluster.uids]
    assert {cluster.owner(slot) for slot in homes} == set(cluster.primaries()[1:]), "all shards have homes"


async def test_nothing_is_lost_while_slots_move(store: Store, cluster: PrivateCluster) -> None:
    people, posted = People(store), list[str]()
    author, *readers = await people.users(USERS)
    for reader in readers:
        await store.follows.follow(reader, author, new_key())
    source = _owner(cluster, readers[0])
    target = next(node for node in cluster.primaries()[1:] if node is not source)
    slots = cluster.slots(source)
    moving = [slot for slot in map(_home_slot, readers) if slot in slots]
    others = [slot for slot in slots if slot not in moving][:40]
    resharding = asyncio.create_task(asyncio.to_thread(cluster.reshard, source, target, [*moving, *others]))
    while not resharding.done():
        posted.append((await people.status(author))["id"])
    await resharding
    posted += await _post_until_moved(store, cluster, author, moving[0])
    await drain(store, cluster)
    for reader in readers:
        assert _home(cluster, reader) == posted
    assert await store.repair.run(fix=False) == []


async def test_a_key_that_is_not_at_its_owner_any_more_is_found_by_asking(
    store: Store, cluster: PrivateCluster
) -> None:
    """The slot is open: the new home begins at the target, and the old one is moved between two posts."""
    people = People(store)
    author, reader = await people.users(2)
    await store.follows.follow(reader, author, new_key())
    slot = _home_slot(reader)
    source = cluster.owner(slot)
    target = next(node for node in cluster.primaries()[1:] if node is not source)
    first = (await people.status(author))["id"]
    cluster.open_slot(slot, source, target)
    second = (await people.status(author))["id"]
    assert router_of(store).follow_ups["ask"] == 0
    source.run("MIGRATE", "127.0.0.1", target.port, keys.home_timeline(reader), 0, 5000)
    third = (await people.status(author))["id"]
    assert router_of(store).follow_ups["ask"] > 0
    assert ids(await store.timelines.read_home(reader, PageRequest(10))) == [third, second, first]
    for node in (target, source):
        node.run("CLUSTER", "SETSLOT", slot, "NODE", target.id)
    later = await _post_until_moved(store, cluster, author, slot)
    assert ids(await store.timelines.read_home(reader, PageRequest(100))) == [*later[::-1], third, second, first]
    assert _home(cluster, reader) == [first, second, third, *later]


async def test_a_dead_shard_fails_its_own_users_only_and_nothing_is_missing_later(
    store: Store, cluster: PrivateCluster
) -> None:
    """The author's readers are several pages, and each page has readers on the dead shard."""
    people, posted = People(store), list[str]()
    author, *readers = await people.users(2 * USERS)
    for reader in readers:
        await store.follows.follow(reader, author, new_key())
    dead, router = cluster.primaries()[1], router_of(store)
    lost = [reader for reader in readers if _owner(cluster, reader) is dead]
    alive = [reader for reader in readers if reader not in lost]
    dead.kill()
    posted.append((await people.status(author))["id"])
    await eventually(lambda: router.unreachable_nodes == [("127.0.0.1", dead.port)])
    posted.append((await people.status(author))["id"])
    await store.statuses.delete(author, (await people.status(author))["id"], new_key())
    await _run_jobs_for_a_while(store, cluster)
    for reader in alive:
        assert ids(await store.timelines.read_home(reader, PageRequest(10))) == posted[::-1]
    for reader in lost:
        with pytest.raises(Unavailable):
            await store.timelines.read_home(reader, PageRequest(10))
    count = await store.rate_counters.add("posts_per_minute", alive[0], 1, 60)
    assert count.value == 1
    with pytest.raises(Unavailable):
        await store.rate_counters.add("posts_per_minute", lost[0], 1, 60)
    assert await store.job_queue.list_parked()
    await _return(store, cluster, dead)
    for reader in readers:
        assert ids(await store.timelines.read_home(reader, PageRequest(10))) == posted[::-1]
    assert await store.repair.run(fix=False) == []
    assert router.nodes_returned == 1


async def test_a_replica_takes_the_place_of_a_dead_shard(store: Store, cluster: PrivateCluster) -> None:
    people, posted = People(store), list[str]()
    author, *readers = await people.users(USERS)
    for reader in readers:
        await store.follows.follow(reader, author, new_key())
    dead, router = _owner(cluster, readers[0]), router_of(store)
    replica = await asyncio.to_thread(_add_replica, cluster, dead)
    posted.append((await people.status(author))["id"])
    await drain(store, cluster)
    await eventually(lambda: _has_all_homes(replica, cluster, dead, readers), what="a replica with the homes")
    dead.kill()

    async def is_back() -> bool:
        posted.append((await people.status(author))["id"])
        return router.nodes_returned > 0

    await eventually(is_back, what="a promotion that the router notices")
    assert router.unreachable_nodes == []
    await job_workers(store).unpark_after_outage()
    await drain(store, cluster)
    for reader in readers:
        assert _home(cluster, reader) == posted
    assert {_owner(cluster, reader) for reader in readers} >= {replica}
    assert await store.repair.run(fix=False) == []
    await asyncio.to_thread(dead.start)
    await asyncio.to_thread(cluster.agreed)


def _add_replica(cluster: PrivateCluster, primary: Node) -> Node:
    node = cluster.add_node()
    node.run("CLUSTER", "REPLICATE", primary.id)
    cluster.linked(node)
    cluster.agreed()
    return node


def _has_all_homes(replica: Node, cluster: PrivateCluster, primary: Node, readers: list[str]) -> bool:
    """Return whether a replica has as many homes as its primary, all with a status."""
    count = sum(_owner(cluster, reader) is primary for reader in readers)
    return int(replica.run("DBSIZE")) >= count > 0


async def _run_jobs_for_a_while(store: Store, cluster: PrivateCluster) -> None:
    """Run jobs, without their pauses, until what fails is parked and nothing else is left."""
    workers = job_workers(store)

    async def has_come_to_rest() -> bool:
        await workers.run_until_empty()
        return make_due(cluster) == 0

    await eventually(has_come_to_rest, what="jobs that are done or parked")


async def _return(store: Store, cluster: PrivateCluster, dead: Node) -> None:
    """Start a shard again, and let the job workers notice it."""
    workers = job_workers(store)
    await asyncio.to_thread(dead.start)
    await asyncio.to_thread(cluster.agreed)
    await eventually(lambda: not router_of(store).unreachable_nodes)
    await workers.unpark_after_outage()
    await drain(store, cluster)


async def _post_until_moved(store: Store, cluster: PrivateCluster, author: str, slot: int) -> list[str]:
    """Move a slot to and fro, with a post after each move, until a post meets MOVED. Returns the ids of the posts.

    The router asks for the owners of all slots every 0.1 s, so on a slow machine it may know a move before the post.
    """
    router, posted = router_of(store), list[str]()
    first, second = cluster.primaries()[1:]
    met = router.follow_ups["moved"]

    async def has_met_moved() -> bool:
        source, target = (first, second) if cluster.owner(slot) is first else (second, first)
        cluster.reshard(source, target, [slot])
        posted.append((await People(store).status(author))["id"])
        return router.follow_ups["moved"] > met

    await eventually(has_met_moved, what="a post that is faster than the question for the owners")
    return posted


def _home_slot(uid: str) -> int:
    return key_slot(keys.home_timeline(uid).encode())


def _owner(cluster: PrivateCluster, uid: str) -> Node:
    return cluster.owner(_home_slot(uid))


def _home(cluster: PrivateCluster, uid: str) -> list[str]:
    """The home timeline as its shard has it, oldest first."""
    found: Any = _owner(cluster, uid).run("ZRANGE", keys.home_timeline(uid), 0, -1)
    return [each.decode() for each in found]
