"""Writes that so many replicas must have: what the answer waits for, and what is left when the primary dies."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import NamedTuple

import pytest

from stream_server.errors import OutcomeUnknown
from stream_server.events.position import LOG_START
from stream_server.store.idempotency import IdempotencyKey
from stream_server.store.social.statuses import StatusDraft
from stream_server.store.store import Store
from tests.redis_process import RedisProcess
from tests.stream_server.store.people import People
from tests.stream_server.store.replicas import entries, linked, run, servers
from tests.waiting import PATIENCE, eventually

SHORT = 0.6
"""Time for a replica that is silent."""


class Pair(NamedTuple):
    """A primary with a replica that has what it has, and somebody who writes."""

    primary: RedisProcess
    replica: RedisProcess
    author: str

    async def post(self, store: Store, key: str = "") -> str:
        """The id of a new status, or of that which was made under this key before."""
        request = IdempotencyKey.from_client(self.author, key, b"payload") if key else IdempotencyKey.generate()
        made = await store.statuses.create(self.author, StatusDraft(message="x"), request)
        return str(json.loads(made)["id"])


@pytest.fixture
async def pair(redis_server: RedisProcess) -> AsyncIterator[Pair]:
    """With nothing on the log."""
    with servers(Path(redis_server._command[0]), 2) as (primary, replica):
        replica.replica_of(primary)
        await linked(replica)
        async with _opened(primary) as store:
            author = await People(store).user("Ann")
            await eventually(
                lambda: run(replica, "EXISTS", f"{{core}}:user:{author}"), what="the author on the replica"
            )
            yield Pair(primary, replica, author)


class _opened:  # noqa: N801 - used as a function
    """A store of that server, whose writes need so many replicas; ``seconds`` count from when it is open."""

    def __init__(self, server: RedisProcess, replicas: int = 0, seconds: float = PATIENCE) -> None:
        self._store = Store(server.url, timeout_seconds=PATIENCE, min_write_replicas=replicas)
        self._seconds = seconds

    async def __aenter__(self) -> Store:
        await self._store.open()
        self._store._redis.timeout_seconds = self._seconds
        return self._store

    async def __aexit__(self, *_: object) -> None:
        await self._store.close()


async def test_a_write_is_answered_when_the_replica_has_it(pair: Pair) -> None:
    """Looked for there right behind the answer: nothing has to be waited for."""
    async with _opened(pair.primary, replicas=1) as store:
        for written in range(1, 21):
            await pair.post(store)
            assert entries(pair.replica) == written


async def test_a_write_that_no_replica_has_is_not_acknowledged(pair: Pair) -> None:
    """It is there all the same, and the repetition under its key waits, too: it is acknowledged when it is safe."""
    async with _opened(pair.primary, replicas=1, seconds=SHORT) as store:
        pair.replica.pause()
        for _ in range(2):
            with pytest.raises(OutcomeUnknown) as told:
                await pair.post(store, "key")
            assert told.value.retry_after == 1
        assert entries(pair.primary) == 1
    pair.replica.resume()
    async with _opened(pair.primary, replicas=1) as store:
        made = await pair.post(store, "key")
        assert await pair.post(store, "key") == made
        assert [entry.position.n for entry in await store.log.read(LOG_START, 10)] == [1]
        assert entries(pair.replica) == 1


async def test_more_replicas_than_there_are(pair: Pair) -> None:
    """A setting that cannot be met refuses every write, and does so in time; reading goes on."""
    async with _opened(pair.primary, replicas=2, seconds=SHORT) as store:
        with pytest.raises(OutcomeUnknown):
            await pair.post(store)
        store._redis.timeout_seconds = PATIENCE
        assert await store.users.get(pair.author, pair.author)


async def test_without_it_nothing_waits(pair: Pair) -> None:
    """Not a command more is sent."""
    run(pair.primary, "CONFIG", "RESETSTAT")
    pair.replica.pause()
    async with _opened(pair.primary) as store:
        await pair.post(store)
    assert "cmdstat_wait" not in run(pair.primary, "INFO", "commandstats")
    pair.replica.resume()


async def test_a_write_is_made_once_though_its_primary_dies(pair: Pair) -> None:
    """The answer is lost with the primary; the key is where the data is, so the promoted replica knows it."""
    async with _opened(pair.primary, replicas=1) as store:
        made = await pair.post(store, "key")
    pair.primary.kill()
    run(pair.replica, "REPLICAOF", "NO", "ONE")
    async with _opened(pair.replica) as store:
        assert await pair.post(store, "key") == made
        assert entries(pair.replica) == 1
        assert await pair.post(store, "another") != made
        assert [entry.position.n for entry in await store.log.read(LOG_START, 10)] == [1, 2]


async def test_what_no_replica_had_is_lost_with_its_primary(pair: Pair) -> None:
    """The other side of it: acknowledged without waiting, and gone; the repetition makes it anew."""
    run(pair.replica, "REPLICAOF", "127.0.0.1", "1")  # nobody: a link that is down
    async with _opened(pair.primary) as store:
        made = await pair.post(store, "key")
    pair.primary.kill()
    run(pair.replica, "REPLICAOF", "NO", "ONE")
    assert entries(pair.replica) == 0
    async with _opened(pair.replica) as store:
        assert await pair.post(store, "key") != made
        assert entries(pair.replica) == 1
