"""The number of connects per user and window, counted in Redis."""

import time

import pytest
import redis

from stream_server.errors import Unavailable
from stream_server.store.connect_rate_limiter import ConnectRateLimiter
from stream_server.store.redis.client import RedisClient
from stream_server.store.store import Store


async def test_connects_are_limited_per_window(store: Store) -> None:
    admitted = [await store.connect_rate_limiter.admit("7", 3) for _ in range(4)]
    assert [(one.admitted, one.remaining) for one in admitted] == [(True, 2), (True, 1), (True, 0), (False, 0)]
    assert {one.limit for one in admitted} == {3}
    assert 0 < admitted[0].resets_at - time.time() <= 15 * 60


async def test_each_user_has_a_separate_count(store: Store) -> None:
    assert not (await store.connect_rate_limiter.admit("7", 0)).admitted
    assert (await store.connect_rate_limiter.admit("8", 1)).admitted


async def test_processes_share_the_count(store: Store, redis_url: str) -> None:
    link = RedisClient(redis_url, 1.0)
    try:
        assert (await store.connect_rate_limiter.admit("7", 1)).admitted
        assert not (await ConnectRateLimiter(link).admit("7", 1)).admitted
    finally:
        await link.close()


async def test_a_count_expires(store: Store, raw: "redis.Redis") -> None:
    await store.connect_rate_limiter.admit("7", 1)
    assert 0 < raw.ttl("connects:{7}") <= 15 * 60
    raw.delete("connects:{7}")
    assert (await store.connect_rate_limiter.admit("7", 1)).admitted


async def test_no_connect_without_redis(tmp_path: object) -> None:
    link = RedisClient(f"unix://{tmp_path}/none.sock", 1.0)
    try:
        with pytest.raises(Unavailable) as failure:
            await ConnectRateLimiter(link).admit("7", 1)
    finally:
        await link.close()
    assert str(tmp_path) not in failure.value.message
