"""Clients that are slow, stuck or gone, and filters that fail: nobody else pays for them."""

import asyncio
from collections.abc import Hashable
from dataclasses import replace
from functools import partial

import pytest

from filters.event import Event
from stream_server.errors import Unavailable
from stream_server.events.position import LOG_START, Position
from stream_server.hub import disconnect as reasons
from stream_server.hub.catchup.reader import LogPage
from stream_server.hub.poll import LongPoll
from stream_server.hub.stream_session import StreamSession
from tests.stream_server.hub.world import LIMITS, Socket, World
from tests.waiting import eventually


async def _live(world: World, count: int = 1) -> None:
    await eventually(lambda: world.hub.count_live_clients() == count, what=f"{count} live")


async def test_a_client_that_takes_no_byte_for_the_write_deadline_is_dropped(impatient: World) -> None:
    """Its connection is aborted; nothing of it stays."""
    stream, socket = impatient.open(firehose="true")
    await _live(impatient)
    socket.block()

    def aborted() -> bool:
        impatient.post("x" * 500)
        return socket.aborted

    await eventually(aborted, what="the stuck client to be dropped")
    assert stream.client.disconnect_reason == reasons.TOO_SLOW


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
        refused = world.hub.counters.slow_demotions

        def refusing(before: int = refused) -> bool:
            world.post("x" * 500)
            return world.hub.counters.slow_demotions > before

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
    ringless.log.read_page = away  # type: ignore[method-assign]  # the outage
    stream, socket = ringless.open(LOG_START, firehose="true")
    await eventually(lambda: len(ringless.hub.background_tasks) == 1)
    stream.client.disconnect(reasons.TOKEN_EXPIRED)
    await eventually(lambda: socket.kinds() == ["hello", "goodbye"], seconds=LIMITS.heartbeat_seconds / 100)


async def test_a_failing_log_ends_the_stream_instead_of_leaving_it_silent(ringless: World) -> None:
    """An exception of our own is counted, and the connection dropped."""

    async def broken(after: Position, most: int) -> LogPage:
        raise RuntimeError("not what was expected")

    ringless.post("one")
    ringless.log.read_page = broken  # type: ignore[method-assign]  # the fault
    _, socket = ringless.open(LOG_START, firehose="true")
    await eventually(lambda: socket.aborted)
    assert ringless.hub.background_tasks.failures == 1


@pytest.mark.parametrize("fault", [RuntimeError("the handler is closed"), OSError("what nobody foresaw")], ids=repr)
async def test_a_socket_that_raises_costs_the_others_nothing(world: World, fault: Exception) -> None:
    """A transport closed under a live client: its own stream ends, the flush goes on, now and later."""
    streams = [world.open(firehose="true") for _ in range(5)]
    await _live(world, 5)
    broken, socket = streams[2]

    def closed(data: bytes) -> None:
        raise fault

    broken.client.write = socket.write = closed  # type: ignore[method-assign]  # the fault
    (group,) = world.hub.live.groups()
    group.memberships.remove(broken.client)  # a recipient holds the methods of its socket: make a new one
    group.memberships.add(broken.client)
    world.post("one")
    others = [other for stream, other in streams if stream is not broken]
    await eventually(lambda: all(other.texts() == ["one"] for other in others))
    await eventually(lambda: socket.aborted, what="the broken one to be dropped")
    world.post("two")
    await eventually(lambda: all(other.texts() == ["one", "two"] for other in others))
    assert world.hub.background_tasks.failures == 1


async def test_a_filter_that_raises_hurts_nobody_else(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Live, catching up and on the delete of an old post: it matches nothing, and is counted."""
    old = world.post("old")
    stream, socket = world.open(LOG_START, user="1", following={"7"}, follow="@me", track="boom")
    _, other = world.open(firehose="true")
    await _live(world, 2)

    def boom(event: Event) -> Hashable:
        raise ZeroDivisionError

    track = next(base for base in stream.client.request.subscription.bases if base.name == "track")
    monkeypatch.setattr(type(track), "matches", lambda self, event: boom(event))
    world.post("boom", uid="9")
    world.delete(old)
    world.post("after", uid="7")
    await eventually(lambda: other.texts()[-1:] == ["after"])
    await eventually(lambda: socket.texts()[-1:] == ["after"])
    assert world.hub.counters.filter_failures + world.hub.catchup_reader.failures > 0


async def test_a_poll_is_woken_by_what_matches_and_by_nothing_else(world: World) -> None:
    """It answers with the first match, and its cursor is where it read to."""
    stream, _ = world.open(track="yes")
    ask = stream.client.request
    poll = LongPoll(world.hub, ask, limit=10, initial_gap=None)
    world.post("no")
    world.post("yes 1")
    polled = await poll.run(5)
    assert len(polled.items) == 1
    assert polled.position == world.hub.head
    again = await LongPoll(world.hub, ask._replace(position=polled.position), limit=10, initial_gap=None).run(0.05)
    assert (again.items, again.position, again.has_more) == ([], world.hub.head, False)


async def test_what_was_read_is_let_go_of_again(world: World) -> None:
    """Decoded and framed entries are kept for two beats at most: the ring's bound is of its bytes."""
    _, socket = world.open(firehose="true")
    await _live(world)
    entry = world.post("hello")
    await eventually(lambda: socket.texts() == ["hello"])
    for _ in range(2):  # at the second nobody has read it since the first
        world.hub.ring.drop_unread_caches()
    assert (entry._view, entry._wire, entry._frames) == (None, None, None)
    _, late = world.open(LOG_START, firehose="true")
    await eventually(lambda: late.texts() == ["hello"])


def _at(world: World, cursor: object) -> Position:
    """The place on the log that a client was told."""
    return next((entry.position for entry in world.log.entries if entry.position.cursor == cursor), LOG_START)


async def _trickle(socket: Socket) -> None:
    """A byte now and then, so that something moves within each deadline."""
    while True:
        if len(socket.waiting) > 1:
            socket.received += socket.waiting[:1]
            del socket.waiting[:1]
        await asyncio.sleep(0.02)  # the client's own pace


async def _hopeless(world: World) -> tuple[StreamSession, Socket, asyncio.Task[None]]:
    """A client that takes a byte now and then while the log goes on, until it is judged."""
    stream, socket = world.open(track="far")
    await _live(world, world.hub.count_live_clients() or 1)
    socket.block()
    trickle = asyncio.create_task(_trickle(socket))

    def judged() -> bool:
        world.post("far " + "x" * 500)
        return stream.client.disconnect_reason is not None

    await eventually(judged, what="somebody to be found hopeless")
    return stream, socket, trickle


async def test_who_is_far_behind_and_gains_nothing_is_told_to_go(hasty: World) -> None:
    """Behind what it had not read yet, with the cursor at which it goes on without a miss or a double."""
    near_stream, near = hasty.open(track="near")
    stream, socket, trickle = await _hopeless(hasty)
    trickle.cancel()
    assert stream.client.disconnect_reason == reasons.TOO_SLOW
    await eventually(lambda: socket.finished)
    socket.unblock()
    goodbye = socket.messages()[-1]
    assert (goodbye["kind"], goodbye["code"], goodbye["retry_after"]) == ("goodbye", "too_slow", 5.0)
    stream.connection_lost()
    assert hasty.hub.counters.ended_streams == {"too_slow": 1}
    _, again = hasty.open(_at(hasty, goodbye["cursor"]), track="far")
    said = [entry.event.text for entry in hasty.log.entries]
    await eventually(lambda: len(again.texts()) + len(socket.texts()) == len(said))
    assert socket.texts() + again.texts() == said
    assert near_stream.client.disconnect_reason is None
    assert "warning" not in near.kinds()


async def test_its_goodbye_waits_as_long_as_it_takes_bytes(hasty: World) -> None:
    """For several write deadlines; who takes none for one is dropped, and counted so."""
    stream, socket, trickle = await _hopeless(hasty)
    await eventually(lambda: socket.finished)
    deadline, began = hasty.hub.limits.write_timeout_seconds, asyncio.get_running_loop().time()
    await eventually(lambda: asyncio.get_running_loop().time() > began + 4 * deadline)
    assert not socket.aborted
    trickle.cancel()
    await eventually(lambda: socket.aborted)
    stream.connection_lost()
    assert hasty.hub.counters.ended_streams == {"aborted": 1}


def _went_on(world: World, stream: StreamSession, n: int) -> bool:
    return stream.client.position.n > n or stream.client in world.hub.live


@pytest.mark.extended
async def test_who_replays_from_far_behind_and_gains_is_not_cut(hasty: World) -> None:
    """For longer than a window it is far behind a log that goes on as fast but for a little; then it has everything."""
    hasty.hub.apply_limits(replace(hasty.hub.limits, slow_window_seconds=3.0))  # a busy machine may stop for a second
    for number in range(2000):
        hasty.post(f"{number} " + "x" * 100)
    stream, socket = hasty.open(LOG_START, firehose="true")
    clock = asyncio.get_running_loop().time
    ends = clock() + 1.5 * hasty.hub.limits.slow_window_seconds
    while clock() < ends:
        before = stream.client.position.n
        socket.unblock()
        await eventually(partial(_went_on, hasty, stream, before))
        socket.block()
        for _ in range(stream.client.position.n - before - 1):
            hasty.post("more")
        await asyncio.sleep(0.1)  # the client's own pace
    assert hasty.hub.head.n - stream.client.position.n > hasty.hub.limits.far_behind_entries
    socket.unblock()
    await eventually(lambda: stream.client in hasty.hub.live, what="live")
    await eventually(lambda: socket.received.count(b"\n") > len(hasty.log.entries), what="everything")
    assert socket.texts() == [entry.event.text for entry in hasty.log.entries]
    assert stream.client.disconnect_reason is None


async def test_a_live_client_is_warned_at_sixty_percent(roomy: World) -> None:
    """While it is live, before what comes next, with the truth; and not again when it then falls out of live."""
    stream, slow = roomy.open(firehose="true")
    _, quick = roomy.open(firehose="true")
    await _live(roomy, 2)
    slow.block()

    async def said(text: str) -> None:
        roomy.post(text + " " + "x" * 400)
        await eventually(lambda: quick.texts() and quick.texts()[-1].startswith(text))

    number = 0
    while b"warning" not in slow.waiting:
        number += 1
        await said(f"{number}")
    assert stream.client in roomy.hub.live
    while not roomy.hub.counters.slow_demotions:
        number += 1
        await said(f"{number}")
    await said("the last")
    slow.unblock()
    await eventually(lambda: slow.texts() == quick.texts())
    (warning,) = (message for message in slow.messages() if message["kind"] == "warning")
    assert warning["code"] == "falling_behind"
    assert isinstance(warning["percent"], int)
    assert 60 <= warning["percent"] < 100
    at = slow.messages().index(warning)
    _, again = roomy.open(_at(roomy, warning["cursor"]), firehose="true")
    await eventually(lambda: len(again.texts()) == len(quick.texts()) - (at - 1))
    assert slow.texts()[: at - 1] + again.texts() == quick.texts()


async def test_a_stream_is_warned_every_five_minutes_at_most(world: World) -> None:
    """Whatever the reason; with the share that is full, which is never more than all."""
    member = world.open(firehose="true")[0].client
    asked = {0: 0.609, 299: 0.9, 300: 1.2, 301: 1.0}
    told = {now: member.slow_warning(LOG_START, full, now) for now, full in asked.items()}
    percents = {now: notice and notice.members["percent"] for now, notice in told.items()}
    assert percents == {0: 60, 299: None, 300: 100, 301: None}
