"""The keys under which writes are made once, and a Redis that is away, frozen, or loses answers."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest
import redis

from stream_server.errors import ApiError, OutcomeUnknown, Unavailable
from stream_server.events.position import LOG_START
from stream_server.store.idempotency import CLIENT_TTL_MS, SERVER_TTL_MS, IdempotencyKey
from stream_server.store.social.statuses import StatusDraft
from stream_server.store.store import Store
from tests.redis_process import RedisProcess
from tests.stream_server.store.cutting import CuttingProxy
from tests.stream_server.store.people import People
from tests.waiting import PATIENCE, eventually


async def test_keys_are_their_users_own(store: Store, people: People) -> None:
    """Two users may use the same key."""
    ann, bob = await people.users(2)
    made = [
        await store.statuses.create(uid, StatusDraft(message="x"), IdempotencyKey.from_client(uid, "k", b"p"))
        for uid in (ann, bob)
    ]
    assert made[0] != made[1]


async def test_how_long_answers_are_kept(store: Store, people: People, raw: "redis.Redis") -> None:
    """A client's key for a day, the server's own for a minute."""
    ann = await people.user("Ann")
    for request in (IdempotencyKey.from_client(ann, "k", b"p"), IdempotencyKey.generate()):
        await store.statuses.create(ann, StatusDraft(message="x"), request)
        left = raw.pttl("{core}:request:" + request.value)
        assert isinstance(left, int)
        assert request.ttl_ms - 30_000 < left <= request.ttl_ms
    assert (CLIENT_TTL_MS, SERVER_TTL_MS) == (86_400_000, 60_000)


async def test_a_kept_answer_outlives_the_log(store: Store, people: People, raw: "redis.Redis") -> None:
    """Where the entry was trimmed meanwhile, the status itself is the answer."""
    ann = await people.user("Ann")
    request = IdempotencyKey.from_client(ann, "k", b"p")
    made = await store.statuses.create(ann, StatusDraft(message="x"), request)
    raw.xtrim("{core}:log", maxlen=0, approximate=False)
    assert await store.statuses.create(ann, StatusDraft(message="x"), request) == made


async def test_a_batch_cut_off_is_made_once(store: Store, redis_server: RedisProcess, people: People) -> None:
    """All of a batch is repeated under its keys: each follow happened once."""
    ann, *others = await people.users(40)
    async with CuttingProxy(redis_server.socket) as proxy:
        cut = Store(proxy.url, timeout_seconds=PATIENCE)
        await cut.open()
        proxy.cut = 1
        outcomes = await cut.follows.change_many(ann, others, [], IdempotencyKey.generate())
        await cut.close()
    assert proxy.fired == 1
    assert outcomes == [(uid, "followed") for uid in others]
    assert (await people.me(ann))["following"] == 39
    assert [entry.kind for entry in await store.log.read(LOG_START, 100)] == ["follow", "notification"] * 39


async def test_redis_away(redis_server: RedisProcess) -> None:
    """A Redis that is not there is told at once, for reading and for writing; it is used again when it is back."""
    with RedisProcess(_binary(redis_server)) as own:
        store = Store(own.url, timeout_seconds=PATIENCE)
        await store.open()
        ann = await People(store).user("Ann")
        own.kill()
        with pytest.raises(Unavailable):
            await asyncio.wait_for(store.users.get(ann, ann), 2)
        with pytest.raises(Unavailable) as told:
            await asyncio.wait_for(store.statuses.create(ann, StatusDraft(message="x"), IdempotencyKey.generate()), 2)
        assert (told.value.error_code, told.value.retry_after) == ("unavailable", 1)
        own.start()
        assert await People(store).user("Bob")
        await store.close()


async def test_redis_frozen(redis_server: RedisProcess) -> None:
    """One that takes a write and is silent is given up within one time-out; the outcome is unknown."""
    with RedisProcess(_binary(redis_server)) as own:
        store = Store(own.url, timeout_seconds=PATIENCE)
        await store.open()
        ann = await People(store).user("Ann")
        store._redis.timeout_seconds = 0.2
        own.pause()
        with pytest.raises(OutcomeUnknown):
            await asyncio.wait_for(store.statuses.create(ann, StatusDraft(message="x"), IdempotencyKey.generate()), 2)
        with pytest.raises(Unavailable):
            await asyncio.wait_for(store.users.get(ann, ann), 2)
        own.resume()
        store._redis.timeout_seconds = PATIENCE
        # What was sent is in the socket still, and is run now: under one key, so once.
        assert await People(store).status(ann, "y")
        assert [entry.position.n for entry in await store.log.read(LOG_START, 10)] == [1, 2]
        await store.close()


async def test_a_caller_that_gives_up_harms_nobody(
    redis_server: RedisProcess, store: Store, people: People, raw: "redis.Redis"
) -> None:
    """A cancelled write's answer, still to come, is never read as the answer of the next one."""
    ann = await people.user("Ann")
    redis_server.pause()
    try:
        hasty = await _sent(people.status(ann, "hasty"))
        hasty.cancel()
        await asyncio.gather(hasty, return_exceptions=True)
        patient = await _sent(people.status(ann, "patient"))
    finally:
        redis_server.resume()
    assert (await patient)["message"] == "patient"
    await eventually(lambda: raw.xlen("{core}:log") == 2, what="what was given up had been sent all the same")


async def _sent(write: Coroutine[Any, Any, dict[str, Any]]) -> asyncio.Task[dict[str, Any]]:
    """A write on its way, as far as it comes while Redis is silent."""
    task = asyncio.create_task(write)
    for _ in range(50):
        await asyncio.sleep(0)
    assert not task.done()
    return task


def test_errors_are_ours() -> None:
    """What the store raises is what the web can tell."""
    assert issubclass(Unavailable, ApiError)
    assert issubclass(OutcomeUnknown, ApiError)


def _binary(server: RedisProcess) -> Any:
    return server._command[0]
