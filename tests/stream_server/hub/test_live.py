"""Live and catching up: who gets what, once, in order, whatever their socket does."""

import asyncio
import random
from functools import partial

from stream_server.events.position import LOG_START
from stream_server.hub import disconnect as reasons
from tests.stream_server.hub.world import LIMITS, Socket, World
from tests.waiting import eventually


def _has(socket: Socket, texts: list[str]) -> bool:
    return socket.texts() == texts


async def _until_live(world: World, count: int) -> None:
    await eventually(lambda: world.hub.count_live_clients() == count, what=f"{count} live")


async def test_hello_comes_first_and_then_what_matches(world: World) -> None:
    """A client hears hello with the head, then only what its filter asks for."""
    _, socket = world.open(track="redis")
    await _until_live(world, 1)
    world.post("about redis")
    world.post("about nothing")
    await eventually(lambda: len(socket.messages()) == 2)
    assert socket.kinds() == ["hello", "post"]
    assert socket.texts() == ["about redis"]


async def test_what_is_posted_before_live_is_not_missed(world: World) -> None:
    """Entries between the pinned position and going live arrive, although the client was not in the index yet."""
    _, socket = world.open(firehose="true")
    world.post("one")
    await eventually(lambda: socket.texts() == ["one"])
    world.post("two")
    await eventually(lambda: socket.texts() == ["one", "two"])


async def test_clients_that_ask_the_same_share_one_group(world: World) -> None:
    """Equal subscriptions, also with their words in another order, cost one index entry and one frame."""
    _, first = world.open(track="a b,c")
    _, second = world.open(track="c,b a")
    await _until_live(world, 2)
    assert len(world.hub.index) == 1
    world.post("b and a")
    await eventually(lambda: first.texts() == second.texts() == ["b and a"])


async def test_a_client_that_stops_reading_catches_up_without_miss_or_double(world: World) -> None:
    """What a full socket refuses is read again from its own position once there is room."""
    _, slow = world.open(firehose="true")
    _, healthy = world.open(firehose="true")
    await _until_live(world, 2)
    slow.block()
    posted = 0

    def refused() -> bool:
        nonlocal posted
        posted += 10
        for number in range(posted - 10, posted):
            world.post(f"post {number}")
        return world.hub.counters.slow_demotions == 1

    await eventually(refused, what="the slow one was refused")
    await eventually(lambda: len(healthy.texts()) == posted)
    assert len(slow.waiting) < LIMITS.buffer_bytes + 131_072 + 1000
    slow.unblock()
    await eventually(lambda: slow.texts() == healthy.texts())
    await _until_live(world, 2)


async def test_the_log_is_read_where_the_ring_does_not_reach(ringless: World) -> None:
    """A cursor older than the ring is served from the log, and then live."""
    world = ringless
    for number in range(600):
        world.post(f"{number}")
    _, socket = world.open(LOG_START, firehose="true")
    await eventually(lambda: len(socket.texts()) == 600)
    assert world.log.reads >= 2
    world.post("live")
    await eventually(lambda: socket.texts()[-1] == "live")
    assert socket.texts()[:-1] == [str(number) for number in range(600)]


async def test_what_the_log_lost_is_told_as_a_gap(ringless: World) -> None:
    """A trimmed log gives a gap with its count, then goes on from the floor."""
    world = ringless
    for number in range(10):
        world.post(f"{number}")
    world.log.floor_n = 4
    _, socket = world.open(LOG_START, firehose="true")
    await eventually(lambda: len(socket.texts()) == 6)
    gap = socket.messages()[1]
    assert (gap["kind"], gap["count"], gap["reason"], gap["from"]) == ("gap", 4, "trimmed", LOG_START.cursor)


async def test_a_post_deleted_by_now_is_left_out_of_a_replay(world: World) -> None:
    """The replay has the delete, not the post."""
    gone = world.post("gone")
    world.post("kept")
    world.delete(gone)
    _, socket = world.open(LOG_START, firehose="true")
    await eventually(lambda: len(socket.texts()) == 2)
    assert socket.texts() == ["kept", f"-{gone.position.status_number}"]


async def test_a_replay_does_not_show_what_a_repost_showed_of_a_deleted_post(world: World) -> None:
    """The repost stays, matched as it was; the words of the deleted post are gone from it."""
    secret = world.post("secret word")
    kept = world.post("kept word")
    world.post("", original=secret)
    world.post("", original=kept)
    world.delete(secret)
    _, socket = world.open(LOG_START, track="word")
    await eventually(lambda: socket.kinds() == ["hello", "post", "post", "post", "delete"])
    assert b"secret" not in socket.received
    assert socket.received.count(b'"original":null') == 1
    assert socket.received.count(b"kept word") == 2


async def test_a_delete_reaches_who_was_sent_the_post_although_unfollowed_since(world: World) -> None:
    """@me changes; the delete goes by what was delivered, and not to what was posted before the follow."""
    _, socket = world.open(user="1", following={"7"}, follow="@me")
    await _until_live(world, 1)
    seen = world.post("seen", uid="7")
    world.graph("unfollow", "1", "7")
    unseen = world.post("unseen", uid="7")
    world.delete(seen)
    world.delete(unseen)
    world.graph("follow", "1", "7")
    early = world.post("early", uid="8")
    world.graph("follow", "1", "8")
    world.delete(early)
    world.post("late", uid="8")
    await eventually(lambda: socket.texts()[-1:] == ["late"])
    assert socket.texts() == ["seen", f"-{seen.position.status_number}", "late"]


async def test_a_follow_takes_effect_at_its_position_also_while_catching_up(world: World) -> None:
    """A stream with @me that fell behind sees exactly what it would have seen live."""
    _, live = world.open(user="1", following={"7"}, follow="@me")
    _, slow = world.open(user="1", following={"7"}, follow="@me")
    await _until_live(world, 2)
    slow.block()
    source = random.Random(3)
    for number in range(300):
        uid = source.choice(["7", "8", "9"])
        if number % 5 == 0:
            world.graph(source.choice(["follow", "unfollow"]), "1", uid)
        else:
            world.post(f"{number} " + "x" * 40, uid=uid)
        await asyncio.sleep(0)
    await eventually(lambda: world.hub.counters.slow_demotions >= 1, what="the slow one was refused")
    slow.unblock()
    await eventually(lambda: world.hub.count_live_clients() == 2)
    await eventually(lambda: slow.texts() == live.texts())
    assert len(live.texts()) > 50


async def test_revocation_ends_the_streams_of_one_token(world: World) -> None:
    """A revoke entry of the log says goodbye to that token's streams and to nobody else's."""
    _, mine = world.open(user="1", firehose="true")
    _, other = world.open(user="2", firehose="true")
    await _until_live(world, 2)
    world.revoke("1", "j")
    await eventually(lambda: mine.kinds()[-1] == "goodbye")
    world.post("on")
    await eventually(lambda: other.texts() == ["on"])
    assert mine.messages()[-1]["code"] == "token_revoked"


async def test_a_stop_says_goodbye_to_all_with_what_waited_before_it(world: World) -> None:
    """The frames that wait are sent, then goodbye with a cursor at the head; who comes later is ended at once."""
    streams = [world.open(firehose="true") for _ in range(5)]
    await _until_live(world, 5)
    last = world.post("last")
    world.hub.stop(lambda: reasons.shutdown_reason(1.5))
    await eventually(lambda: all(socket.finished for _, socket in streams))
    for _, socket in streams:
        assert socket.texts() == ["last"]
        assert socket.messages()[-1]["cursor"] == last.position.cursor
    _, late = world.open(firehose="true")
    await eventually(lambda: late.kinds() == ["hello", "goodbye"])


async def test_nobody_stays_behind_when_clients_leave(world: World) -> None:
    """A cancelled stream leaves no group, no index entry and no member."""
    for number in range(20):
        world.open(track=f"word{number}")
    await _until_live(world, 20)
    for stream in world.streams:
        stream.connection_lost()
    assert (len(world.hub.registry), world.hub.count_live_clients(), len(world.hub.index)) == (0, 0, 0)


async def test_random_sockets_receive_exactly_what_they_asked_for(world: World) -> None:
    """Thirty clients that block, come back and join at random positions: each has its own exact history."""
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
            await asyncio.sleep(0)
    for socket, _, _ in begun:
        socket.unblock()
    posts = [entry for entry in world.log.entries if entry.kind == "post"]
    for socket, word, since in begun:
        wanted = [t for t in (e.event.text for e in posts[since:]) if f" {word} " in t]
        await eventually(partial(_has, socket, wanted), what=f"{word} since {since}")
    assert world.hub.counters.slow_demotions > 0


async def test_who_publishes_a_burst_can_wait_until_it_is_on_its_way(world: World) -> None:
    """What was published without a turn of the loop leaves in many waves, a turn each, and nobody refuses them."""
    _, socket = world.open(firehose="true")
    await _until_live(world, 1)
    for number in range(100):
        world.post(f"{number}")
    busy = world.hub.flusher.is_busy
    assert busy
    await world.hub.flusher.drained()
    assert not world.hub.flusher.is_busy
    assert len(socket.texts()) > 50
    await eventually(partial(_has, socket, [str(number) for number in range(100)]))
    assert world.hub.counters.slow_demotions == 0


async def test_a_full_socket_does_not_keep_who_publishes_waiting(world: World) -> None:
    """Only the writing is waited for, never a client: one that reads nothing has refused by then."""
    _, stuck = world.open(firehose="true")
    await _until_live(world, 1)
    stuck.block()
    for number in range(100):
        world.post(f"{number}")
    await world.hub.flusher.drained()
    assert world.hub.counters.slow_demotions == 1
