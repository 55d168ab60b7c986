"""The flusher writes one wave in an iteration of the loop, and survives an error."""

import asyncio
from collections import defaultdict
from dataclasses import replace
from time import monotonic
from typing import Any

import pytest

from stream_server.hub import flusher
from stream_server.hub.disconnect import TOO_SLOW
from stream_server.hub.flusher import Flusher, Wave
from stream_server.hub.group import Batch
from stream_server.hub.live_clients import LiveClients
from stream_server.hub.messages import heartbeat_message
from tests.stream_server.hub.world import LIMITS, Socket, World
from tests.waiting import eventually


@pytest.mark.parametrize("joins", [False, True], ids=["nobody joins", "somebody joins"])
async def test_an_iteration_of_the_loop_writes_one_wave_only(
    monkeypatch: pytest.MonkeyPatch, large_buffer: World, *, joins: bool
) -> None:
    """Also if a new client makes the group flush in the same iteration: two waves at once may exceed the limit."""
    loop, iteration = asyncio.get_running_loop(), 0
    waves: dict[int, set[Wave]] = defaultdict(set)
    writing = Flusher._write_wave

    def noted(self: Flusher, wave: Wave) -> None:
        waves[iteration].add(wave)
        writing(self, wave)

    def count() -> None:
        nonlocal iteration
        iteration += 1
        counting[0] = loop.call_soon(count)

    monkeypatch.setattr(Flusher, "_write_wave", noted)
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


async def _begin_long_flush(monkeypatch: pytest.MonkeyPatch, large_buffer: World) -> list[Socket]:
    """Open three clients with different filters, and begin a flush in slices of one write.

    One client is served when this returns, and the others are due. The socket of the first comes first.
    """
    monkeypatch.setattr(flusher, "MAX_SLICE_WRITES", 1)
    sockets = [large_buffer.open(track=f"word,other{number}")[1] for number in range(3)]
    await large_buffer.until_live(3)
    large_buffer.post("word 1")
    large_buffer.hub.live.flusher.flush_if_due()
    return sorted(sockets, key=lambda socket: len(socket.texts()), reverse=True)


async def test_a_slice_ends_after_its_last_write(monkeypatch: pytest.MonkeyPatch, large_buffer: World) -> None:
    sockets = await _begin_long_flush(monkeypatch, large_buffer)
    assert [len(socket.texts()) for socket in sockets] == [1, 0, 0]
    await asyncio.sleep(0)
    assert sum(len(socket.texts()) for socket in sockets) == 2
    await asyncio.sleep(0)
    assert sum(len(socket.texts()) for socket in sockets) == 3


async def test_groups_are_written_in_the_order_of_their_first_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if a client of a group leaves or joins meanwhile, and if some groups have several clients."""
    world = World(replace(LIMITS, buffer_bytes=100_000))  # all entries are of one wave
    monkeypatch.setattr(flusher, "MAX_SLICE_WRITES", 1)
    sockets = [world.open(track=f"word{number}")[1] for number in range(6)]
    second, _ = world.open(track="word1")
    await world.until_live(7)
    for number in (3, 1, 4, 0, 5, 2, 3):
        world.post(f"word{number}")
    world.hub.unregister(second)
    world.open(track="word5")
    served: list[int] = []
    while len(served) < 6:
        await asyncio.sleep(0)
        new = [number for number, socket in enumerate(sockets) if socket.texts() and number not in served]
        assert len(new) <= 1
        served += new
    assert served == [3, 1, 4, 0, 5, 2]


async def test_what_waits_for_its_flush_waits_also_if_a_client_joins(
    monkeypatch: pytest.MonkeyPatch, large_buffer: World
) -> None:
    """A write outside of a flush would count towards the duration of the next one, which then waits longer."""
    _, socket = large_buffer.open(track="word")
    await large_buffer.until_live()
    flusher_of_hub = large_buffer.hub.live.flusher
    flusher_of_hub.pause.next_flush_at = (now := monotonic()) + 0.05
    monkeypatch.setattr(flusher, "monotonic", lambda: now)
    large_buffer.post("word 1")
    _, newcomer = large_buffer.open(track="word")
    for _ in range(3):
        await asyncio.sleep(0)
    assert socket.texts() == []
    large_buffer.post("word 2")
    await socket.expect_texts("word 1", "word 2")
    await newcomer.expect_texts("word 2")
    assert flusher_of_hub.flushes == 1


async def test_an_entry_that_arrives_during_a_flush_joins_the_writes_that_are_due(
    monkeypatch: pytest.MonkeyPatch, large_buffer: World
) -> None:
    sockets = await _begin_long_flush(monkeypatch, large_buffer)
    large_buffer.post("word 2")
    for socket in sockets:
        await socket.expect_texts("word 1", "word 2")
    assert [socket.writes for socket in sockets] == [3, 2, 2]  # the first of each is its hello


async def test_the_last_entry_of_a_read_waits_behind_a_flush(
    monkeypatch: pytest.MonkeyPatch, large_buffer: World
) -> None:
    sockets = await _begin_long_flush(monkeypatch, large_buffer)
    large_buffer.is_last = True
    for number in range(3):
        large_buffer.post(f"other{number}")
    await eventually(lambda: all(len(socket.texts()) == 2 for socket in sockets), what="two posts for each")
    assert [socket.texts()[0] for socket in sockets] == ["word 1"] * 3


async def test_a_client_that_joins_a_due_group_gets_no_older_frame(
    monkeypatch: pytest.MonkeyPatch, large_buffer: World
) -> None:
    sockets = await _begin_long_flush(monkeypatch, large_buffer)
    newcomers = [large_buffer.open(track=f"word,other{number}")[1] for number in range(3)]
    large_buffer.post("word 2")
    for newcomer in newcomers:
        await newcomer.expect_texts("word 2")
    for socket in sockets:
        await socket.expect_texts("word 1", "word 2")


async def test_a_call_after_the_flush_is_made_although_those_who_waited_have_left(
    monkeypatch: pytest.MonkeyPatch, large_buffer: World
) -> None:
    sockets = await _begin_long_flush(monkeypatch, large_buffer)
    stream, _ = large_buffer.open(track="news")
    large_buffer.post("news")
    made: list[list[int]] = []
    assert large_buffer.hub.live.flusher.call_after_flush(lambda: made.append([len(one.texts()) for one in sockets]))
    large_buffer.hub.unregister(stream)
    await eventually(lambda: made, what="the call")
    assert made == [[1, 1, 1]]


async def test_clients_that_leave_a_due_group_get_its_frames(
    monkeypatch: pytest.MonkeyPatch, large_buffer: World
) -> None:
    sockets = await _begin_long_flush(monkeypatch, large_buffer)
    for stream in large_buffer.streams:
        large_buffer.hub.live.leave(stream)
    assert [socket.texts() for socket in sockets] == [["word 1"]] * 3


async def test_a_due_group_collects_no_more_in_a_burst_than_its_client_may_have_unsent(
    monkeypatch: pytest.MonkeyPatch, large_buffer: World
) -> None:
    sockets = await _begin_long_flush(monkeypatch, large_buffer)
    said = [f"word {number} {'x' * 200}" for number in range(2, 60)]
    for text in said:
        large_buffer.post(text)
    for socket in sockets:
        await socket.expect_texts("word 1", *said)
    assert large_buffer.hub.counters.slow_demotions == 0


async def test_a_group_with_a_due_heartbeat_collects_no_more_in_a_burst_than_its_client_may_have_unsent(
    monkeypatch: pytest.MonkeyPatch, large_buffer: World
) -> None:
    """A wave without any entry counts no bytes, and its groups collect frames nevertheless."""
    monkeypatch.setattr(flusher, "MAX_SLICE_WRITES", 1)
    sockets = [large_buffer.open(track=f"word,other{number}")[1] for number in range(3)]
    live = large_buffer.hub.live
    for group in live.groups():
        live.queue_frame(group, group.framing.encode_control(heartbeat_message(live.head, 0, 0)), is_control=True)
    live.flusher.flush_if_due()
    said = [f"word {number} {'x' * 200}" for number in range(60)]
    for text in said:
        large_buffer.post(text)
    for socket in sockets:
        await socket.expect_texts(*said)
    assert large_buffer.hub.counters.slow_demotions == 0


def _fail_once(monkeypatch: pytest.MonkeyPatch, kind: type, name: str) -> list[Exception]:
    """Let the next call of a method raise. Returns the list of errors that the loop reports."""
    errors: list[Exception] = []
    working = getattr(kind, name)

    def broken(self: object, *given: object, **named: object) -> object:
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
    errors = _fail_once(monkeypatch, LiveClients, "queue_frame")
    short_deadlines.hub.start()
    await eventually(lambda: "heartbeat" in socket.kinds(), what="a heartbeat")
    assert [type(error) for error in errors] == [ZeroDivisionError]
    short_deadlines.hub.stop(lambda: TOO_SLOW)


async def test_the_only_client_of_a_group_gets_the_last_entry_of_a_read_at_once(large_buffer: World) -> None:
    stream, socket = large_buffer.open(track="word")
    counted = large_buffer.hub.live.flusher
    shared = [large_buffer.open(track="word,other")[1] for _ in range(2)]
    explained = large_buffer.open(track="word", explain=True)[1]
    ruled, other_rule = (large_buffer.open(rule=text)[1] for text in ("word", "tag:word"))
    large_buffer.is_last = True
    large_buffer.post("word 1")
    assert [alone.texts() for alone in (socket, explained, ruled, other_rule)] == [["word 1"]] * 4
    matched = [alone.messages()[-1].get("matched") for alone in (socket, ruled, other_rule)]
    assert matched == [None, [{"id": "r1", "tag": ""}], [{"id": "r1", "tag": "tag"}]]
    assert (stream.delivered, counted.times.delivered, counted.flushes, len(counted._wrapped)) == (1, 4, 1, 0)
    assert sum(sum(buckets) for _, buckets, _ in counted.times.histograms()) == 4
    assert counted.pause.flush_share > 0
    assert [other.texts() for other in shared] == [[]] * 2
    for other in shared:
        await other.expect_texts("word 1")
    assert counted.times.delivered == 6


async def test_entries_of_one_read_share_a_write(large_buffer: World) -> None:
    _, socket = large_buffer.open(track="word")
    large_buffer.post("word 1")
    large_buffer.is_last = True
    large_buffer.post("word 2")
    await socket.expect_texts("word 1", "word 2")
    assert socket.writes == 2  # the first is its hello


async def test_the_last_entry_of_a_read_waits_behind_a_full_wave(large_buffer: World) -> None:
    _, socket = large_buffer.open(track="word")
    said = []
    for length in range(1, 30):  # one of these reads ends just behind the end of a wave
        for number in range(length):
            said.append(f"word {length} {number} {'x' * 100}")
            large_buffer.is_last = number == length - 1
            large_buffer.post(said[-1])
        await socket.expect_last_text(said[-1])
    assert socket.texts() == said


@pytest.mark.parametrize("sizes", [[300] * 40, [4000, 5000]], ids=["many", "large"])
async def test_no_client_has_more_unsent_than_it_may(large_buffer: World, sizes: list[int]) -> None:
    _, socket = large_buffer.open(track="word")
    large_buffer.is_last = True
    socket.block()
    said = [f"word {number} {'x' * size}" for number, size in enumerate(sizes)]
    for text in said:
        large_buffer.post(text)
        await asyncio.sleep(0)
    assert socket.buffered_bytes() <= large_buffer.hub.limits.buffer_bytes
    assert large_buffer.hub.counters.slow_demotions == 1
    socket.unblock()
    await socket.expect_texts(*said)


async def test_an_entry_waits_behind_a_flush_that_is_not_due(
    monkeypatch: pytest.MonkeyPatch, large_buffer: World
) -> None:
    _, socket = large_buffer.open(track="word")
    large_buffer.is_last = True
    pause = large_buffer.hub.live.flusher.pause
    pause.next_flush_at = (now := monotonic()) + 0.05
    monkeypatch.setattr(flusher, "monotonic", lambda: now)
    large_buffer.post("word 1")
    large_buffer.post("word 2")
    assert socket.texts() == []
    await socket.expect_texts("word 1", "word 2")
    assert socket.writes == 2


async def test_more_clients_than_one_slice_has_wait_for_the_flush(
    monkeypatch: pytest.MonkeyPatch, large_buffer: World
) -> None:
    monkeypatch.setattr(flusher, "MAX_SLICE_WRITES", 2)
    sockets = [large_buffer.open(track=f"word,other{number}")[1] for number in range(3)]
    large_buffer.is_last = True
    large_buffer.post("word 1")
    assert [socket.texts() for socket in sockets] == [[]] * 3
    for socket in sockets:
        await socket.expect_texts("word 1")


async def test_a_client_without_room_catches_up_in_order(tiny_buffer: World) -> None:
    _, slow = tiny_buffer.open(track="word,slow")
    _, quick = tiny_buffer.open(track="word")
    tiny_buffer.is_last = True
    slow.block()
    said = [f"word {number} {'x' * 100}" for number in range(4)]
    for text in said:
        tiny_buffer.post(text)
        await quick.expect_last_text(text)
    assert tiny_buffer.hub.counters.slow_demotions == 1
    slow.unblock()
    await slow.expect_texts(*said)
    await quick.expect_texts(*said)


async def test_a_closed_transport_costs_the_other_clients_nothing(
    monkeypatch: pytest.MonkeyPatch, large_buffer: World
) -> None:
    gone, closed = large_buffer.open(track="word,closed")
    _, socket = large_buffer.open(track="word")

    def refuse(_: bytes) -> None:
        raise RuntimeError("the transport is closed")

    monkeypatch.setattr(gone, "write", refuse)
    large_buffer.is_last = True
    large_buffer.post("word 1")
    assert socket.texts() == ["word 1"]
    await closed.expect_texts("word 1")  # it catches up by its sink, which works here
    assert large_buffer.hub.counters.slow_demotions == 1


async def test_a_traced_entry_waits_for_the_flush_that_its_trace_shows(large_buffer: World) -> None:
    _, socket = large_buffer.open(track="word")
    large_buffer.is_last = True
    waits: list[bool] = []
    flusher_of_hub = large_buffer.hub.live.flusher
    large_buffer.hub.watch_entry = lambda _: lambda: waits.append(flusher_of_hub.call_after_flush(lambda: None))
    large_buffer.post("word 1")
    assert waits == [True]
    await socket.expect_texts("word 1")
