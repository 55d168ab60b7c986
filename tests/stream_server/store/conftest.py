"""Fixtures: a store on a real Redis, a plain client, and helpers that create users."""

from collections.abc import AsyncIterator, Iterator

import pytest
import redis

from stream_server.store.redis.script_settings import SizeLimits
from stream_server.store.store import Store
from tests.redis_process import RedisProcess
from tests.stream_server.store.people import People, open_store


@pytest.fixture
async def store(redis_url: str, request: pytest.FixtureRequest) -> AsyncIterator[Store]:
    """A store with the ``SIZES`` of the test's module, if it has some."""
    async with open_store(redis_url, size_limits=getattr(request.module, "SIZES", SizeLimits())) as made:
        yield made


@pytest.fixture
def raw(redis_server: RedisProcess) -> Iterator["redis.Redis"]:
    """A plain Redis client, to inspect what the store wrote."""
    client = redis_server.client()
    yield client
    client.close()


@pytest.fixture
def people(store: Store) -> People:
    return People(store)
