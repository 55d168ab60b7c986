"""Idempotency keys, and writes to a Redis that is down, frozen, or loses answers."""

import json

import pytest
import redis

from stream_server.events.position import LOG_START
from stream_server.store.idempotency import CLIENT_TTL_MS, SERVER_TTL_MS, IdempotencyKey
from stream_server.store.social.statuses import StatusDraft
from stream_server.store.store import Store
from tests.redis_process import RedisProcess
from tests.stream_server.store.people import People, new_key, open_store
from tests.stream_server.store.redis.cutting_proxy import CuttingProxy


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


async def test_a_write_that_the_log_refused_leaves_no_answer_for_its_repetition(
    store: Store, people: People, raw: "redis.Redis"
) -> None:
    ann = await people.user("Ann")
    request, draft = new_key(), StatusDraft(message="x")
    raw.set("{core}:log", "this is no log")
    with pytest.raises(Exception, match="refused a command"):
        await store.statuses.create(ann, draft, request)
    raw.delete("{core}:log")
    made = json.loads(await store.statuses.create(ann, draft, request))
    assert json.loads(await store.statuses.get(ann, made["id"])) == made
    assert raw.xlen("{core}:log") == 1


async def test_a_retried_batch_follows_each_user_once(store: Store, redis_server: RedisProcess, people: People) -> None:
    ann, *others = await people.users(40)
    async with CuttingProxy(redis_server.socket) as proxy, open_store(proxy.url) as cut:
        proxy.cut = 1
        outcomes = await cut.follows.change_many(ann, others, [], new_key())
    assert proxy.fired == 1
    assert outcomes == [(uid, "followed") for uid in others]
    assert (await people.me(ann))["following"] == 39
    assert [entry.kind for entry in await store.log.read(LOG_START, 100)] == ["follow", "notification"] * 39
