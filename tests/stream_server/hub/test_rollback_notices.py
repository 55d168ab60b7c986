"""Gaps for entries that the log lost before this hub received them, for live clients and on replay."""

import asyncio

import pytest

from stream_server.events.entry import Entry
from stream_server.events.position import LOG_START, Position
from stream_server.hub.messages import Gap
from tests.stream_server.hub.world import Graph, Socket, World
from tests.waiting import eventually


def _ahead(place: Position, count: int = 3) -> Position:
    """Return a position so many entries later, on another server."""
    return Position(place.ms, place.seq + count, place.n + count)


def _publish_rollback(world: World, start: Position, end: Position) -> Entry:
    return world.publish("rollback", "-", **{"from": start.cursor, "to": end.cursor})


def _posts_and_gaps(socket: Socket) -> list[object]:
    found: list[object] = []
    for message in socket.messages():
        if message["kind"] == "gap":
            found.append(tuple(message[name] for name in ("from", "to", "cursor", "reason", "count")))
        elif message["kind"] == "post":
            found.append(message["status"]["message"])  # type: ignore[index]  # a post has one
    return found


def _rollback_gap(start: Position, word: Entry) -> tuple[object, ...]:
    here = word.position.cursor
    return start.cursor, here, here, "rolled_back", None


async def test_live_clients_get_the_gap_of_entries_that_this_hub_never_received(world: World) -> None:
    sockets = [world.open(firehose="true")[1], world.open(track="new")[1], world.open(follow="7")[1]]
    await world.until_live(3)
    kept = world.post("kept").position
    world.post("new 1")
    word = _publish_rollback(world, kept, _ahead(kept))
    world.post("new 2")
    begins: list[list[object]] = [["kept"], [], ["kept"]]
    for socket, begun in zip(sockets, begins, strict=True):
        await socket.expect_last_text("new 2")
        assert _posts_and_gaps(socket) == [*begun, "new 1", _rollback_gap(kept, word), "new 2"]
    assert world.hub.live.count == 3


async def test_a_replay_gets_the_gap_at_its_position(tiny_buffer: World) -> None:
    kept = tiny_buffer.post("kept").position
    tiny_buffer.post("1")
    word = _publish_rollback(tiny_buffer, kept, _ahead(kept))
    tiny_buffer.post("2")
    _, socket = tiny_buffer.open(LOG_START, firehose="true")
    await socket.expect_last_text("2")
    assert _posts_and_gaps(socket) == ["kept", "1", _rollback_gap(kept, word), "2"]
    assert (tiny_buffer.log.reads == 0) == tiny_buffer.hub.ring.covers(LOG_START)


async def test_a_client_too_slow_for_the_gap_reads_it_later(tiny_buffer: World) -> None:
    _, socket = tiny_buffer.open(firehose="true")
    await tiny_buffer.until_live()
    socket.block()
    kept = tiny_buffer.post("x" * 300).position
    await eventually(lambda: len(socket.waiting) > 300, what="the first to be written")
    word = _publish_rollback(tiny_buffer, kept, _ahead(kept))
    await eventually(lambda: tiny_buffer.hub.counters.slow_demotions == 1, what="a refusal")
    tiny_buffer.post("after")
    socket.unblock()
    await socket.expect_last_text("after")
    assert _posts_and_gaps(socket) == ["x" * 300, _rollback_gap(kept, word), "after"]


async def test_a_poll_returns_the_gap_among_its_events(world: World) -> None:
    poll = world.poll(world.request(track="new"))
    running = asyncio.create_task(poll.run(60))
    await eventually(lambda: poll._wake_future is not None, what="the poll to wait")
    kept = world.post("kept").position
    word = _publish_rollback(world, kept, _ahead(kept))
    polled = await running
    assert polled.items == [Gap(kept.cursor, word.position, "rolled_back", None)]
    assert polled.position == word.position
    world.post("new")
    again = await world.poll(world.request(LOG_START, track="new")).run(0)
    assert again.items[:1] == polled.items
    assert len(again.items) == 2


async def test_a_client_that_got_the_gap_from_its_own_hub_does_not_get_it_twice(world: World) -> None:
    """Both clients share their frames. The other one had not received the lost entry, so it gets the recorded gap."""
    _, received = world.open(firehose="true")
    await world.until_live()
    kept = world.post("kept").position
    lost = world.post("lost").position
    await received.expect_last_text("lost")
    world.hub.move_head(kept, "rolled_back")
    _, unaware = world.open(kept, firehose="true")
    await world.until_live(2)
    assert len(world.hub.live.groups()) == 1
    word = _publish_rollback(world, kept, lost)
    world.post("after")
    back = (lost.cursor, kept.cursor, kept.cursor, "rolled_back", None)
    await received.expect_last_text("after")
    await unaware.expect_last_text("after")
    assert _posts_and_gaps(received) == ["kept", "lost", back, "after"]
    assert _posts_and_gaps(unaware) == [_rollback_gap(kept, word), "after"]


async def test_a_client_that_received_a_part_of_the_lost_entries_gets_the_gap_of_the_rest(world: World) -> None:
    _, socket = world.open(firehose="true")
    await world.until_live()
    kept = world.post("kept").position
    lost = world.post("lost").position
    await socket.expect_last_text("lost")
    world.hub.move_head(kept, "rolled_back")
    word = _publish_rollback(world, kept, _ahead(lost))
    world.post("after")
    await socket.expect_last_text("after")
    assert _posts_and_gaps(socket)[-2:] == [_rollback_gap(kept, word), "after"]


async def test_viewers_read_from_lost_entries_are_read_again(world: World) -> None:
    """Sets that were read at a later position than this hub's may hold a lost block. Older sets have missed nothing.

    Saved rules are those at the client's position, which is not lost.
    """
    kept = world.post("kept").position
    lost = _ahead(kept)
    world.graphs["2"] = Graph(blocks={"9": 1}, head=lost)
    _, sound = world.open(user="1", viewer_independent=False, firehose="true")
    _, ahead = world.open(user="2", viewer_independent=False, firehose="true")
    _, ruled = world.open(user="3", rules="saved", saved={"1": "after"}, viewer_independent=True)
    await world.until_live(3)
    world.graphs["2"] = Graph()
    _publish_rollback(world, kept, lost)
    world.post("after", uid="9")
    await sound.expect_last_text("after")
    await ruled.expect_last_text("after")
    assert sound.kinds() == ruled.kinds() == ["hello", "gap", "post"]
    await eventually(lambda: ahead.finished, what="the end of who is ahead")
    assert ahead.kinds() == ["hello", "goodbye"]
    assert (ahead.messages()[-1]["code"], ahead.messages()[-1]["cursor"]) == ("resync", kept.cursor)
    _, again = world.open(kept, user="2", viewer_independent=False, firehose="true")
    await again.expect_last_text("after")
    assert again.kinds() == ["hello", "gap", "post"]


@pytest.mark.parametrize("wire", [{"from": 1}, {"from": "here", "to": "there"}])
async def test_an_invalid_rollback_entry_is_counted_and_skipped(tiny_buffer: World, wire: dict[str, object]) -> None:
    _, socket = tiny_buffer.open(firehose="true")
    await tiny_buffer.until_live()
    tiny_buffer.publish("rollback", "-", **wire)
    tiny_buffer.post("after")
    _, late = tiny_buffer.open(LOG_START, firehose="true")
    for one in (socket, late):
        await one.expect_kinds("hello", "post")
    assert tiny_buffer.hub.counters.malformed == 1


async def test_a_client_is_never_ahead_of_a_hub_that_has_not_noticed_a_rollback(
    without_ring: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clock was set back, so the new log has more entries than the hub received, but all below the hub's head."""
    world, new = without_ring, World()
    new.now_ms -= 1000
    for text in ("1", "2", "3"):
        world.post(f"lost {text}")
    noticed, waits = asyncio.Event(), 0

    async def wait_until_noticed(_: float) -> None:
        nonlocal waits
        waits += 1
        await noticed.wait()

    monkeypatch.setattr(world.hub, "wait_for_log", wait_until_noticed)
    world.log.entries = [new.post(f"{number}") for number in range(5)]
    assert world.log.entries[-1].position < world.hub.head
    _, socket = world.open(LOG_START, firehose="true")
    await eventually(lambda: waits == 1, what="the client to wait for the check")
    assert socket.texts() == []
    world.hub.move_head(LOG_START, "rolled_back")
    for entry in world.log.entries:
        world.hub.publish(entry)
    noticed.set()
    await socket.expect_texts("0", "1", "2", "3", "4")
    assert socket.kinds() == ["hello", *["post"] * 5]
    assert waits == 1
