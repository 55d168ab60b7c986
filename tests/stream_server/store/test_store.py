"""Opening a store: the version of Redis, the scripts, and a warning if Redis evicts data."""

import asyncio
import logging

import pytest
import redis

from stream_server.errors import Unavailable
from stream_server.store import store as module
from stream_server.store.redis.lanes import Lane
from stream_server.store.store import RedisTooOld, Store
from tests.redis_process import private_redis
from tests.stream_server.store.people import People
from tests.waiting import PATIENCE


async def test_open_and_ping(store: Store) -> None:
    await store.ping()


async def test_open_without_redis_is_unavailable_and_hides_the_address(tmp_path: object) -> None:
    store = Store(f"unix://{tmp_path}/none.sock", timeout_seconds=PATIENCE)
    with pytest.raises(Unavailable) as failure:
        await store.open()
    assert str(tmp_path) not in failure.value.message
    await store.close()


async def test_a_slow_redis_delays_the_opening_and_later_calls_have_the_usual_timeout() -> None:
    with private_redis() as server:
        store = Store(f"unix://{server.socket}", timeout_seconds=0.05)
        server.pause()
        with pytest.raises(Unavailable):
            await store.open()
        with store.allow_slow_replies(PATIENCE):
            opening = asyncio.create_task(store.open())
            with pytest.raises(TimeoutError):  # longer than the usual timeout it neither fails nor succeeds
                await asyncio.wait_for(asyncio.shield(opening), 0.3)
            server.resume()
            await opening
        server.pause()
        with pytest.raises(Unavailable):
            await store.ping()
        server.resume()
        await store.close()


@pytest.mark.parametrize(("version", "fine"), [("6.2.14", True), ("7.0.15", True), ("10.1.0", True), ("6.0.20", False)])
def test_redis_before_6_2_is_refused(version: str, fine: bool) -> None:  # noqa: FBT001 - a parameter of the test
    if fine:
        module._check_version(version)
        return
    with pytest.raises(RedisTooOld):
        module._check_version(version)


async def test_an_eviction_policy_is_logged_as_a_warning(
    redis_url: str, raw: "redis.Redis", caplog: pytest.LogCaptureFixture, store: Store
) -> None:
    with caplog.at_level(logging.WARNING):
        await store.open()
        assert caplog.messages == []
        raw.config_set("maxmemory-policy", "allkeys-lru")
        try:
            await store.open()
        finally:
            raw.config_set("maxmemory-policy", "noeviction")
    assert len(caplog.messages) == 1
    assert "allkeys-lru" in caplog.messages[0]


async def test_connections_are_bounded(store: Store, people: People, raw: "redis.Redis") -> None:
    ann = await people.user("Ann")
    await asyncio.gather(*(people.status(ann) for _ in range(500)))
    clients = raw.client_list()
    assert isinstance(clients, list)
    assert len(clients) <= 1 + len(Lane), "one of the test, and at most one a lane"
