"""A world for each test, ended behind it."""

from collections.abc import AsyncIterator

import pytest

from tests.stream_server.hub.world import World


@pytest.fixture
async def world() -> AsyncIterator[World]:
    """A hub that nobody is connected to yet."""
    made = World()
    yield made
    for stream in made.streams:
        stream.gone()
    await made.hub.errands.cancel()
