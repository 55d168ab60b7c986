"""A feed on a real Redis, and a hand that writes there."""

from collections.abc import AsyncIterator, Iterator

import pytest

from tests.redis_process import RedisProcess
from tests.stream_server.feeding import Node, Pen

NEVER = 3600.0
"""A canary that does not look while a test lasts."""


@pytest.fixture
def pen(redis_server: RedisProcess, redis_url: str) -> Iterator[Pen]:
    """Writes an empty log."""
    assert redis_url == redis_server.url
    made = Pen(redis_server)
    yield made
    made.close()


async def _opened(url: str, canary_seconds: float) -> AsyncIterator[Node]:
    made = Node(url, canary_seconds)
    await made.open()
    yield made
    await made.close()


@pytest.fixture
async def node(redis_url: str) -> AsyncIterator[Node]:
    """A feed with a quick canary."""
    async for made in _opened(redis_url, 0.1):
        yield made


@pytest.fixture
async def without_canary(redis_url: str) -> AsyncIterator[Node]:
    """A feed whose canary never looks."""
    async for made in _opened(redis_url, NEVER):
        yield made
