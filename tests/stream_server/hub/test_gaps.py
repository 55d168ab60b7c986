"""What cannot be delivered is told: a log that was trimmed, or that lost its tail."""

import pytest

from stream_server.events.position import LOG_START, Position
from stream_server.hub.disconnect import RESYNC
from stream_server.hub.messages import Gap
from stream_server.hub.poll import LongPoll
from tests.stream_server.hub.world import World
from tests.waiting import eventually


async def _live(world: World, count: int = 1) -> None:
    await eventually(lambda: world.hub.count_live_clients() == count, what=f"{count} live")


def _gap(message: dict[str, object]) -> tuple[object, ...]:
    return tuple(message[name] for name in ("kind", "from", "to", "reason", "count"))


async def test_a_hub_that_was_away_for_too_long_tells_everyone_of_the_gap(world: World) -> None:
    """The log was trimmed before it was read: from, to and count, then it goes on."""
    _, socket = world.open(firehose="true")
    await _live(world)
    before = world.post("before").position
    to = Position(before.ms + 100, 0, before.n + 40)
    world.now_ms = to.ms
    world.hub.move_head(to, "trimmed", 40)
    world.post("after")
    await eventually(lambda: socket.texts() == ["before", "after"])
    assert _gap(socket.messages()[2]) == ("gap", before.cursor, to.cursor, "trimmed", 40)


async def test_a_rollback_is_told_to_the_live_and_what_comes_after_it_arrives(world: World) -> None:
    """Numbers are used again by other entries: they are no duplicates."""
    _, socket = world.open(firehose="true")
    await _live(world)
    kept = world.post("kept").position
    world.post("lost")
    await eventually(lambda: socket.texts() == ["kept", "lost"])
    world.hub.move_head(kept, "rolled_back")
    world.post("other")
    await eventually(lambda: socket.texts() == ["kept", "lost", "other"])
    assert socket.messages()[3]["reason"] == "rolled_back"
    assert world.hub.head.n == kept.n + 1


async def test_a_client_that_catches_up_from_a_lost_place_is_told_and_gets_the_rest(world: World) -> None:
    """Its position is not on the log any more, though its number is: recognised by the id."""
    kept = world.post("kept").position
    for text in "abc":
        lost = world.post(text).position
    world.hub.move_head(kept, "rolled_back")
    for text in "123456":
        world.post(text)
    _, socket = world.open(lost, firehose="true")
    await eventually(lambda: socket.texts() == list("123456"))
    assert _gap(socket.messages()[1]) == ("gap", lost.cursor, kept.cursor, "rolled_back", None)


async def test_a_lost_place_is_recognised_on_the_log_as_well(ringless: World) -> None:
    """Where the ring does not reach, the log knows that the entry is not the one."""
    world = ringless
    kept = world.post("kept").position
    lost = world.post("lost").position
    world.log.entries.remove(world.log.entries[-1])
    world.hub.move_head(kept, "rolled_back")
    world.post("1")
    world.post("2")
    _, socket = world.open(lost, firehose="true")
    await eventually(lambda: socket.texts()[-1:] == ["2"])
    assert socket.messages()[1]["reason"] == "rolled_back"


async def test_a_slow_client_that_refuses_the_gap_is_told_when_it_reads_again(world: World) -> None:
    """The gap is found once more from its own position."""
    _, socket = world.open(firehose="true")
    await _live(world)
    socket.block()
    posted = 0

    def refused() -> bool:
        nonlocal posted
        posted += 1
        world.post("x" * 300)
        return world.hub.counters.slow_demotions == 1

    await eventually(refused, what="a refusal")
    stays = world.hub.ring.positions_newest_first()
    newest = next(stays)
    world.hub.move_head(next(stays), "rolled_back")
    world.post("after")
    socket.unblock()
    await eventually(lambda: socket.texts()[-1:] == ["after"])
    assert newest.cursor not in [message["cursor"] for message in socket.messages() if message["kind"] == "post"]


async def test_who_follows_by_the_graph_is_sent_away_to_read_it_again(world: World) -> None:
    """A gap may have held a follow: @me cannot go on exactly, so the stream ends with its cursor."""
    _, socket = world.open(user="1", following={"7"}, follow="@me")
    await _live(world)
    world.hub.move_head(Position(world.now_ms + 10, 0, 50), "trimmed", 50)
    await eventually(lambda: socket.finished)
    assert socket.kinds() == ["hello", "gap", "goodbye"]
    assert socket.messages()[-1]["code"] == "resync"


@pytest.mark.parametrize("impersonal", [False, True])
async def test_who_goes_by_saved_rules_is_sent_away_to_have_them_read_again(world: World, *, impersonal: bool) -> None:
    """A gap may have held a change of the rules, also of a stream that is the same for all who ask for it."""
    _, socket = world.open(rules="saved", saved={"1": "tea"}, impersonal=impersonal)
    await _live(world)
    world.hub.move_head(Position(world.now_ms + 10, 0, 50), "trimmed", 50)
    await eventually(lambda: socket.finished)
    assert socket.kinds() == ["hello", "gap", "goodbye"]
    assert socket.messages()[-1]["code"] == "resync"


async def test_a_slow_stream_whose_gap_hid_a_change_of_its_rules_is_sent_away(ringless: World) -> None:
    """It finds the gap where it reads on."""
    _, socket = ringless.open(rules="saved", saved={"1": "tea"})
    await _live(ringless)
    socket.block()

    def refused() -> bool:
        ringless.post("tea " + "x" * 300)
        return ringless.hub.counters.slow_demotions == 1

    await eventually(refused, what="a refusal")
    ringless.change_rules("1", {"2": "milk"}, removed=("1",))
    ringless.log.floor_n = ringless.hub.head.n
    ringless.post("tea at last")
    socket.unblock()
    await eventually(lambda: socket.finished)
    assert socket.kinds()[-2:] == ["gap", "goodbye"]
    assert socket.messages()[-1]["code"] == "resync"


async def test_everyone_from_the_start_of_an_empty_log(world: World) -> None:
    """The cursor of an empty log's hello loses nothing."""
    for number in range(5):
        world.post(str(number))
    _, socket = world.open(LOG_START, firehose="true")
    await eventually(lambda: len(socket.texts()) == 5)
    assert "gap" not in socket.kinds()


async def test_a_replay_to_a_place_that_was_lost_ends_at_the_head(world: World) -> None:
    """It would look for its end for ever."""
    world.post("one")
    kept = world.post("two").position
    lost = world.post("lost").position
    world.hub.move_head(kept, "rolled_back")
    _, socket = world.open(LOG_START, until=lost, firehose="true")
    _, late = world.open(lost, until=lost, firehose="true")
    await eventually(lambda: socket.finished and late.finished, what="the end")
    assert socket.texts() == ["one", "two"]
    assert socket.messages()[-1]["code"] == "backfill_done"


async def test_a_poll_by_a_follow_set_ends_after_a_gap_that_may_hold_a_follow(ringless: World) -> None:
    """The set was copied before the gap, so it may be wrong after it. The poll ends with `resync`, as a stream does."""
    request = ringless.ask(user="1", following={"7"}, follow="@me")
    for text in ("lost", "lost too"):
        ringless.post(text)
    ringless.log.floor_n = ringless.hub.head.n
    ringless.post("behind the gap", "7")
    polled = await LongPoll(ringless.hub, request, limit=10, initial_gap=None).run(0)
    (gap,) = polled.items
    assert isinstance(gap, Gap)
    assert polled.position == gap.end
    assert polled.disconnect_reason is RESYNC
