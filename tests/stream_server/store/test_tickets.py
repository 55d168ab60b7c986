"""Tickets: each stands once, and not for long."""

import asyncio

import pytest
import redis

from stream_server.errors import OutcomeUnknown
from stream_server.store.store import Store
from tests.redis_process import RedisProcess


async def test_a_ticket_is_used_once(store: Store) -> None:
    """Of many who show it at once, one gets the claims."""
    await store.tickets.store("d1", b"claims", 60)
    shown = await asyncio.gather(*(store.tickets.redeem("d1") for _ in range(20)))
    assert [one for one in shown if one is not None] == [b"claims"]
    assert await store.tickets.redeem("d2") is None


async def test_a_ticket_ends_by_itself(store: Store, raw: "redis.Redis") -> None:
    """Redis forgets it after its seconds, whoever asks."""
    await store.tickets.store("d1", b"claims", 30)
    left = raw.pttl("{core}:ticket:d1")
    assert isinstance(left, int)
    assert 0 < left <= 30_000
    raw.pexpire("{core}:ticket:d1", 0)
    assert await store.tickets.redeem("d1") is None


async def test_a_ticket_is_not_taken_twice_for_a_lost_answer(store: Store, redis_server: RedisProcess) -> None:
    """Whoever loses the answer is told so, and does not hear that there is no such ticket."""
    await store.tickets.store("d1", b"claims", 60)
    redis_server.pause()
    try:
        store._redis.timeout_seconds = 0.2
        with pytest.raises(OutcomeUnknown):
            await store.tickets.redeem("d1")
    finally:
        redis_server.resume()
