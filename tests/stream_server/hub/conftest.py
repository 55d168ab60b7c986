"""A world for each test, ended behind it."""

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from stream_server.hub.limits import HubLimits
from tests.stream_server.hub.world import LIMITS, World


async def _made(limits: HubLimits) -> AsyncIterator[World]:
    world = World(limits)
    yield world
    for stream in world.streams:
        stream.connection_lost()
    await world.hub.background_tasks.cancel_all()


@pytest.fixture
async def world() -> AsyncIterator[World]:
    """A hub that nobody is connected to yet."""
    async for made in _made(LIMITS):
        yield made


@pytest.fixture
async def ringless() -> AsyncIterator[World]:
    """A hub that keeps nothing in memory: whoever is behind reads the log."""
    async for made in _made(replace(LIMITS, ring_bytes=0)):
        yield made


@pytest.fixture(params=["ring", "log"])
async def narrow(request: pytest.FixtureRequest) -> AsyncIterator[World]:
    """A hub that refuses a socket which holds a frame; whoever is behind reads the ring, or the log."""
    ring_bytes = LIMITS.ring_bytes if request.param == "ring" else 0
    async for made in _made(replace(LIMITS, buffer_bytes=150, ring_bytes=ring_bytes)):
        yield made


@pytest.fixture
async def impatient() -> AsyncIterator[World]:
    """A hub with short deadlines."""
    async for made in _made(replace(LIMITS, write_timeout_seconds=0.1, heartbeat_seconds=0.2, goodbye_seconds=0.1)):
        yield made


@pytest.fixture
async def hasty() -> AsyncIterator[World]:
    """A hub to which hardly anything is near, and a window short."""
    async for made in _made(
        replace(LIMITS, far_behind_entries=20, slow_window_seconds=1.0, write_timeout_seconds=0.3, ring_bytes=1 << 24)
    ):
        yield made


@pytest.fixture
async def roomy() -> AsyncIterator[World]:
    """A hub with room for a dozen messages for each client."""
    async for made in _made(replace(LIMITS, buffer_bytes=8000)):
        yield made
