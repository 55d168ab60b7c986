"""Signs of life: what an idle client learns by them, and that silence of the log harms nobody."""

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
async def lively() -> AsyncIterator[World]:
    """A hub that beats fast, and where every deadline is short."""
    limits = replace(
        LIMITS, heartbeat_seconds=0.05, write_timeout_seconds=0.1, slow_window_seconds=0.1, far_behind_entries=1
    )
    world = World(limits)
    world.hub.start()
    yield world
    for stream in world.streams:
        stream.connection_lost()
    await world.hub.background_tasks.cancel_all()


def beats(socket: Socket) -> list[object]:
    """The cursors of the heartbeats that came."""
    return [message["cursor"] for message in socket.messages() if message["kind"] == "heartbeat"]


def at(world: World, cursor: object) -> Position:
    """The place on the log that a client was told."""
    return next((entry.position for entry in world.log.entries if entry.position.cursor == cursor), LOG_START)


async def test_who_was_idle_returns_by_its_last_heartbeat_and_misses_nothing(lively: World) -> None:
    """Its cursor went on with what did not match; nothing of that is read again, and what matches comes once."""
    stream, idle = lively.open(track="wanted")
    for number in range(50):
        lively.post(f"other {number}")
    head = lively.hub.head
    await eventually(lambda: beats(idle)[-1:] == [head.cursor], what="a heartbeat from the head")
    stream.connection_lost()
    for number in range(50):
        lively.post(f"other {number}")
        lively.post(f"wanted {number}")
    _, again = lively.open(at(lively, beats(idle)[-1]), track="wanted")
    await again.tells(*(f"wanted {number}" for number in range(50)))


async def test_silence_of_the_log_is_no_outage(lively: World) -> None:
    """Through many deadlines nobody is cut, warned or sent back; then the next event comes to all."""
    sockets = [lively.open(since, firehose="true")[1] for since in [None, LOG_START] * 5]
    await eventually(lambda: all(len(beats(socket)) > 20 for socket in sockets), what="twenty heartbeats")
    assert lively.hub.count_live_clients() == len(sockets)
    lively.post("at last")
    for socket in sockets:
        await socket.tells("at last")
        assert set(socket.kinds()) == {"hello", "heartbeat", "post"}
    assert not lively.hub.counters.ended_streams
    assert lively.hub.counters.slow_demotions == 0


async def test_who_waits_for_a_log_that_is_away_waits_to_its_next_heartbeat_only(
    monkeypatch: pytest.MonkeyPatch, ringless: World
) -> None:
    """Not for a whole one from when the log went away, which comes on top of what it has waited already."""
    loop, beat_seconds = asyncio.get_running_loop(), ringless.hub.limits.heartbeat_seconds
    asked: list[float] = []
    waits: list[tuple[float, float]] = []
    waiting = ringless.hub.wait_for_log

    async def away(after: Position, most: int) -> LogPage:
        asked.append(loop.time())
        await eventually(lambda: loop.time() > asked[0] + 0.02, what="some of the time to the next heartbeat to pass")
        raise Unavailable("the log cannot be read")

    async def noted(seconds: float) -> None:
        waits.append((loop.time(), seconds))
        await waiting(seconds)

    ringless.log.read_page = away  # type: ignore[method-assign]  # the fault
    monkeypatch.setattr(ringless.hub, "wait_for_log", noted)
    ringless.post("before")
    ringless.open(LOG_START, firehose="true")
    await eventually(lambda: waits, what="the wait")
    began, seconds = waits[0]
    assert began > asked[0] + 0.02
    assert began + seconds <= asked[0] + beat_seconds
