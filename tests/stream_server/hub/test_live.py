"""Live clients and clients that catch up receive each matching entry once, in order."""

import asyncio
import random
from dataclasses import replace
from functools import partial

import pytest

from filters.base import FilterFailure
from filters.subscription import Subscription
from filters.subscription_index import SubscriptionIndex
from filters.track import Track
from filters.within import Within
from stream_server.events.position import LOG_START, Position
from stream_server.hub import disconnect as reasons
from stream_server.hub.catchup.reader import LogPage
from stream_server.hub.delivery import Delivery
from stream_server.hub.group import ClientGroup
from tests.stream_server.hub.world import LIMITS, Socket, World
from tests.waiting import eventually


def _has_texts(socket: Socket, texts: list[str]) -> bool:
    return socket.texts() == texts


async def test_clients_with_equal_filters_share_one_group(world: World) -> None:
    _, first = world.open(track="a b,c")
    _, second = world.open(track="c,b a")
    await world.until_live(2)
    assert len(world.hub.live.index) == 1
    world.post("b and a")
    await eventually(lambda: first.texts() == second.texts() == ["b and a"])


async def test_visitors_with_one_reader_token_and_filter_share_one_group(world: World) -> None:
    """Whatever object has the filters, and no visitor has a viewer."""
    sockets = []
    for name in ("", "", "9"):
        asked = world.request(user=name, track="tea", viewer_independent=True)
        within = Within.parse("meta.site:blog" if name == "" else "meta.site:shop")
        sockets.append(world._begin(asked._replace(subscription=asked.subscription.for_everybody(within)))[1])
    await world.until_live(3)
    assert sorted(len(group.snapshot()) for group in world.hub.live.groups()) == [1, 2]


async def test_a_stop_sends_the_waiting_frames_and_then_goodbye(world: World) -> None:
    streams = [world.open(firehose="true") for _ in range(5)]
    await world.until_live(5)
    last = world.post("last")
    world.hub.stop(lambda: reasons.shutdown_reason(1.5))
    await eventually(lambda: all(socket.finished for _, socket in streams))
    for _, socket in streams:
        assert socket.texts() == ["last"]
        assert socket.messages()[-1]["cursor"] == last.position.cursor
    _, late = world.open(firehose="true")
    await eventually(lambda: late.kinds() == ["hello", "goodbye"])


async def test_clients_that_block_at_random_receive_exactly_their_posts(world: World) -> None:
    source = random.Random(11)
    begun: list[tuple[Socket, str, int]] = []
    for number in range(1500):
        if number % 50 == 0:
            word = source.choice(["red", "green", "blue"])
            _, socket = world.open(track=word)
            begun.append((socket, word, number))
        world.post(f"{number} {source.choice(['red', 'green', 'blue'])} " + "x" * 60)
        if source.random() < 0.2:
            socket = source.choice(begun)[0]
            socket.block() if source.random() < 0.5 else socket.unblock()
        if source.random() < 0.3:
            await asyncio.sleep(0)  # lets the hub write at random moments
    for socket, _, _ in begun:
        socket.unblock()
    posts = [entry for entry in world.log.entries if entry.kind == "post"]
    for socket, word, since in begun:
        wanted = [t for t in (e.event.text for e in posts[since:]) if f" {word} " in t]
        await eventually(partial(_has_texts, socket, wanted), what=f"{word} since {since}")
    assert world.hub.counters.slow_demotions > 0


async def test_a_publisher_can_wait_until_a_burst_is_written(world: World) -> None:
    _, socket = world.open(firehose="true")
    await world.until_live()
    for number in range(100):
        world.post(f"{number}")
    busy = world.hub.live.flusher.is_busy
    assert busy
    await world.hub.live.flusher.drained()
    assert not world.hub.live.flusher.is_busy
    assert len(socket.texts()) > 50
    await eventually(partial(_has_texts, socket, [str(number) for number in range(100)]))
    assert world.hub.counters.slow_demotions == 0


async def test_no_stream_misses_a_post_while_it_goes_live(world: World) -> None:
    source = random.Random(5)
    sockets: list[Socket] = []
    texts: list[str] = []
    for number in range(600):
        if number % 20 == 0:
            sockets.append(world.open(LOG_START, firehose="true")[1])
        if source.random() < 0.4:
            texts.append(str(number))
            world.post(texts[-1])
        await asyncio.sleep(0)  # lets clients catch up between two entries
    await world.until_live(len(sockets))
    world.post("last")
    await eventually(lambda: all(socket.texts()[-1:] == ["last"] for socket in sockets), what="the last one")
    assert [number for number, socket in enumerate(sockets) if socket.texts() != [*texts, "last"]] == []


async def test_a_client_that_joins_a_group_gets_no_frame_from_before_its_position() -> None:
    world = World(replace(LIMITS, buffer_bytes=1 << 20))  # where bytes are few, nothing waits
    _, early = world.open(firehose="true")
    await world.until_live()
    world.post("before")
    _, late = world.open(firehose="true")
    world.post("after")
    await early.expect_texts("before", "after")
    assert late.texts() == ["after"]
    assert sorted(client.delivered for client in world.hub.registry.list_clients()) == [1, 2]


async def test_frames_from_before_its_join_do_not_lower_the_number_of_a_clients_events() -> None:
    world = World(replace(LIMITS, buffer_bytes=1 << 20))  # where bytes are few, nothing waits
    _, early = world.open(firehose="true")
    late, _ = world.open(firehose="true")
    await world.until_live(2)
    live = world.hub.live
    live.remove(late, world.hub.head)
    late.written_before_joining = 5  # as if it had caught up
    late.position = world.post("before").position
    live.join(late)
    assert late.delivered == 5
    live.remove(late, world.hub.head)
    assert late.delivered == 5
    await early.expect_texts("before")


async def test_catching_up_from_the_log_stops_at_the_head_of_the_hub(without_ring: World) -> None:
    world = without_ring
    for number in range(3):
        world.post(str(number))
    ahead = world.post("ahead")
    world.hub.live.head = world.log.entries[-2].position  # as it was before that was heard
    world.hub.ring.floor = world.hub.head
    _, socket = world.open(LOG_START, firehose="true")
    await world.until_live()
    assert (socket.texts(), socket.kinds().count("gap")) == (["0", "1", "2"], 0)
    world.hub.publish(ahead)
    world.post("behind")
    await eventually(lambda: socket.texts()[-1:] == ["behind"])
    assert (socket.texts(), socket.kinds().count("gap")) == (["0", "1", "2", "ahead", "behind"], 0)


async def test_a_position_advances_past_entries_that_do_not_match(world: World) -> None:
    for number in range(10):
        world.post(f"red {number}")
    polled = await world.poll(world.request(LOG_START, track="blue")).run(0)
    assert (polled.items, polled.position, polled.has_more) == ([], world.hub.head, False)


async def test_a_poll_that_reads_several_pages_takes_no_more_than_its_limit(world: World) -> None:
    for n in range(20):
        world.post(f"red {n} {'x' * 20_000}")  # a page has six of them
    polled = await world.poll(world.request(LOG_START, track="red")).run(0)
    assert len(polled.items) == 10
    assert isinstance(polled.items[-1], Delivery)
    assert (polled.position, polled.has_more) == (polled.items[-1].entry.position, True)
    assert b"red 9 " in polled.items[-1].entry.wire


async def test_a_heartbeat_while_catching_up_has_the_position_of_the_client() -> None:
    world = World(replace(LIMITS, ring_bytes=0, heartbeat_seconds=0.01))
    for number in range(40):
        world.post(f"{'red' if number in (0, 39) else 'green'} {number}")
    page = world.log.read_page

    async def slowly(after: Position, most: int) -> LogPage:
        await asyncio.sleep(0.02)  # longer than the time between heartbeats
        return await page(after, 4)

    world.log.read_page = slowly  # type: ignore[method-assign]  # a log that is far away
    _, socket = world.open(LOG_START, track="red")
    await world.until_live()
    assert socket.texts() == ["red 0", "red 39"]
    assert socket.kinds().count("heartbeat") > 2
    numbers = [int(str(message["cursor"]).rpartition(".")[2]) for message in socket.messages()[1:]]
    assert numbers == sorted(set(numbers))


async def test_every_stream_gets_the_gap_of_a_rollback_before_newer_entries(world: World) -> None:
    _, all_of_it = world.open(firehose="true")
    _, other = world.open(firehose="true", kinds="follow")
    await world.until_live(2)
    kept = world.post("kept").position
    world.post("lost")
    world.hub.move_head(kept, "rolled_back")
    world.relate("follow", "1", "7")
    world.post("last")
    await all_of_it.expect_last_text("last")
    assert all_of_it.kinds() == ["hello", "post", "post", "gap", "post"]
    assert other.kinds() == ["hello", "gap", "follow"]


async def test_a_group_refused_by_the_index_leaves_nothing(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = SubscriptionIndex.add

    def fails_once(index: SubscriptionIndex[ClientGroup], group: ClientGroup, subscription: Subscription) -> None:
        monkeypatch.setattr(SubscriptionIndex, "add", whole)
        raise FilterFailure(Track.parse("tea"), ValueError("no index holds this"))

    monkeypatch.setattr(SubscriptionIndex, "add", fails_once)
    with pytest.raises(FilterFailure, match="no index holds this"):
        world.open(track="tea")
    _, socket = world.open(track="tea")
    await world.until_live()
    world.post("tea")
    await socket.expect_texts("tea")
