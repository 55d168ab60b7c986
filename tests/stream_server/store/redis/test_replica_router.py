"""The choice of the server from which the log is read: a replica that keeps up, else the primary."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from stream_server.store.redis.client import RedisClient
from stream_server.store.redis.replica_router import MAX_LAG_ENTRIES, RETRY_PAUSE_SECONDS, ReplicaRouter
from stream_server.store.social.statuses import StatusDraft
from stream_server.store.store import Store
from tests.redis_process import RedisProcess
from tests.stream_server.store.people import People, new_key
from tests.stream_server.store.replicas import entries, linked, replication, run, servers
from tests.waiting import PATIENCE, eventually

FIRST, LONGEST = RETRY_PAUSE_SECONDS


class Clock:
    """A clock that moves only by assignment."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Pair:
    """A primary and its replica, with the router over both and the router's clock."""

    def __init__(self, primary: RedisProcess, replica: RedisProcess) -> None:
        self.primary, self.replica = primary, replica
        self.links = RedisClient(primary.url, PATIENCE), RedisClient(replica.url, PATIENCE)
        self.clock = Clock()
        self.router = ReplicaRouter(*self.links, monotonic=self.clock)

    async def link(self) -> None:
        self.replica.replica_of(self.primary)
        await linked(self.replica)

    async def close(self) -> None:
        await self.router.close()
        await self.links[0].close()


@pytest.fixture
async def pair(redis_server: RedisProcess) -> AsyncIterator[Pair]:
    with servers(Path(redis_server._command[0]), 2) as (primary, replica):
        made = Pair(primary, replica)
        await made.link()
        yield made
        await made.close()


async def test_a_replica_is_used_only_after_a_check(pair: Pair) -> None:
    router, (primary, replica) = pair.router, pair.links
    assert (router.current, router.is_avoiding_replica) == (primary, True)
    assert await router.try_replica(0)
    assert (router.current, router.is_avoiding_replica) == (replica, False)
    assert not await router.try_replica(0)
    assert router.current is replica


async def test_the_primary_is_used_if_no_replica_is_configured(pair: Pair) -> None:
    router = ReplicaRouter(pair.links[0])
    router.fall_back_to_primary()
    assert not router.is_avoiding_replica
    assert not await router.try_replica(0)
    assert router.current is pair.links[0]


async def test_the_pause_doubles_with_each_failure_of_the_replica(pair: Pair) -> None:
    """5 s, doubled up to a minute. A replica that served for a minute begins anew."""
    router, clock = pair.router, pair.clock
    assert await router.try_replica(0)
    for pause in (FIRST, 10.0, 20.0, 40.0, LONGEST, LONGEST):
        router.fall_back_to_primary()
        router.fall_back_to_primary()  # a second call changes nothing
        clock.now += pause - 0.5
        assert not await router.try_replica(0)
        clock.now += 1
        assert await router.try_replica(0)
    clock.now += LONGEST
    router.fall_back_to_primary()
    clock.now += FIRST
    assert await router.try_replica(0)


async def test_a_failed_check_of_the_replica_also_starts_a_pause(pair: Pair) -> None:
    pair.replica.kill()
    assert not await pair.router.try_replica(0)
    pair.replica.start()
    await pair.link()
    assert not await pair.router.try_replica(0)
    pair.clock.now += FIRST
    assert await pair.router.try_replica(0)


async def test_a_replica_without_its_primary_is_not_used(pair: Pair) -> None:
    run(pair.replica, "REPLICAOF", "127.0.0.1", "1")
    found = replication(pair.replica)
    assert (found["role"], found["master_link_status"]) == ("slave", "down")
    assert found["master_replid"] == replication(pair.primary)["master_replid"]
    assert not await pair.router.try_replica(0)


async def test_no_replica_is_used_while_the_primary_is_down(pair: Pair) -> None:
    pair.primary.kill()
    assert not await pair.router.try_replica(0)


async def test_a_replica_that_lags_is_not_used(pair: Pair) -> None:
    store = Store(pair.primary.url, timeout_seconds=PATIENCE)
    await store.open()
    ann = await People(store).user("Ann")
    await store.statuses.create(ann, StatusDraft(message="x"), new_key())
    await store.close()
    await eventually(lambda: entries(pair.replica) == 1, what="the post on the replica")
    assert not await pair.router.try_replica(2 + MAX_LAG_ENTRIES)
    pair.clock.now += FIRST
    assert await pair.router.try_replica(1 + MAX_LAG_ENTRIES)


async def test_a_promoted_replica_is_not_used(pair: Pair) -> None:
    run(pair.replica, "REPLICAOF", "NO", "ONE")
    assert replication(pair.replica)["role"] == "master"
    assert not await pair.router.try_replica(0)


async def test_a_replica_of_another_primary_is_not_used(pair: Pair, redis_server: RedisProcess) -> None:
    with servers(Path(redis_server._command[0]), 1) as (stranger,):
        pair.replica.replica_of(stranger)
        await eventually(lambda: replication(pair.replica)["master_replid"] == replication(stranger)["master_replid"])
        await linked(pair.replica)
        assert not await pair.router.try_replica(0)


async def test_the_store_writes_to_the_primary_and_reads_the_log_from_the_replica(pair: Pair) -> None:
    urls = pair.primary.url, pair.replica.url
    store = Store(urls[0], timeout_seconds=PATIENCE, replica_urls=urls[1])
    await store.open()
    assert await store.log.replica_router.try_replica(0)
    ann = await People(store).user("Ann")
    await store.statuses.create(ann, StatusDraft(message="x"), new_key())
    await eventually(lambda: entries(pair.replica) == 1, what="the post on the replica")
    run(pair.replica, "CONFIG", "RESETSTAT")
    assert len(await store.log.read("0-0", 10)) == 1
    assert "cmdstat_xrange" in run(pair.replica, "INFO", "commandstats")
    await store.close()
    assert not store.log.replica_router.is_avoiding_replica


async def test_in_a_cluster_a_replica_without_a_heard_entry_is_left(pair: Pair) -> None:
    router, (primary, replica) = pair.router, pair.links
    run(pair.primary, "HSET", "{core}:meta", "n", "5")
    await eventually(lambda: run(pair.replica, "HGET", "{core}:meta", "n") == b"5", what="a copy")
    assert await router.try_replica(0)
    await router.leave_if_behind(6)
    assert router.current is replica  # elsewhere the messages themselves are late then
    router.is_in_cluster = True
    await router.leave_if_behind(5)
    assert router.current is replica
    await router.leave_if_behind(6)
    assert (router.current, router.is_avoiding_replica) == (primary, True)


async def test_in_a_cluster_a_replica_that_does_not_answer_is_left(pair: Pair) -> None:
    router = pair.router
    router.is_in_cluster = True
    assert await router.try_replica(0)
    pair.replica.stop()
    await router.leave_if_behind(0)
    assert router.is_avoiding_replica
    await router.leave_if_behind(0)  # the primary is not asked


async def test_in_a_cluster_entries_that_the_replica_lacks_are_read_from_the_primary(pair: Pair) -> None:
    store = Store(pair.primary.url, timeout_seconds=PATIENCE, replica_urls=pair.replica.url)
    await store.open()
    author, router = await People(store).user("Ann"), store.log.replica_router
    assert await router.try_replica(0)
    run(pair.replica, "REPLICAOF", "NO", "ONE")
    await store.statuses.create(author, StatusDraft(message="x"), new_key())
    head = await store.log.head()
    for is_in_cluster in (True, False):
        router.is_in_cluster = is_in_cluster
        expected = [head] if is_in_cluster else []  # elsewhere it is not heard before the replica has it
        assert [entry.position for entry in await store.log.read("0-0", 10)] == expected
        assert [entry.position for entry in await store.log.read_back(head, 1)] == expected
    await store.close()
