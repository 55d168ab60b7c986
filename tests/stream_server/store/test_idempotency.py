"""Idempotency keys, and writes to a Redis that is down, frozen, or loses answers."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import redis

from stream_server.events.position import LOG_START
from stream_server.store.idempotency import CLIENT_TTL_MS, SERVER_TTL_MS, IdempotencyKey
from stream_server.store.social.statuses import StatusDraft
from stream_server.store.store import Store
from tests.redis_process import RedisProcess
from tests.stream_server.store.people import People, new_key, open_store
from tests.stream_server.store.redis.cutting_proxy import CuttingProxy
from tests.waiting import eventually


async def test_two_users_may_use_the_same_key(store: Store, people: People) -> None:
    ann, bob = await people.users(2)
    made = [
        await store.statuses.create(uid, StatusDraft(message="x"), IdempotencyKey.from_client(uid, "k", b"p"))
        for uid in (ann, bob)
    ]
    assert made[0] != made[1]


async def test_answers_are_kept_a_day_for_client_keys_and_a_minute_for_server_keys(
    store: Store, people: People, raw: "redis.Redis"
) -> None:
    ann = await people.user("Ann")
    for request in (IdempotencyKey.from_client(ann, "k", b"p"), new_key()):
        await store.statuses.create(ann, StatusDraft(message="x"), request)
        left = raw.pttl("{core}:request:" + request.value)
        assert isinstance(left, int)
        assert request.ttl_ms - 30_000 < left <= request.ttl_ms
    assert (CLIENT_TTL_MS, SERVER_TTL_MS) == (86_400_000, 60_000)


async def test_a_kept_answer_outlives_its_log_entry(store: Store, people: People, raw: "redis.Redis") -> None:
    ann = await people.user("Ann")
    request = IdempotencyKey.from_client(ann, "k", b"p")
    made = await store.statuses.create(ann, StatusDraft(message="x"), request)
    raw.xtrim("{core}:log", maxlen=0, approximate=False)
    assert await store.statuses.create(ann, StatusDraft(message="x"), request) == made


async def test_a_retried_batch_follows_each_user_once(store: Store, redis_server: RedisProcess, people: People) -> None:
    ann, *others = await people.users(40)
    async with CuttingProxy(redis_server.socket) as proxy, open_store(proxy.url) as cut:
        proxy.cut = 1
        outcomes = await cut.follows.change_many(ann, others, [], new_key())
    assert proxy.fired == 1
    assert outcomes == [(uid, "followed") for uid in others]
    assert (await people.me(ann))["following"] == 39
    assert [entry.kind for entry in await store.log.read(LOG_START, 100)] == ["follow", "notification"] * 39


async def test_the_answer_of_a_cancelled_write_is_never_read_as_another(
    redis_server: RedisProcess, store: Store, people: People, raw: "redis.Redis"
) -> None:
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
    """Start a write while Redis is silent, and let it send its commands."""
    task = asyncio.create_task(write)
    for _ in range(50):
        await asyncio.sleep(0)  # no answer comes, so only iterations of the loop count
    assert not task.done()
    return task
