"""A world for each test, ended behind it."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from tests.stream_server.hub.world import World


@pytest.fixture
async def world() -> AsyncIterator[World]:
    """A hub that nobody is connected to yet."""
    made = World()
    yield made
    for task in made.tasks:
        task.cancel()
    await asyncio.gather(*made.tasks, return_exceptions=True)
