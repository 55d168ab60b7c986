"""Heartbeats: their cursor, and clients without new events."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from stream_server.errors import Unavailable
from stream_server.events.position import LOG_START, Position
from stream_server.hub.catchup.reader import LogPage
from tests.stream_server.hub.world import LIMITS, Socket, World
from tests.waiting import eventually


@pytest.fixture
async def fast_heartbeats() -> AsyncIterator[World]:
    """A hub with fast heartbeats and short timeouts."""
    limits = replace(LIMITS, heartbeat_seconds=0.05, write_timeout_seconds=0.1)
    world = World(replace(limits, slow_window_seconds=0.1, far_behind_entries=1))
    world.hub.start()
    yield world
    for stream in world.streams:
        stream.connection_lost()
    await world.hub.background_tasks.cancel_all()


def heartbeat_cursors(socket: Socket) -> list[object]:
    return [message["cursor"] for message in socket.messages() if message["kind"] == "heartbeat"]


async def test_an_idle_client_resumes_from_the_cursor_of_its_last_heartbeat(fast_heartbeats: World) -> None:
    stream, idle = fast_heartbeats.open(track="wanted")
    for number in range(50):
        fast_heartbeats.post(f"other {number}")
    head = fast_heartbeats.hub.head
    await eventually(lambda: heartbeat_cursors(idle)[-1:] == [head.cursor], what="a heartbeat from the head")
    stream.connection_lost()
    for number in range(50):
        fast_heartbeats.post(f"other {number}")
        fast_heartbeats.post(f"wanted {number}")
    _, again = fast_heartbeats.open(fast_heartbeats.position_of(heartbeat_cursors(idle)[-1]), track="wanted")
    await again.expect_texts(*(f"wanted {number}" for number in range(50)))


async def test_a_log_without_new_entries_cuts_and_warns_no_client(fast_heartbeats: World) -> None:
    sockets = [fast_heartbeats.open(since, firehose="true")[1] for since in [None, LOG_START] * 5]
    await eventually(lambda: all(len(heartbeat_cursors(socket)) > 20 for socket in sockets), what="twenty heartbeats")
    assert fast_heartbeats.hub.live.count == len(sockets)
    fast_heartbeats.post("at last")
    for socket in sockets:
        await socket.expect_texts("at last")
        assert set(socket.kinds()) == {"hello", "heartbeat", "post"}
    assert not fast_heartbeats.hub.counters.ended_streams
    assert fast_heartbeats.hub.counters.slow_demotions == 0


async def test_a_wait_for_an_unreadable_log_ends_at_the_next_heartbeat(
    monkeypatch: pytest.MonkeyPatch, without_ring: World
) -> None:
    """The time since the last heartbeat counts: the wait is not a whole heartbeat interval from the failure on."""
    loop, beat_seconds = asyncio.get_running_loop(), without_ring.hub.limits.heartbeat_seconds
    asked: list[float] = []
    waits: list[float] = []
    waiting = without_ring.hub.wait_for_log

    async def away(after: Position, most: int) -> LogPage:
        asked.append(loop.time())
        await eventually(lambda: loop.time() > asked[0] + 0.02, what="some of the time to the next heartbeat to pass")
        raise Unavailable("the log cannot be read")

    async def noted(seconds: float) -> None:
        waits.append(seconds)
        await waiting(seconds)

    without_ring.log.read_page = away  # type: ignore[method-assign]  # the fault
    monkeypatch.setattr(without_ring.hub, "wait_for_log", noted)
    without_ring.post("before")
    without_ring.open(LOG_START, firehose="true")
    await eventually(lambda: waits, what="the wait")
    assert waits[0] < beat_seconds - 0.02
