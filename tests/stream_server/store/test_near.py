"""Where the log is heard and read: a replica that keeps up, else the primary."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from stream_server.store.idempotency import IdempotencyKey
from stream_server.store.redis.client import RedisClient
from stream_server.store.redis.replica_router import MAX_LAG_ENTRIES, RETRY_PAUSE_SECONDS, ReplicaRouter
from stream_server.store.social.statuses import StatusDraft
from stream_server.store.store import Store
from tests.redis_process import RedisProcess
from tests.stream_server.store.people import People
from tests.stream_server.store.replicas import entries, linked, replication, run, servers
from tests.waiting import PATIENCE, eventually

FIRST, LONGEST = RETRY_PAUSE_SECONDS


class Clock:
    """A clock that stands until it is moved."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Pair:
    """A primary and its replica, and both as Near sees them, with the clock that it goes by."""

    def __init__(self, primary: RedisProcess, replica: RedisProcess) -> None:
        self.primary, self.replica = primary, replica
        self.links = RedisClient(primary.url, PATIENCE), RedisClient(replica.url, PATIENCE)
        self.clock = Clock()
        self.near = ReplicaRouter(*self.links, monotonic=self.clock)

    async def link(self) -> None:
        """The replica follows the primary."""
        self.replica.replica_of(self.primary)
        await linked(self.replica)

    async def close(self) -> None:
        """Close the connections."""
        await self.near.close()
        await self.links[0].close()


@pytest.fixture
async def pair(redis_server: RedisProcess) -> AsyncIterator[Pair]:
    """A replica that is linked, with nothing written yet."""
    with servers(Path(redis_server._command[0]), 2) as (primary, replica):
        made = Pair(primary, replica)
        await made.link()
        yield made
        await made.close()


async def test_a_replica_is_used_once_it_was_looked_at(pair: Pair) -> None:
    """Not before: it may be anybody's. Asked again, nothing changes."""
    near, (primary, replica) = pair.near, pair.links
    assert (near.current, near.is_avoiding_replica) == (primary, True)
    assert await near.try_replica(0)
    assert (near.current, near.is_avoiding_replica) == (replica, False)
    assert not await near.try_replica(0)
    assert near.current is replica


async def test_without_a_replica_there_is_only_the_primary(pair: Pair) -> None:
    """Nothing is left, and nobody comes back."""
    near = ReplicaRouter(pair.links[0])
    near.fall_back_to_primary()
    assert not near.is_avoiding_replica
    assert not await near.try_replica(0)
    assert near.current is pair.links[0]


async def test_a_replica_that_failed_is_left_alone_for_longer_each_time(pair: Pair) -> None:
    """5 s, doubled up to a minute; one that was used for a minute begins anew."""
    near, clock = pair.near, pair.clock
    assert await near.try_replica(0)
    for pause in (FIRST, 10.0, 20.0, 40.0, LONGEST, LONGEST):
        near.fall_back_to_primary()
        near.fall_back_to_primary()  # who was left cannot be left again
        clock.now += pause - 0.5
        assert not await near.try_replica(0)
        clock.now += 1
        assert await near.try_replica(0)
    clock.now += LONGEST
    near.fall_back_to_primary()
    clock.now += FIRST
    assert await near.try_replica(0)


async def test_a_replica_that_still_fails_rests_for_longer_too(pair: Pair) -> None:
    """It is not asked at every beat: a question to one that is gone costs a time-out."""
    pair.replica.kill()
    assert not await pair.near.try_replica(0)
    pair.replica.start()
    await pair.link()
    assert not await pair.near.try_replica(0)
    pair.clock.now += FIRST
    assert await pair.near.try_replica(0)


async def test_a_replica_whose_own_link_is_down_is_not_used(pair: Pair) -> None:
    """It answers, from a log that stands still; also while nothing was written that it could lack."""
    run(pair.replica, "REPLICAOF", "127.0.0.1", "1")
    found = replication(pair.replica)
    assert (found["role"], found["master_link_status"]) == ("slave", "down")
    assert found["master_replid"] == replication(pair.primary)["master_replid"]
    assert not await pair.near.try_replica(0)


async def test_without_the_primary_no_replica_is_used(pair: Pair) -> None:
    """Nobody is there to say which history is ours."""
    pair.primary.kill()
    assert not await pair.near.try_replica(0)


async def test_a_replica_that_is_behind_is_not_used(pair: Pair) -> None:
    """A little is what was written since the primary's end was asked for."""
    store = Store(pair.primary.url, timeout_seconds=PATIENCE)
    await store.open()
    ann = await People(store).user("Ann")
    await store.statuses.create(ann, StatusDraft(message="x"), IdempotencyKey.generate())
    await store.close()
    await eventually(lambda: entries(pair.replica) == 1, what="the post on the replica")
    assert not await pair.near.try_replica(2 + MAX_LAG_ENTRIES)
    pair.clock.now += FIRST
    assert await pair.near.try_replica(1 + MAX_LAG_ENTRIES)


async def test_a_replica_that_was_promoted_is_not_trusted(pair: Pair) -> None:
    """It takes writes of its own: its numbers go on, with another history."""
    run(pair.replica, "REPLICAOF", "NO", "ONE")
    assert replication(pair.replica)["role"] == "master"
    assert not await pair.near.try_replica(0)


async def test_a_replica_of_another_primary_is_not_trusted(pair: Pair, redis_server: RedisProcess) -> None:
    """Its link is up, and it is as long as it likes."""
    with servers(Path(redis_server._command[0]), 1) as (stranger,):
        pair.replica.replica_of(stranger)
        await eventually(
            lambda: replication(pair.replica)["master_replid"] == replication(stranger)["master_replid"], seconds=60
        )
        await linked(pair.replica)
        assert not await pair.near.try_replica(0)


async def test_a_store_with_a_replica_writes_to_the_primary(pair: Pair) -> None:
    """And reads the log where it is told to."""
    urls = pair.primary.url, pair.replica.url
    store = Store(urls[0], timeout_seconds=PATIENCE, replica_url=urls[1])
    await store.open()
    assert await store.log.replica_router.try_replica(0)
    ann = await People(store).user("Ann")
    await store.statuses.create(ann, StatusDraft(message="x"), IdempotencyKey.generate())
    await eventually(lambda: entries(pair.replica) == 1, what="the post on the replica")
    run(pair.replica, "CONFIG", "RESETSTAT")
    assert len(await store.log.read("0-0", 10)) == 1
    assert "cmdstat_xrange" in run(pair.replica, "INFO", "commandstats")
    await store.close()
    assert not store.log.replica_router.is_avoiding_replica
