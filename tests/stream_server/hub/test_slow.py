"""Clients that are slow, stuck or gone, and filters that fail: nobody else pays for them."""

from collections.abc import Hashable

import pytest

from filters.event import Event
from stream_server.errors import Unavailable
from stream_server.events import START, Position
from stream_server.hub import closing as reasons
from stream_server.hub.poll import Poll
from stream_server.hub.reader import LogPage
from tests.stream_server.hub.world import LIMITS, World
from tests.waiting import eventually


async def _live(world: World, count: int = 1) -> None:
    await eventually(lambda: world.hub.live_members() == count, what=f"{count} live")


async def test_a_client_that_takes_no_byte_for_the_write_deadline_is_dropped(impatient: World) -> None:
    """Its connection is aborted; nothing of it stays."""
    stream, socket = impatient.open(firehose="true")
    await _live(impatient)
    socket.block()

    def aborted() -> bool:
        impatient.post("x" * 500)
        return socket.aborted

    await eventually(aborted, what="the stuck client to be dropped")
    assert stream.member.closing == reasons.TOO_SLOW


async def test_a_client_that_reads_slowly_is_not_dropped(impatient: World) -> None:
    """A byte within each deadline is progress."""
    _, socket = impatient.open(firehose="true")
    await _live(impatient)
    socket.block()
    for _ in range(20):
        impatient.post("x" * 500)
    looks = 0

    def trickled() -> bool:
        nonlocal looks
        looks += 1
        if len(socket.waiting) > 1:
            socket.received += socket.waiting[:1]
            del socket.waiting[:1]
        return looks > 60  # six deadlines

    await eventually(trickled)
    assert not socket.aborted
    socket.unblock()
    await eventually(lambda: len(socket.texts()) == 20)


async def test_a_client_that_falls_behind_is_told_once(world: World) -> None:
    """Behind what it was sent, and not again soon; who reads in time hears nothing of it."""
    _, slow = world.open(firehose="true")
    _, quick = world.open(firehose="true")
    for burst in ("first", "second"):
        await _live(world, 2)
        slow.block()
        refused = world.hub.counts.refused

        def refusing(before: int = refused) -> bool:
            world.post("x" * 500)
            return world.hub.counts.refused > before

        await eventually(refusing, what="a refusal")
        world.post(burst)
        slow.unblock()
        await slow.ends_with(burst)
    (warning,) = (message for message in slow.messages() if message["kind"] == "warning")
    assert (warning["code"], warning["percent"]) == ("falling_behind", 100)
    assert slow.texts() == quick.texts()
    assert "warning" not in quick.kinds()


async def test_a_token_that_ends_while_the_log_cannot_be_read_ends_the_stream_soon(ringless: World) -> None:
    """The goodbye does not wait for Redis."""

    async def away(after: Position, most: int) -> LogPage:
        raise Unavailable("the log cannot be read")

    ringless.post("one")
    ringless.log.page = away  # type: ignore[method-assign]  # the outage
    stream, socket = ringless.open(START, firehose="true")
    await eventually(lambda: len(ringless.hub.errands) == 1)
    stream.member.close(reasons.TOKEN_EXPIRED)
    await eventually(lambda: socket.kinds() == ["hello", "goodbye"], seconds=LIMITS.heartbeat_seconds / 100)


async def test_a_failing_log_ends_the_stream_instead_of_leaving_it_silent(ringless: World) -> None:
    """An exception of our own is counted, and the connection dropped."""

    async def broken(after: Position, most: int) -> LogPage:
        raise RuntimeError("not what was expected")

    ringless.post("one")
    ringless.log.page = broken  # type: ignore[method-assign]  # the fault
    _, socket = ringless.open(START, firehose="true")
    await eventually(lambda: socket.aborted)
    assert ringless.hub.errands.failures == 1


async def test_a_socket_that_raises_costs_the_others_nothing(world: World) -> None:
    """A transport closed under a live client: its own stream ends, the flush goes on, now and later."""
    streams = [world.open(firehose="true") for _ in range(5)]
    await _live(world, 5)
    broken, socket = streams[2]

    def closed(data: bytes) -> None:
        raise RuntimeError("the handler is closed")

    broken.member.write = socket.write = closed  # type: ignore[method-assign]  # the fault
    group = broken.member.group
    assert group is not None
    group._changed()  # its seats hold the methods; they are taken anew, as after any coming or going
    world.post("one")
    others = [other for stream, other in streams if stream is not broken]
    await eventually(lambda: all(other.texts() == ["one"] for other in others))
    await eventually(lambda: socket.aborted, what="the broken one to be dropped")
    world.post("two")
    await eventually(lambda: all(other.texts() == ["one", "two"] for other in others))
    assert world.hub.errands.failures == 1


async def test_a_filter_that_raises_hurts_nobody_else(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Live, catching up and on the delete of an old post: it matches nothing, and is counted."""
    old = world.post("old")
    stream, socket = world.open(START, user="1", following={"7"}, follow="@me", track="boom")
    _, other = world.open(firehose="true")
    await _live(world, 2)

    def boom(event: Event) -> Hashable:
        raise ZeroDivisionError

    track = next(base for base in stream.member.ask.subscription.bases if base.name == "track")
    monkeypatch.setattr(type(track), "matches", lambda self, event: boom(event))
    world.post("boom", uid="9")
    world.delete(old)
    world.post("after", uid="7")
    await eventually(lambda: other.texts()[-1:] == ["after"])
    await eventually(lambda: socket.texts()[-1:] == ["after"])
    assert world.hub.counts.failed + world.hub.reader.failures > 0


async def test_a_poll_is_woken_by_what_matches_and_by_nothing_else(world: World) -> None:
    """It answers with the first match, and its cursor is where it read to."""
    stream, _ = world.open(track="yes")
    ask = stream.member.ask
    poll = Poll(world.hub, ask, limit=10, lost=None)
    world.post("no")
    world.post("yes 1")
    polled = await poll.run(5)
    assert len(polled.items) == 1
    assert polled.position == world.hub.head
    again = await Poll(world.hub, ask._replace(position=polled.position), limit=10, lost=None).run(0.05)
    assert (again.items, again.position, again.more) == ([], world.hub.head, False)


async def test_what_was_read_is_let_go_of_again(world: World) -> None:
    """Decoded and framed entries are kept for a moment only: the ring's bound is of its bytes."""
    _, socket = world.open(firehose="true")
    await _live(world)
    entry = world.post("hello")
    await eventually(lambda: socket.texts() == ["hello"])
    world.hub.ring.cool()
    assert (entry._view, entry._wire, entry._frames) == (None, None, None)
    _, late = world.open(START, firehose="true")
    await eventually(lambda: late.texts() == ["hello"])
