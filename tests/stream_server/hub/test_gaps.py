"""Gaps: a log that was trimmed, or that lost its end."""

import json
from typing import Any

import pytest

from stream_server.events.entry import PUBLIC_AUDIENCE, Entry
from stream_server.events.position import LOG_START, Position
from stream_server.hub.disconnect import RESYNC
from stream_server.hub.messages import Gap
from tests.stream_server.hub.world import Graph, World
from tests.waiting import eventually


def _gap_members(message: dict[str, object]) -> tuple[object, ...]:
    return tuple(message[name] for name in ("kind", "from", "to", "reason", "count"))


async def test_live_clients_get_a_gap_if_the_log_was_trimmed_before_the_hub_read_it(world: World) -> None:
    _, socket = world.open(firehose="true")
    await world.until_live()
    before = world.post("before").position
    to = Position(before.ms + 100, 0, before.n + 40)
    world.now_ms = to.ms
    world.hub.move_head(to, "trimmed", 40)
    world.post("after")
    await eventually(lambda: socket.texts() == ["before", "after"])
    assert _gap_members(socket.messages()[2]) == ("gap", before.cursor, to.cursor, "trimmed", 40)


async def test_live_clients_get_a_gap_after_a_rollback_and_then_the_new_entries(world: World) -> None:
    _, socket = world.open(firehose="true")
    await world.until_live()
    kept = world.post("kept").position
    world.post("lost")
    await eventually(lambda: socket.texts() == ["kept", "lost"])
    world.hub.move_head(kept, "rolled_back")
    world.post("other")
    await eventually(lambda: socket.texts() == ["kept", "lost", "other"])
    assert socket.messages()[3]["reason"] == "rolled_back"
    assert world.hub.head.n == kept.n + 1


async def test_a_cursor_of_a_lost_entry_in_the_ring_gets_a_gap_and_the_new_entries(world: World) -> None:
    kept = world.post("kept").position
    for text in "abc":
        lost = world.post(text).position
    world.hub.move_head(kept, "rolled_back")
    for text in "123456":
        world.post(text)
    _, socket = world.open(lost, firehose="true")
    await eventually(lambda: socket.texts() == list("123456"))
    assert _gap_members(socket.messages()[1]) == ("gap", lost.cursor, kept.cursor, "rolled_back", None)


async def test_a_cursor_of_a_lost_entry_beyond_the_ring_gets_a_gap(without_ring: World) -> None:
    world = without_ring
    kept = world.post("kept").position
    lost = world.post("lost").position
    world.log.entries.remove(world.log.entries[-1])
    world.hub.move_head(kept, "rolled_back")
    world.post("1")
    world.post("2")
    _, socket = world.open(lost, firehose="true")
    await eventually(lambda: socket.texts()[-1:] == ["2"])
    assert socket.messages()[1]["reason"] == "rolled_back"


async def test_a_demoted_client_skips_lost_entries_when_it_reads_again(world: World) -> None:
    _, socket = world.open(firehose="true")
    await world.until_live()
    socket.block()
    await world.post_until_demoted()
    stays = world.hub.ring.positions_newest_first()
    newest = next(stays)
    world.hub.move_head(next(stays), "rolled_back")
    world.post("after")
    socket.unblock()
    await eventually(lambda: socket.texts()[-1:] == ["after"])
    assert newest.cursor not in [message["cursor"] for message in socket.messages() if message["kind"] == "post"]


@pytest.mark.parametrize(
    "options",
    [
        {"following": {"7"}, "follow": "@me"},
        {"rules": "saved", "saved": {"1": "tea"}, "viewer_independent": False},
        {"rules": "saved", "saved": {"1": "tea"}, "viewer_independent": True},
    ],
    ids=str,
)
async def test_a_gap_ends_a_stream_of_follow_me_or_saved_rules(world: World, options: dict[str, Any]) -> None:
    """The gap may hold a follow or a change of the rules."""
    _, socket = world.open(**options)
    await world.until_live()
    world.hub.move_head(Position(world.now_ms + 10, 0, 50), "trimmed", 50)
    await eventually(lambda: socket.finished)
    assert socket.kinds() == ["hello", "gap", "goodbye"]
    assert socket.messages()[-1]["code"] == "resync"


async def test_a_gap_found_while_catching_up_ends_a_stream_of_saved_rules_with_resync(without_ring: World) -> None:
    _, socket = without_ring.open(rules="saved", saved={"1": "tea"})
    await without_ring.until_live()
    socket.block()
    await without_ring.post_until_demoted("tea")
    without_ring.change_rules("1", {"2": "milk"}, removed=("1",))
    without_ring.log.floor_n = without_ring.hub.head.n
    without_ring.post("tea at last")
    socket.unblock()
    await eventually(lambda: socket.finished)
    assert socket.kinds()[-2:] == ["gap", "goodbye"]
    assert socket.messages()[-1]["code"] == "resync"


async def test_a_replay_whose_end_was_lost_ends_at_the_head(world: World) -> None:
    world.post("one")
    kept = world.post("two").position
    lost = world.post("lost").position
    world.hub.move_head(kept, "rolled_back")
    _, socket = world.open(LOG_START, until=lost, firehose="true")
    _, late = world.open(lost, until=lost, firehose="true")
    await eventually(lambda: socket.finished and late.finished, what="the end")
    assert socket.texts() == ["one", "two"]
    assert socket.messages()[-1]["code"] == "backfill_done"


async def test_a_delete_after_a_gap_is_sent_to_the_users_own_stream(without_ring: World) -> None:
    """The stream was not sent the post, which is in the gap. Another stream of the client may have been."""
    without_ring.graphs["1"] = Graph(following={"7": 1})
    start = without_ring.post("first", "7").position
    lost = without_ring.post("lost", "7")
    without_ring.log.floor_n = without_ring.hub.head.n
    without_ring.delete(lost)
    _, socket = without_ring.open_user_stream("1", start)
    await without_ring.until_live()
    await eventually(lambda: socket.kinds() == ["hello", "gap", "delete"], what=str(socket.messages()))


async def test_a_delete_after_a_gap_up_to_the_head_is_sent_to_the_users_own_stream(without_ring: World) -> None:
    """All that is left of the log is an entry that the hub has not received yet."""
    without_ring.graphs["1"] = Graph(following={"7": 1})
    start = without_ring.post("first", "7").position
    lost = without_ring.post("lost", "7")
    head = without_ring.hub.head
    place = Position(head.ms + 1, 0, head.n + 1)
    body = {"wire": {"status": {"id": str(place.status_number), "uid": "7", "message": "newest"}}}
    newest = Entry(place, "post", PUBLIC_AUDIENCE, json.dumps(body).encode())
    without_ring.log.entries.append(newest)
    without_ring.log.floor_n = head.n
    _, socket = without_ring.open_user_stream("1", start)
    await without_ring.until_live()
    without_ring.hub.publish(newest, is_last=True)
    without_ring.delete(lost)
    await eventually(lambda: socket.kinds() == ["hello", "gap", "post", "delete"], what=str(socket.messages()))


async def test_a_gap_ends_a_poll_of_follow_me_with_resync(without_ring: World) -> None:
    request = without_ring.request(user="1", following={"7"}, follow="@me")
    for text in ("lost", "lost too"):
        without_ring.post(text)
    without_ring.log.floor_n = without_ring.hub.head.n
    without_ring.post("behind the gap", "7")
    polled = await without_ring.poll(request).run(0)
    (gap,) = polled.items
    assert isinstance(gap, Gap)
    assert polled.position == gap.end
    assert polled.disconnect_reason is RESYNC
