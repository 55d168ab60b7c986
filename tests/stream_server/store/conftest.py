"""A store on a real Redis."""

from collections.abc import AsyncIterator, Iterator

import pytest
import redis

from stream_server.store.store import Store
from tests.redis_process import RedisProcess
from tests.stream_server.store.people import People
from tests.waiting import PATIENCE


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
