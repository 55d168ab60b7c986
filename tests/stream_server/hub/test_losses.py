"""What the log lost before this hub heard it: told where the log says so, to the live and to who reads past it."""

import asyncio

import pytest

from stream_server.events.entry import Entry
from stream_server.events.position import LOG_START, Position
from stream_server.hub import disconnect as reasons
from stream_server.hub.messages import Gap
from stream_server.hub.poll import LongPoll
from tests.stream_server.hub.world import Graph, Socket, World
from tests.waiting import eventually


async def _live(world: World, count: int = 1) -> None:
    await eventually(lambda: world.hub.count_live_clients() == count, what=f"{count} live")


def _ahead(place: Position, count: int = 3) -> Position:
    """Where somebody else had heard so many entries more."""
    return Position(place.ms, place.seq + count, place.n + count)


def _word(world: World, start: Position, end: Position) -> Entry:
    """The log says what it has lost."""
    return world.tell("rollback", "-", **{"from": start.cursor, "to": end.cursor})


def _story(socket: Socket) -> list[object]:
    """What was posted, and from where to where something was lost, in order."""
    found: list[object] = []
    for message in socket.messages():
        if message["kind"] == "gap":
            found.append(tuple(message[name] for name in ("from", "to", "cursor", "reason", "count")))
        elif message["kind"] == "post":
            found.append(message["status"]["message"])  # type: ignore[index]  # a post has one
    return found


def _told(start: Position, word: Entry) -> tuple[object, ...]:
    here = word.position.cursor
    return start.cursor, here, here, "rolled_back", None


async def test_a_loss_that_was_never_heard_here_is_told_to_the_live_at_its_place(world: World) -> None:
    """Behind what came before it, ahead of what comes after, and nobody ends or goes back for it."""
    sockets = [world.open(firehose="true")[1], world.open(track="new")[1], world.open(follow="7")[1]]
    await _live(world, 3)
    kept = world.post("kept").position
    world.post("new 1")
    word = _word(world, kept, _ahead(kept))
    world.post("new 2")
    begins: list[list[object]] = [["kept"], [], ["kept"]]
    for socket, begun in zip(sockets, begins, strict=True):
        await socket.ends_with("new 2")
        assert _story(socket) == [*begun, "new 1", _told(kept, word), "new 2"]
    assert world.hub.count_live_clients() == 3


async def test_who_reads_past_the_place_of_a_loss_is_told_there(narrow: World) -> None:
    """Replayed from the ring, or from the log."""
    kept = narrow.post("kept").position
    narrow.post("1")
    word = _word(narrow, kept, _ahead(kept))
    narrow.post("2")
    _, socket = narrow.open(LOG_START, firehose="true")
    await socket.ends_with("2")
    assert _story(socket) == ["kept", "1", _told(kept, word), "2"]
    assert (narrow.log.reads == 0) == narrow.hub.ring.covers(LOG_START)


async def test_who_refuses_the_word_of_a_loss_reads_it_later(narrow: World) -> None:
    """Too slow for the gap as well, which is no event: it stands where it is when the stream comes by."""
    _, socket = narrow.open(firehose="true")
    await _live(narrow)
    socket.block()
    kept = narrow.post("x" * 300).position
    await eventually(lambda: len(socket.waiting) > 300, what="the first to be written")
    word = _word(narrow, kept, _ahead(kept))
    await eventually(lambda: narrow.hub.counters.slow_demotions == 1, what="a refusal")
    narrow.post("after")
    socket.unblock()
    await socket.ends_with("after")
    assert _story(socket) == ["x" * 300, _told(kept, word), "after"]


async def test_a_poll_has_it_among_its_events(world: World) -> None:
    """Also one that waits for anything to happen."""
    poll = LongPoll(world.hub, world.ask(track="new"), limit=10, initial_gap=None)
    running = asyncio.create_task(poll.run(60))
    await eventually(lambda: poll._wake_future is not None, what="the poll to wait")
    kept = world.post("kept").position
    word = _word(world, kept, _ahead(kept))
    polled = await running
    assert polled.items == [Gap(kept.cursor, word.position, "rolled_back", None)]
    assert polled.position == word.position
    world.post("new")
    again = await LongPoll(world.hub, world.ask(LOG_START, track="new"), limit=10, initial_gap=None).run(0)
    assert again.items[:1] == polled.items
    assert len(again.items) == 2


async def test_who_was_told_by_a_jump_is_not_told_twice_and_all_others_are(world: World) -> None:
    """Two who share their frames: one had heard what is lost, the other one came to the place before it meanwhile."""
    _, heard = world.open(firehose="true")
    await _live(world)
    kept = world.post("kept").position
    lost = world.post("lost").position
    await heard.ends_with("lost")
    _, unaware = world.open(kept, firehose="true")
    world.hub.move_head(kept, "rolled_back")
    await _live(world, 2)
    assert len(world.hub.live.groups()) == 1
    word = _word(world, kept, lost)
    world.post("after")
    back = (lost.cursor, kept.cursor, kept.cursor, "rolled_back", None)
    await heard.ends_with("after")
    await unaware.ends_with("after")
    assert _story(heard) == ["kept", "lost", back, "after"]
    assert _story(unaware) == [_told(kept, word), "after"]


async def test_who_had_heard_a_part_of_what_is_lost_is_told_of_the_rest(world: World) -> None:
    """The jump told of one entry; others that were acknowledged came behind it."""
    _, socket = world.open(firehose="true")
    await _live(world)
    kept = world.post("kept").position
    lost = world.post("lost").position
    await socket.ends_with("lost")
    world.hub.move_head(kept, "rolled_back")
    word = _word(world, kept, _ahead(lost))
    world.post("after")
    await socket.ends_with("after")
    assert _story(socket)[-2:] == [_told(kept, word), "after"]


async def test_who_goes_by_sets_that_were_read_from_what_is_lost_has_them_read_again(world: World) -> None:
    """Read ahead of this hub, they may hold a block that is no more; older ones have missed nothing."""
    kept = world.post("kept").position
    lost = _ahead(kept)
    world.graphs["2"] = Graph(blocks={"9": 1}, head=lost)
    _, sound = world.open(user="1", impersonal=False, firehose="true")
    _, ahead = world.open(user="2", impersonal=False, firehose="true")
    ruled = world.ask(user="3", rules="saved", saved={"1": "tea"}, impersonal=True)._replace(rules_read_at=lost)
    poll = asyncio.create_task(LongPoll(world.hub, ruled, limit=10, initial_gap=None).run(60))
    await _live(world, 3)
    world.graphs["2"] = Graph()
    _word(world, kept, lost)
    world.post("after", uid="9")
    await sound.ends_with("after")
    assert sound.kinds() == ["hello", "gap", "post"]
    await eventually(lambda: ahead.finished, what="the end of who is ahead")
    assert ahead.kinds() == ["hello", "goodbye"]
    assert (ahead.messages()[-1]["code"], ahead.messages()[-1]["cursor"]) == ("resync", kept.cursor)
    assert (await poll).disconnect_reason is reasons.RESYNC
    _, again = world.open(kept, user="2", impersonal=False, firehose="true")
    await again.ends_with("after")
    assert again.kinds() == ["hello", "gap", "post"]


@pytest.mark.parametrize("wire", [{"from": 1}, {"from": "here", "to": "there"}])
async def test_a_word_that_is_none_is_counted_and_passed_over(narrow: World, wire: dict[str, object]) -> None:
    """Somebody else than us writes of losses."""
    _, socket = narrow.open(firehose="true")
    await _live(narrow)
    narrow.tell("rollback", "-", **wire)
    narrow.post("after")
    _, late = narrow.open(LOG_START, firehose="true")
    for one in (socket, late):
        await one.hears("hello", "post")
    assert narrow.hub.counters.malformed == 1
