"""Clients that are gone without a word, or there without a use: nothing of them stays. Real sockets."""

import asyncio
import socket
import sys
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from stream_server.errors import Unavailable
from stream_server.events.position import LOG_START, Position
from stream_server.hub import disconnect as reasons
from stream_server.hub.catchup.reader import LogPage
from stream_server.hub.limits import HubLimits
from tests.end_to_end.faults.clients import RawClient
from tests.stream_server.hub.site import left, site
from tests.stream_server.hub.world import LIMITS, World
from tests.waiting import eventually

linux = pytest.mark.skipif(sys.platform != "linux", reason="half-open sockets are made, and noticed, by Linux' means")

SHORT = replace(LIMITS, heartbeat_seconds=0.2, write_timeout_seconds=0.5, goodbye_seconds=0.2, buffer_bytes=1 << 20)


@pytest.fixture
async def short() -> World:
    """A hub with short deadlines and much room, so that nobody is refused before they are over."""
    return started(SHORT)


def started(limits: HubLimits) -> World:
    """A hub whose heart beats."""
    world = World(limits)
    world.hub.start()
    return world


async def live(world: World, count: int) -> None:
    """Wait until so many are at the head."""
    await eventually(lambda: world.hub.count_live_clients() == count, what=f"{count} live")


def unsent(world: World) -> list[float]:
    """What waits here for each client, without the kernel's share."""
    return [member.buffered_bytes() for member in world.hub.registry.list_clients()]


async def fill(world: World) -> None:
    """Say so much that the kernel takes no more for anybody."""

    def full() -> bool:
        for number in range(20):
            world.post(f"post {number} {'x' * 500}")
        return all(unsent(world)) and len(unsent(world)) == len(world.hub.registry)

    await eventually(full, what="full buffers")


Leave = Callable[[RawClient], None]


def half_close(client: RawClient) -> None:
    """Say that nothing more will be said; a stream's client has nothing to say, so it is gone."""
    client.socket.shutdown(socket.SHUT_WR)


@pytest.mark.parametrize("leave", [RawClient.close, RawClient.reset, half_close])
async def test_who_leaves_is_gone_at_once(leave: Leave) -> None:
    """Live and catching up, without a deadline: those are too long here to be waited for."""
    world = started(LIMITS)
    asked = 0

    def asks() -> Any:
        nonlocal asked
        asked += 1
        return world.ask(LOG_START if asked % 2 else None, user=str(asked), track="post")

    for number in range(2000):
        world.post(f"post {number} {'x' * 500}")
    async with site(world, asks) as made:
        before = left(world)
        clients = await made.connect(10)
        await eventually(
            lambda: (world.hub.count_live_clients(), len(world.hub.background_tasks)) == (5, 5), what="both kinds"
        )
        for client in clients:
            leave(client)
        await made.empties(before)
    assert world.hub.counters.ended_streams == {"left": 10}
    assert LIMITS.write_timeout_seconds >= 5


async def test_a_live_client_that_stops_reading_is_gone_within_a_heartbeat_and_the_write_deadline(short: World) -> None:
    """By the hub's look alone, though nothing is ever refused: its machine is there and acknowledges."""
    async with site(short, lambda: short.ask(track="post")) as made:
        before = left(short)
        await made.connect(5)
        await live(short, 5)
        await fill(short)
        await made.empties(before)
    assert short.hub.counters.ended_streams == {"aborted": 5}
    assert short.hub.counters.slow_demotions == 0


async def test_without_a_beat_a_live_client_that_stops_reading_would_stay(short: World) -> None:
    """The control: in a hub that never looks it is still there when it is gone from another."""
    unwatched = World(SHORT)
    async with AsyncExitStack() as both:
        sites = [site(world, partial(world.ask, track="post")) for world in (short, unwatched)]
        made, other = [await both.enter_async_context(one) for one in sites]
        for one in (other, made):
            await one.connect(1)
            await live(one.world, 1)
            await fill(one.world)
        await eventually(lambda: short.hub.counters.ended_streams["aborted"], what="the watched one to be gone")
        assert unwatched.hub.count_live_clients() == 1


async def test_who_reads_slowly_is_not_taken_for_gone(short: World) -> None:
    """Beside one that never reads: when that is gone, the other is there and hears of it."""
    async with site(short, lambda: short.ask(track="post")) as made:
        reads, _ = await made.connect(2)
        await live(short, 2)
        await fill(short)

        async def read_on() -> None:
            while b"the last" not in await reads.read(1024):  # noqa: ASYNC110 - the pace is the point
                await asyncio.sleep(0.005)  # its own pace

        reading = asyncio.create_task(read_on())
        await eventually(lambda: short.hub.counters.ended_streams["aborted"], what="the stuck one to be gone")
        assert len(short.hub.registry) == 1
        short.post("post, the last")
        await asyncio.wait_for(reading, 20)


@linux
@pytest.mark.parametrize("since", [None, LOG_START], ids=["live", "from a cursor"])
async def test_a_client_whose_machine_is_gone_is_found_by_its_silence(short: World, since: Any) -> None:
    """It neither acknowledges nor closes, and has nothing unsent here; beside one that is there."""
    async with site(short, lambda: short.ask(since, track="post")) as made:
        stays, *clients = await made.connect(6)
        await live(short, 6)
        for client in clients:
            client.vanish()
        await eventually(lambda: len(short.hub.registry) == 1, seconds=30, what="five to be gone")
        assert short.hub.counters.ended_streams == {"aborted": 5}
        assert short.hub.counters.slow_demotions == 0
        short.post("post, the last")
        await stays.read_until(b"the last")


@linux
async def test_a_machine_that_is_gone_is_found_while_its_client_reads_the_past() -> None:
    """The log is away meanwhile: nothing but heartbeats is written, which fill no buffer."""
    world = started(replace(SHORT, ring_bytes=0))
    world.post("post, the first")
    asked = 0

    async def away(after: Position, most: int) -> LogPage:
        nonlocal asked
        asked += 1
        raise Unavailable("the log cannot be read")

    world.log.read_page = away  # type: ignore[method-assign]  # the outage
    async with site(world, lambda: world.ask(LOG_START, track="post")) as made:
        stays, goes = await made.connect(2)
        await eventually(lambda: asked == 2, what="both to read")
        goes.vanish()
        await eventually(lambda: world.hub.counters.ended_streams, seconds=30, what="one to be gone")
        assert world.hub.counters.ended_streams == {"aborted": 1}
        assert len(world.hub.registry) == 1
        await stays.read_until(b"heartbeat")


@linux
async def test_without_the_roll_a_machine_that_is_gone_would_stay(short: World) -> None:
    """The control: of two hubs one does not call it; there it is still, when it is gone from the other."""
    uncalled = started(SHORT)
    uncalled.hub._heartbeats._dead_peer_check.check = lambda clients, min_silence_seconds: None  # type: ignore[method-assign]  # the mistake
    async with AsyncExitStack() as both:
        sites = [site(world, partial(world.ask, track="post")) for world in (uncalled, short)]
        for made in [await both.enter_async_context(one) for one in sites]:
            (client,) = await made.connect(1)
            await live(made.world, 1)
            client.vanish()
        await eventually(lambda: short.hub.counters.ended_streams["aborted"], seconds=30, what="one to be noticed")
        assert uncalled.hub.count_live_clients() == 1


async def read_slowly(client: RawClient, last: bytes) -> bytes:
    """About 40 KB a second, until ``last`` has come; nothing of it is missing if it begins as it should."""
    came = b""
    while last not in came[-8192:]:
        piece = await client.read(4096)
        assert piece, "the connection ended"
        came += piece
        await asyncio.sleep(0.1)  # its own pace
    return came


PATIENT = replace(SHORT, write_timeout_seconds=2.0)

ROOMY_BYTES = 65_536
"""The kernel's buffer, as servers have it: what waits there is more than a small window ever holds."""

LONG = 400
"""So many posts are 260 KB, for which a slow reader takes more than three deadlines."""


def tell_all(world: World) -> list[bytes]:
    """Say much at once, to whoever is there."""
    texts = [f"post {number} {'x' * 500}" for number in range(LONG)]
    for text in [*texts, "post, the last"]:
        world.post(text)
    return [text.encode() for text in texts]


@pytest.mark.parametrize("since", [None, LOG_START], ids=["live", "from a cursor"])
async def test_who_reads_slowly_behind_a_small_window_lives_and_gets_everything(since: Any) -> None:
    """Its window is shut most of the time, for many deadlines, and never opens far."""
    world = started(PATIENT)
    async with site(world, lambda: world.ask(since, track="post"), ROOMY_BYTES) as made:
        texts = tell_all(world) if since is not None else []
        (client,) = await made.connect(1, receive_bytes=16_384)
        if since is None:
            await live(world, 1)
            texts = tell_all(world)
        began = asyncio.get_running_loop().time()
        came = await asyncio.wait_for(read_slowly(client, b"the last"), 120)
        assert asyncio.get_running_loop().time() - began > 2 * PATIENT.write_timeout_seconds
        places = [came.find(text) for text in texts]
        assert places == sorted(places)
        assert -1 not in places
        assert not world.hub.counters.ended_streams


@pytest.mark.extended
@linux
async def test_with_the_kernels_own_deadline_who_reads_slowly_would_be_reset() -> None:
    """The control: Linux takes a closed window for silence, though the client's machine answers each probe."""
    world = started(PATIENT)
    async with site(world, lambda: world.ask(track="post"), ROOMY_BYTES) as made:
        (client,) = await made.connect(1, receive_bytes=16_384)
        await live(world, 1)
        deadline = int(PATIENT.write_timeout_seconds * 1000)
        connection = made.transports[0].get_extra_info("socket")
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, deadline)
        tell_all(world)
        with pytest.raises((ConnectionError, AssertionError)):
            await asyncio.wait_for(read_slowly(client, b"the last"), 120)
        await eventually(lambda: world.hub.counters.ended_streams == {"left": 1}, what="its end to be counted")


@pytest.mark.extended
async def test_a_goodbye_that_nobody_reads_is_not_waited_for(short: World) -> None:
    """At a stop, live or catching up: who never reads is dropped after the moment that goodbyes are given."""
    world = started(replace(SHORT, write_timeout_seconds=60.0, heartbeat_seconds=60.0))
    starts = [None, LOG_START]
    async with site(world, lambda: world.ask(starts[len(world.hub.registry) % 2], track="post")) as made:
        before = left(world)
        await made.connect(4)
        await fill(world)
        world.hub.stop(lambda: reasons.shutdown_reason(1.0))
        await world.hub.wait_until_empty(20)
        await made.empties(before)
    assert world.hub.counters.ended_streams == {"aborted": 4}


@pytest.mark.extended
async def test_a_thousand_that_come_and_go_leave_nothing() -> None:
    """Some before they are served, some catching up, some live, with a view of their own and without."""
    world = started(LIMITS)
    asked = 0

    def asks() -> Any:
        nonlocal asked
        asked += 1
        since, user = LOG_START if asked % 2 else None, str(asked % 100)
        if asked % 3 == 0:
            return world.ask(since, user=user, following={"7"}, follow="@me")
        return world.ask(since, user=user, track=f"post,w{asked % 7}")

    for number in range(200):
        world.post(f"post {number} {'x' * 500}")
    async with site(world, asks) as made:
        before = left(world)
        for _ in range(20):
            clients = [await RawClient.connect(made.address, receive_bytes=4096) for _ in range(50)]
            for number, client in enumerate(clients):
                client.reset() if number % 2 else client.close()
                world.post("post of now")
            await asyncio.sleep(0)
        await eventually(lambda: world.hub.counters.ended_streams.total() == made.begun, what="everybody to be gone")
        assert made.begun > 500
        await made.empties(before)
    assert world.hub.counters.ended_streams.keys() == {"left"}
    assert world.hub.background_tasks.failures == 0
