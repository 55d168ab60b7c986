"""A hub in memory for each test, with several limits."""

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from stream_server.hub import group
from stream_server.hub.limits import HubLimits
from tests.stream_server.hub.world import LIMITS, World


@pytest.fixture(params=["C", pytest.param("Python", marks=pytest.mark.extended)])
def each_loop_over_clients(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a test with the loop in C, and with the loop in Python alone."""
    if request.param == "Python":
        monkeypatch.setattr(group, "send_to_each", group.leave_to_python)
    elif group.send_to_each is group.leave_to_python:
        pytest.skip("the loop in C is not built")


async def _make_world(limits: HubLimits) -> AsyncIterator[World]:
    world = World(limits)
    yield world
    for stream in world.streams:
        stream.connection_lost()
    await world.hub.background_tasks.cancel_all()


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async for made in _make_world(LIMITS):
        yield made


@pytest.fixture
async def without_ring() -> AsyncIterator[World]:
    """A hub without a ring: a client that catches up reads the log."""
    async for made in _make_world(replace(LIMITS, ring_bytes=0)):
        yield made


@pytest.fixture(params=["ring", "log"])
async def tiny_buffer(request: pytest.FixtureRequest) -> AsyncIterator[World]:
    """A hub that demotes a client whose socket holds one frame. It then reads the ring, or the log."""
    ring_bytes = LIMITS.ring_bytes if request.param == "ring" else 0
    async for made in _make_world(replace(LIMITS, buffer_bytes=150, ring_bytes=ring_bytes)):
        yield made


@pytest.fixture
async def short_deadlines() -> AsyncIterator[World]:
    async for made in _make_world(
        replace(LIMITS, write_timeout_seconds=0.1, heartbeat_seconds=0.2, goodbye_seconds=0.1)
    ):
        yield made


@pytest.fixture
async def short_window() -> AsyncIterator[World]:
    """A hub for which a client is soon far behind, and too slow."""
    async for made in _make_world(
        replace(LIMITS, far_behind_entries=20, slow_window_seconds=1.0, write_timeout_seconds=0.3, ring_bytes=1 << 24)
    ):
        yield made


@pytest.fixture
async def large_buffer() -> AsyncIterator[World]:
    """A hub that buffers a dozen messages for each client."""
    async for made in _make_world(replace(LIMITS, buffer_bytes=8000)):
        yield made
