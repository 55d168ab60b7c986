"""Opening a store: the right Redis, the scripts, a warning where data would be evicted."""

import asyncio
import logging

import pytest
import redis

from stream_server.errors import Unavailable
from stream_server.store import store as module
from stream_server.store.store import RedisTooOld, Store
from tests.stream_server.store.people import People
from tests.waiting import PATIENCE


async def test_open_and_ping(store: Store) -> None:
    """An opened store answers."""
    await store.ping()


async def test_nothing_there(tmp_path: object) -> None:
    """No Redis is told as unavailable, without the address."""
    store = Store(f"unix://{tmp_path}/none.sock", timeout_seconds=PATIENCE)
    with pytest.raises(Unavailable) as told:
        await store.open()
    assert str(tmp_path) not in told.value.message
    await store.close()


@pytest.mark.parametrize(("version", "fine"), [("6.2.14", True), ("7.0.15", True), ("10.1.0", True), ("6.0.20", False)])
def test_the_version_is_looked_at(version: str, fine: bool) -> None:  # noqa: FBT001 - a parameter of the test
    """What is older than 6.2 lacks commands that are used; numbers are compared as numbers."""
    if fine:
        module._check_version(version)
        return
    with pytest.raises(RedisTooOld):
        module._check_version(version)


async def test_eviction_is_warned_of(
    redis_url: str, raw: "redis.Redis", caplog: pytest.LogCaptureFixture, store: Store
) -> None:
    """A Redis that would throw data away under memory pressure is named at the start; the right one is not."""
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
    """However many callers there are, Redis sees a bounded number of connections."""
    ann = await people.user("Ann")
    await asyncio.gather(*(people.status(ann) for _ in range(500)))
    clients = raw.client_list()
    assert isinstance(clients, list)
    assert len(clients) <= 66
