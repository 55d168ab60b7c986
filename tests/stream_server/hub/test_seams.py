"""Where one way of reading meets another: each rule that a hurried hand would break, with nothing to wait for."""

import asyncio
import random
from dataclasses import replace

from stream_server.events.entry import Entry
from stream_server.events.position import LOG_START, Position
from stream_server.hub.catchup.reader import LogPage
from stream_server.hub.poll import LongPoll
from tests.stream_server.hub.world import LIMITS, Socket, World
from tests.waiting import eventually


def _number(message: dict[str, object]) -> int:
    return int(str(message["cursor"]).rpartition(".")[2])


def _missed(socket: Socket, texts: list[str]) -> list[str]:
    """The first that differ: whole lists of a thousand texts tell nobody anything."""
    told = socket.texts()
    return [f"{one} is {other}" for one, other in zip(texts, [*told, *texts], strict=False) if one != other][:3]


async def test_what_is_published_while_streams_go_live_is_missed_by_none(world: World) -> None:
    """Between the look at the head and being live there is no turn of the loop in which something can happen."""
    source = random.Random(5)
    sockets: list[Socket] = []
    texts: list[str] = []
    for turn in range(600):
        if turn % 20 == 0:
            sockets.append(world.open(LOG_START, firehose="true")[1])
        if source.random() < 0.4:
            texts.append(str(turn))
            world.post(texts[-1])
        await asyncio.sleep(0)
    await eventually(lambda: world.hub.count_live_clients() == len(sockets), what="all to be live")
    world.post("last")
    await eventually(lambda: all(socket.texts()[-1:] == ["last"] for socket in sockets), what="the last one")
    assert [missed for socket in sockets if (missed := _missed(socket, [*texts, "last"]))] == []


async def test_what_waits_to_be_sent_is_not_for_who_comes_behind_it() -> None:
    """The newcomer begins at the head; the frame of the entry before it is not sent yet."""
    world = World(replace(LIMITS, buffer_bytes=1 << 20))  # where bytes are few, nothing waits
    _, early = world.open(firehose="true")
    await eventually(lambda: world.hub.count_live_clients() == 1)
    world.post("before")
    _, late = world.open(firehose="true")
    world.post("after")
    await early.tells("before", "after")
    assert late.texts() == ["after"]


async def test_who_was_refused_goes_on_with_what_was_refused(world: World) -> None:
    """A position that is moved past the refused frames would lose just these."""
    _, slow = world.open(firehose="true")
    _, quick = world.open(firehose="true")
    await eventually(lambda: world.hub.count_live_clients() == 2)
    slow.block()

    def refused() -> bool:
        world.post("x" * 500)
        return world.hub.counters.slow_demotions == 1

    await eventually(refused, what="a refusal")
    slow.unblock()
    await eventually(lambda: world.hub.count_live_clients() == 2, what="both to be live")
    world.post("last")
    await eventually(lambda: slow.texts()[-1:] == quick.texts()[-1:] == ["last"])
    assert slow.texts() == quick.texts()


async def test_who_reads_the_log_is_never_ahead_of_the_hub(ringless: World) -> None:
    """What is on the log and was not heard yet comes when it is heard, once."""
    world = ringless
    for number in range(3):
        world.post(str(number))
    ahead = world.post("ahead")
    world.hub.live.head = world.log.entries[-2].position  # as it was before that was heard
    world.hub.ring.floor = world.hub.head
    _, socket = world.open(LOG_START, firehose="true")
    await eventually(lambda: world.hub.count_live_clients() == 1, what="the stream to be live")
    assert (socket.texts(), socket.kinds().count("gap")) == (["0", "1", "2"], 0)
    world.hub.publish(ahead)
    world.post("behind")
    await eventually(lambda: socket.texts()[-1:] == ["behind"])
    assert (socket.texts(), socket.kinds().count("gap")) == (["0", "1", "2", "ahead", "behind"], 0)


async def test_a_position_is_what_was_scanned_and_not_what_matched(world: World) -> None:
    """A poll for what never comes gets on, and need not read the same again."""
    for number in range(10):
        world.post(f"red {number}")
    stream, _ = world.open(LOG_START, track="blue")
    polled = await LongPoll(world.hub, stream.client.request, limit=10, initial_gap=None).run(0)
    assert (polled.items, polled.position, polled.has_more) == ([], world.hub.head, False)


async def test_a_heartbeat_of_who_catches_up_tells_its_own_place() -> None:
    """Also where nothing matches for a long while; a cursor of the head would lose what is still to be read."""
    world = World(replace(LIMITS, ring_bytes=0, heartbeat_seconds=0.01))
    for number in range(40):
        world.post(f"{'red' if number in (0, 39) else 'green'} {number}")
    page = world.log.read_page

    async def slowly(after: Position, most: int) -> LogPage:
        await asyncio.sleep(0.02)  # longer than the time between heartbeats
        return await page(after, 4)

    world.log.read_page = slowly  # type: ignore[method-assign]  # a log that is far away
    _, socket = world.open(LOG_START, track="red")
    await eventually(lambda: world.hub.count_live_clients() == 1, what="the stream to be live")
    assert socket.texts() == ["red 0", "red 39"]
    told = socket.messages()[1:]
    assert [message["kind"] for message in told].count("heartbeat") > 2
    assert [_number(message) for message in told] == sorted({_number(message) for message in told})


async def test_a_delete_comes_to_whom_the_post_came_whatever_has_changed_since(world: World) -> None:
    """By what was sent, not by whom the stream follows today."""
    _, socket = world.open(user="1", following={"7"}, follow="@me")
    await eventually(lambda: world.hub.count_live_clients() == 1)
    seen: Entry = world.post("seen", uid="7")
    world.graph("unfollow", "1", "7")
    world.delete(seen)
    world.graph("follow", "1", "8")
    world.post("last", uid="8")
    await eventually(lambda: socket.texts()[-1:] == ["last"])
    assert socket.texts() == ["seen", f"-{seen.position.status_number}", "last"]


async def test_a_hub_that_goes_on_elsewhere_tells_so_before_it_goes_on(world: World) -> None:
    """Who was shown what is lost, and who only stood there."""
    _, all_of_it = world.open(firehose="true")
    _, other = world.open(firehose="true", kinds="follow")
    await eventually(lambda: world.hub.count_live_clients() == 2)
    kept = world.post("kept").position
    world.post("lost")
    world.hub.move_head(kept, "rolled_back")
    world.graph("follow", "1", "7")
    world.post("last")
    await all_of_it.ends_with("last")
    assert all_of_it.kinds() == ["hello", "post", "post", "gap", "post"]
    assert other.kinds() == ["hello", "gap", "follow"]
