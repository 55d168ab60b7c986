"""The flusher writes one wave in an iteration of the loop, and survives an error."""

import asyncio
from collections import defaultdict
from typing import Any

import pytest

from stream_server.hub.batch import Batch, WriteLimits
from stream_server.hub.disconnect import TOO_SLOW
from stream_server.hub.heartbeats import Heartbeats
from tests.stream_server.hub.world import World
from tests.waiting import eventually


@pytest.mark.parametrize("joins", [False, True], ids=["nobody joins", "somebody joins"])
async def test_an_iteration_of_the_loop_writes_one_wave_only(
    monkeypatch: pytest.MonkeyPatch, large_buffer: World, *, joins: bool
) -> None:
    """Also if a new client makes the group flush in the same iteration: two waves at once may exceed the limit."""
    loop, iteration = asyncio.get_running_loop(), 0
    waves: dict[int, set[int]] = defaultdict(set)
    writing = Batch.write_slice

    def noted(self: Batch, room: WriteLimits, most: int) -> None:
        waves[iteration].add(self.wave_number)
        writing(self, room, most)

    def count() -> None:
        nonlocal iteration
        iteration += 1
        counting[0] = loop.call_soon(count)

    monkeypatch.setattr(Batch, "write_slice", noted)
    _, socket = large_buffer.open(firehose="true")
    counting = [loop.call_soon(count)]
    large_buffer.post("first")
    if joins:
        large_buffer.open(firehose="true")
    said = [f"post {number} {'x' * 200}" for number in range(60)]
    for text in said:
        large_buffer.post(text)
    await socket.expect_texts("first", *said)
    counting[0].cancel()
    assert large_buffer.hub.counters.slow_demotions == 0
    assert len(set().union(*waves.values())) >= 3
    assert {len(one) for one in waves.values()} == {1}


def _fail_once(monkeypatch: pytest.MonkeyPatch, kind: type, name: str) -> list[Exception]:
    """Let the next call of a method raise. Returns the list of errors that the loop reports."""
    errors: list[Exception] = []
    working = getattr(kind, name)

    def broken(self: object, *given: object) -> object:
        monkeypatch.setattr(kind, name, working)
        raise ZeroDivisionError

    def hear(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        errors.append(context["exception"])

    monkeypatch.setattr(kind, name, broken)
    asyncio.get_running_loop().set_exception_handler(hear)
    return errors


async def test_an_error_while_joining_a_batch_costs_no_client_an_event(
    monkeypatch: pytest.MonkeyPatch, large_buffer: World
) -> None:
    opened = [large_buffer.open(firehose="true") for _ in range(2)]  # the frames of a single client make no batch
    errors = _fail_once(monkeypatch, Batch, "_join")
    for text in ("one", "two"):  # a single frame is not joined
        large_buffer.post(text)
    await eventually(lambda: errors, what="the fault")
    await large_buffer.until_live(2)
    large_buffer.post("three")
    for _, socket in opened:
        await socket.expect_texts("one", "two", "three")
    assert [type(error) for error in errors] == [ZeroDivisionError]


async def test_an_error_while_sending_heartbeats_costs_one_heartbeat(
    monkeypatch: pytest.MonkeyPatch, short_deadlines: World
) -> None:
    _, socket = short_deadlines.open(firehose="true")
    errors = _fail_once(monkeypatch, Heartbeats, "_queue_heartbeat")
    short_deadlines.hub.start()
    await eventually(lambda: "heartbeat" in socket.kinds(), what="a heartbeat")
    assert [type(error) for error in errors] == [ZeroDivisionError]
    short_deadlines.hub.stop(lambda: TOO_SLOW)
