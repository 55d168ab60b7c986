"""How often somebody may connect, counted in Redis."""

import time

import pytest
import redis

from stream_server.errors import Unavailable
from stream_server.store.connect_rate_limiter import ConnectRateLimiter
from stream_server.store.redis.client import RedisClient
from stream_server.store.store import Store


async def test_the_connects_of_a_window_are_counted(store: Store) -> None:
    """So many, and then none; the answer says how many are left, and until when."""
    admitted = [await store.connect_rate_limiter.admit("7", 3) for _ in range(4)]
    assert [(one.admitted, one.remaining) for one in admitted] == [(True, 2), (True, 1), (True, 0), (False, 0)]
    assert {one.limit for one in admitted} == {3}
    assert 0 < admitted[0].resets_at - time.time() <= 15 * 60


async def test_everybody_has_a_count_of_their_own(store: Store) -> None:
    """Who connects too often costs nobody else a connect."""
    assert not (await store.connect_rate_limiter.admit("7", 0)).admitted
    assert (await store.connect_rate_limiter.admit("8", 1)).admitted


async def test_workers_count_together(store: Store, redis_url: str) -> None:
    """What one process counted, another knows."""
    link = RedisClient(redis_url, 1.0)
    try:
        assert (await store.connect_rate_limiter.admit("7", 1)).admitted
        assert not (await ConnectRateLimiter(link).admit("7", 1)).admitted
    finally:
        await link.close()


async def test_a_count_expires(store: Store, raw: "redis.Redis") -> None:
    """Nothing stays of it, and the key is the one in the table."""
    await store.connect_rate_limiter.admit("7", 1)
    assert 0 < raw.ttl("connects:{7}") <= 15 * 60
    raw.delete("connects:{7}")
    assert (await store.connect_rate_limiter.admit("7", 1)).admitted


async def test_without_redis_nobody_is_admitted(tmp_path: object) -> None:
    """It is said that the store is away, without its address."""
    link = RedisClient(f"unix://{tmp_path}/none.sock", 1.0)
    try:
        with pytest.raises(Unavailable) as told:
            await ConnectRateLimiter(link).admit("7", 1)
    finally:
        await link.close()
    assert str(tmp_path) not in told.value.message
