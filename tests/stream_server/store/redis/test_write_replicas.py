"""`write_replicas`: what the answer of a write waits for, and what is left when the primary dies."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from stream_server.errors import OutcomeUnknown
from stream_server.events.position import LOG_START
from stream_server.store.idempotency import IdempotencyKey
from stream_server.store.social.statuses import StatusDraft
from stream_server.store.store import Store
from tests.redis_process import RedisProcess
from tests.stream_server.store.people import People, new_key, open_store
from tests.stream_server.store.replicas import entries, linked, run, servers
from tests.waiting import PATIENCE, eventually

SHORT = 1.5
"""Seconds to wait for a silent replica."""


class Pair(NamedTuple):
    """A primary with a linked replica, and an author."""

    primary: RedisProcess
    replica: RedisProcess
    author: str

    async def post(self, store: Store, key: str = "") -> str:
        """Post a status, under a client's key if given. Returns the id."""
        request = IdempotencyKey.from_client(self.author, key, b"payload") if key else new_key()
        made = await store.statuses.create(self.author, StatusDraft(message="x"), request)
        return str(json.loads(made)["id"])


@pytest.fixture
async def pair(redis_server: RedisProcess) -> AsyncIterator[Pair]:
    with servers(Path(redis_server._command[0]), 2) as (primary, replica):
        replica.replica_of(primary)
        await linked(replica)
        async with _opened(primary) as store:
            author = await People(store).user("Ann")
            await eventually(
                lambda: run(replica, "EXISTS", f"{{core}}:user:{author}"), what="the author on the replica"
            )
            yield Pair(primary, replica, author)


@asynccontextmanager
async def _opened(server: RedisProcess, replicas: int = 0, seconds: float = PATIENCE) -> AsyncIterator[Store]:
    """An open store of the server that requires ``replicas``. ``seconds`` is its time-out once it is open."""
    async with open_store(server.url, min_write_replicas=replicas) as store:
        store._redis.timeout_seconds = seconds
        yield store


async def test_a_write_is_answered_when_the_replica_has_it(pair: Pair) -> None:
    async with _opened(pair.primary, replicas=1) as store:
        for written in range(1, 21):
            await pair.post(store)
            assert entries(pair.replica) == written


async def test_a_write_without_a_replica_has_an_unknown_outcome_until_a_replica_has_it(pair: Pair) -> None:
    async with _opened(pair.primary, replicas=1, seconds=SHORT) as store:
        pair.replica.pause()
        for _ in range(2):
            with pytest.raises(OutcomeUnknown) as failure:
                await pair.post(store, "key")
            assert failure.value.retry_after == 1
        assert entries(pair.primary) == 1
    pair.replica.resume()
    async with _opened(pair.primary, replicas=1) as store:
        made = await pair.post(store, "key")
        assert await pair.post(store, "key") == made
        assert [entry.position.n for entry in await store.log.read(LOG_START, 10)] == [1]
        assert entries(pair.replica) == 1


@pytest.mark.parametrize("deed", ["a post under its key", "a like, which is made already"])
async def test_a_repetition_that_changes_nothing_is_unknown_too_on_a_new_connection(pair: Pair, deed: str) -> None:
    """WAIT by itself asks only for what its connection has changed (from Redis 7.2 on), and here that is nothing."""
    async with _opened(pair.primary) as store:
        status = await pair.post(store)

    async def write(store: Store) -> object:
        return await (store.likes.like(pair.author, status, new_key()) if "like" in deed else pair.post(store, "key"))

    pair.replica.pause()
    for _ in range(2):
        async with _opened(pair.primary, replicas=1, seconds=SHORT) as store:
            with pytest.raises(OutcomeUnknown):
                await write(store)
    pair.replica.resume()
    async with _opened(pair.primary, replicas=1) as store:
        assert await write(store)
        assert entries(pair.replica) == entries(pair.primary) == 2


async def test_too_many_required_replicas_refuse_writes_and_not_reads(pair: Pair) -> None:
    async with _opened(pair.primary, replicas=2, seconds=SHORT) as store:
        with pytest.raises(OutcomeUnknown, match="the write was made, but 1 of the 2 replicas that must confirm it"):
            await pair.post(store)
        store._redis.timeout_seconds = PATIENCE
        assert await store.users.get(pair.author, pair.author)


async def test_a_retry_on_the_promoted_replica_finds_the_write(pair: Pair) -> None:
    async with _opened(pair.primary, replicas=1) as store:
        made = await pair.post(store, "key")
    pair.primary.kill()
    run(pair.replica, "REPLICAOF", "NO", "ONE")
    async with _opened(pair.replica) as store:
        assert await pair.post(store, "key") == made
        assert entries(pair.replica) == 1
        assert await pair.post(store, "another") != made
        assert [entry.position.n for entry in await store.log.read(LOG_START, 10)] == [1, 2]
