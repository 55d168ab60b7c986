"""Work that many clients bring at once is done in its order, for a limited time in each iteration of the loop."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from stream_server.runtime.event_loop import TurnQueue

MAX_SECONDS = 0.005


class Clock:
    """A clock that only the requests move.

    Attributes:
        begun: Numbers of the requests that have begun.
        reads: How often the clock was read.
    """

    def __init__(self) -> None:
        self.now = 0.0
        self.begun: list[int] = []
        self.reads = 0

    def __call__(self) -> float:
        self.reads += 1
        return self.now

    def begin(self, number: int, seconds: float) -> None:
        """Begin a request that takes ``seconds``."""
        self.begun.append(number)
        self.now += seconds


@pytest.fixture
def clock() -> Clock:
    """A clock at 0."""
    return Clock()


@pytest.fixture
async def queue(clock: Clock) -> TurnQueue:
    """An empty queue."""
    return TurnQueue(asyncio.get_running_loop(), MAX_SECONDS, clock)


@pytest.mark.parametrize("each", [1, 3, 10, 200])
async def test_the_requests_of_an_iteration_depend_on_how_long_they_take(
    clock: Clock, queue: TurnQueue, each: int
) -> None:
    seconds = 1.001 * MAX_SECONDS / each
    for number in range(4 * each):
        queue.run_in_turn(partial(clock.begin, number, seconds))
    for iteration in range(1, 5):
        assert (clock.begun, len(queue)) == (list(range(each * iteration)), each * (4 - iteration))
        await asyncio.sleep(0)


async def test_a_request_begins_at_once_if_nobody_waits_and_there_is_time(clock: Clock, queue: TurnQueue) -> None:
    for number in range(50):
        queue.run_in_turn(partial(clock.begin, number, 0.0))
    assert (clock.begun, len(queue)) == (list(range(50)), 0)
    queue.run_in_turn(partial(clock.begin, 50, MAX_SECONDS))
    await asyncio.sleep(0)
    queue.run_in_turn(partial(clock.begin, 51, 0.0))
    assert clock.begun == list(range(52))


async def test_the_clock_is_read_once_for_each_request_that_waits(clock: Clock, queue: TurnQueue) -> None:
    for number in range(101):
        queue.run_in_turn(partial(clock.begin, number, MAX_SECONDS / 200 if number else MAX_SECONDS))
    clock.reads = 0
    await asyncio.sleep(0)
    assert (len(clock.begun), clock.reads) == (101, 101)


async def test_nobody_overtakes_those_who_wait(clock: Clock, queue: TurnQueue) -> None:
    """Also a quick request that comes while the iteration has time left goes behind the others."""
    queue.run_in_turn(partial(clock.begin, 0, MAX_SECONDS))

    def begin_and_add() -> None:
        clock.begin(1, 0.0)
        queue.run_in_turn(partial(clock.begin, 3, 0.0))

    queue.run_in_turn(begin_and_add)
    queue.run_in_turn(partial(clock.begin, 2, 0.0))
    await asyncio.sleep(0)
    assert clock.begun == [0, 1, 2, 3]


async def test_an_error_stops_only_its_own_request(clock: Clock, queue: TurnQueue) -> None:
    loop, errors = asyncio.get_running_loop(), list[Any]()
    loop.set_exception_handler(lambda _, context: errors.append(context["exception"]))

    def fail(error: Exception) -> None:
        clock.begin(-1, MAX_SECONDS)
        raise error

    begins: list[Callable[[], None]] = [partial(clock.begin, number, MAX_SECONDS) for number in range(3)]
    begins.insert(2, partial(fail, failure := ValueError()))
    for begin in begins:
        queue.run_in_turn(begin)
    for _ in begins:
        await asyncio.sleep(0)
    assert (clock.begun, errors) == ([0, 1, -1, 2], [failure])
