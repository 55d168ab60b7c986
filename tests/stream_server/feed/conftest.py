"""A feed on a real Redis, and a writer of its log."""

from collections.abc import AsyncIterator, Iterator

import pytest

from tests.redis_process import RedisProcess
from tests.stream_server.feed.node import LogWriter, Node

NEVER = 3600.0
"""A canary that does not look while a test lasts."""


@pytest.fixture
def writer(redis_server: RedisProcess, redis_url: str) -> Iterator[LogWriter]:
    assert redis_url == redis_server.url
    made = LogWriter(redis_server)
    yield made
    made.close()


async def _opened(url: str, canary_seconds: float) -> AsyncIterator[Node]:
    made = Node(url, canary_seconds)
    await made.open()
    yield made
    await made.close()


@pytest.fixture
async def node(redis_url: str) -> AsyncIterator[Node]:
    """A node with a fast canary."""
    async for made in _opened(redis_url, 0.1):
        yield made


@pytest.fixture
async def without_canary(redis_url: str) -> AsyncIterator[Node]:
    """A node whose canary never checks."""
    async for made in _opened(redis_url, NEVER):
        yield made
