"""Streams that leave at once leave in turn, and the work for one of them does not grow with their number."""

import asyncio
import sys
from dataclasses import replace
from itertools import count, pairwise
from types import FrameType
from typing import Any

import pytest

from filters.subscription import Subscription
from filters.subscription_index import SubscriptionIndex
from filters.track import Track
from stream_server.events.position import LOG_START, Position
from stream_server.hub.catchup.reader import LogPage
from stream_server.hub.hub import LEAVE_SECONDS
from stream_server.runtime.event_loop import TurnQueue
from tests.stream_server.hub.world import LIMITS, World
from tests.waiting import eventually

CROWD = 60


async def test_a_crowd_leaves_in_several_iterations_and_gets_nothing_more() -> None:
    world, seconds = World(), count(0.0, LEAVE_SECONDS / 10)  # each look at the clock takes a tenth
    world.hub.departures = TurnQueue(asyncio.get_running_loop(), LEAVE_SECONDS, lambda: next(seconds))
    opened = [world.open(user=str(number), track=f"word{number},post") for number in range(CROWD)]
    written = [socket.writes for _, socket in opened]
    for session, _ in opened:
        session.connection_lost()
    left, iterations = [len(world.hub.registry)], 0
    assert left[0] > CROWD / 2
    world.post("post")
    while len(world.hub.registry):
        await asyncio.sleep(0)
        left.append(len(world.hub.registry))
        iterations += 1
    assert max(before - after for before, after in pairwise(left)) <= 11
    assert iterations >= CROWD / 11 - 1
    assert [socket.writes for _, socket in opened] == written
    assert (world.hub.counters.slow_demotions, len(world.hub.background_tasks)) == (0, 0)
    assert world.hub.counters.ended_streams == {"left": CROWD}


async def test_a_stream_that_was_stopped_takes_no_second_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has left the hub in the turn in which its connection closed. What is left to do is counted at once."""
    world, turns = World(), list[object]()
    session, _ = world.open(user="1", track="tea")
    session.stop()
    assert (len(world.hub.registry), world.hub.counters.ended_streams) == (0, {})
    monkeypatch.setattr(world.hub.departures, "run_in_turn", turns.append)
    session.connection_lost()
    session.connection_lost()
    assert (turns, world.hub.counters.ended_streams) == ([], {"left": 1})


async def test_a_stream_that_catches_up_writes_nothing_while_its_departure_waits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It would write to a closed transport, which raises an error."""
    world, answers, seconds = World(replace(LIMITS, ring_bytes=1000)), asyncio.Event(), count(0.0, LEAVE_SECONDS)
    read_page = world.log.read_page

    async def read_later(after: Position, most: int) -> LogPage:
        page = await read_page(after, most)
        await answers.wait()
        return page

    monkeypatch.setattr(world.log, "read_page", read_later)
    world.hub.departures = TurnQueue(asyncio.get_running_loop(), LEAVE_SECONDS, lambda: next(seconds))
    for number in range(20):
        world.post(f"post {number} {'x' * 200}")
    opened = [world.open(since=LOG_START, user=str(number), track="post") for number in range(CROWD)]
    await eventually(lambda: world.log.reads, what="a page that is read")
    for session, _ in opened:
        session.connection_lost()
    assert len(world.hub.registry) > CROWD / 2
    answers.set()
    await eventually(lambda: not len(world.hub.registry), what="everybody to be gone")
    assert [socket.writes for _, socket in opened] == [1] * CROWD  # the hello
    assert world.hub.counters.ended_streams == {"left": CROWD}


def calls_of_removals(size: int) -> int:
    """Return the calls of Python functions in which an index of ``size`` filters loses a hundred of them."""
    index: SubscriptionIndex[int] = SubscriptionIndex()
    for number in range(size):
        index.add(number, Subscription([Track.parse(f"word{number},topic{number % 50} common,everyone")]))
    calls = 0

    def note(_: FrameType, event: str, __: Any) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(note)
    try:
        for number in range(0, size, size // 100):
            index.remove(number)
    finally:
        sys.setprofile(None)
    return calls


def test_the_work_of_a_removal_does_not_grow_with_the_index() -> None:
    assert calls_of_removals(8000) <= 1.1 * calls_of_removals(1000)
