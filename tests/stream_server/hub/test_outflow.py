"""How what waits leaves: a wave a turn, and on after a fault of ours."""

import asyncio
from collections import defaultdict
from typing import Any

import pytest

from stream_server.hub.batch import Batch, WriteLimits
from stream_server.hub.disconnect import TOO_SLOW
from stream_server.hub.heartbeats import Heartbeats
from tests.stream_server.hub.world import World
from tests.waiting import eventually


@pytest.mark.parametrize("comes", [False, True], ids=["nobody comes", "somebody comes"])
async def test_a_turn_writes_of_one_wave_only(monkeypatch: pytest.MonkeyPatch, roomy: World, *, comes: bool) -> None:
    """Also where a newcomer has what waits sent behind it in the turn of a flush: two waves may be too much at once."""
    loop, turn = asyncio.get_running_loop(), 0
    waves: dict[int, set[int]] = defaultdict(set)
    writing = Batch.write_slice

    def noted(self: Batch, room: WriteLimits, most: int) -> None:
        waves[turn].add(self.wave_number)
        writing(self, room, most)

    def count() -> None:
        nonlocal turn
        turn += 1
        counting[0] = loop.call_soon(count)

    monkeypatch.setattr(Batch, "write_slice", noted)
    _, socket = roomy.open(firehose="true")
    counting = [loop.call_soon(count)]
    roomy.post("first")
    if comes:
        roomy.open(firehose="true")
    said = [f"post {number} {'x' * 200}" for number in range(60)]
    for text in said:
        roomy.post(text)
    await socket.tells("first", *said)
    counting[0].cancel()
    assert roomy.hub.counters.slow_demotions == 0
    assert len(set().union(*waves.values())) >= 3
    assert {len(one) for one in waves.values()} == {1}


def _once(monkeypatch: pytest.MonkeyPatch, kind: type, name: str) -> list[Exception]:
    """The method raises what nobody foresaw when it is called next; gives what its loop heard of."""
    heard: list[Exception] = []
    working = getattr(kind, name)

    def broken(self: object, *given: object) -> object:
        monkeypatch.setattr(kind, name, working)
        raise ZeroDivisionError

    def hear(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        heard.append(context["exception"])

    monkeypatch.setattr(kind, name, broken)
    asyncio.get_running_loop().set_exception_handler(hear)
    return heard


async def test_a_fault_costs_one_batch_and_nobody_an_event(monkeypatch: pytest.MonkeyPatch, roomy: World) -> None:
    """It is told of, who was to have that batch reads it from the ring, and what comes later leaves."""
    stream, socket = roomy.open(firehose="true")
    heard = _once(monkeypatch, Batch, "_join")
    for text in ("one", "two"):  # a single frame is not joined
        roomy.post(text)
    await eventually(lambda: heard, what="the fault")
    await eventually(lambda: stream.client in roomy.hub.live, what="it is live again")
    roomy.post("three")
    await socket.tells("one", "two", "three")
    assert [type(error) for error in heard] == [ZeroDivisionError]


async def test_a_fault_costs_one_beat(monkeypatch: pytest.MonkeyPatch, impatient: World) -> None:
    """The next one comes."""
    _, socket = impatient.open(firehose="true")
    heard = _once(monkeypatch, Heartbeats, "_queue_heartbeat")
    impatient.hub.start()
    await eventually(lambda: "heartbeat" in socket.kinds(), what="a heartbeat")
    assert [type(error) for error in heard] == [ZeroDivisionError]
    impatient.hub.stop(lambda: TOO_SLOW)
