"""Clients that leave, vanish or stop reading leave nothing behind. Real sockets."""

import asyncio
import socket
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from stream_server.errors import Unavailable
from stream_server.events.position import LOG_START, Position
from stream_server.hub import disconnect as reasons
from stream_server.hub.catchup.reader import LogPage
from stream_server.hub.limits import HubLimits
from tests.end_to_end.faults.clients import RawClient
from tests.stream_server.hub.listening_hub import listening_hub, resources
from tests.stream_server.hub.world import LIMITS, World
from tests.waiting import PATIENCE, eventually

linux = pytest.mark.skipif(sys.platform != "linux", reason="half-open sockets are made, and noticed, by Linux' means")

SHORT = replace(LIMITS, heartbeat_seconds=0.2, write_timeout_seconds=0.5, goodbye_seconds=0.2, buffer_bytes=1 << 20)


@pytest.fixture
async def short() -> World:
    """A hub with short timeouts and large buffers, so that it demotes no client before a timeout."""
    return started_world(SHORT)


def started_world(limits: HubLimits) -> World:
    world = World(limits)
    world.hub.start()
    return world


def unsent(world: World) -> list[float]:
    """Return the bytes buffered for each client, without the kernel's share."""
    return [member.buffered_bytes() for member in world.hub.registry.list_clients()]


async def fill(world: World) -> None:
    """Publish until the kernel takes no more bytes for any client."""

    def full() -> bool:
        for number in range(20):
            world.post(f"post {number} {'x' * 500}")
        return all(unsent(world)) and len(unsent(world)) == len(world.hub.registry)

    await eventually(full, what="full buffers")


Leave = Callable[[RawClient], None]


def half_close(client: RawClient) -> None:
    """Shut the sending side down. A client of a stream has nothing to send, so the server treats it as gone."""
    client.socket.shutdown(socket.SHUT_WR)


@pytest.mark.usefixtures("each_loop_over_clients")
@pytest.mark.parametrize("leave", [RawClient.close, RawClient.reset, half_close])
async def test_a_client_that_leaves_is_removed_at_once(leave: Leave) -> None:
    world = started_world(LIMITS)
    asked = 0

    def next_request() -> Any:
        nonlocal asked
        asked += 1
        return world.request(LOG_START if asked % 2 else None, user=str(asked), track="post")

    for number in range(2000):
        world.post(f"post {number} {'x' * 500}")
    async with listening_hub(world, next_request) as made:
        before = resources(world)
        clients = await made.connect(10)
        await world.until_live(5)
        await eventually(lambda: len(world.hub.background_tasks) == 5, what="five that catch up")
        for client in clients:
            leave(client)
        await made.until_empty(before)
    assert world.hub.counters.ended_streams == {"left": 10}
    assert LIMITS.write_timeout_seconds >= 5


async def test_a_live_client_that_stops_reading_is_dropped_after_heartbeat_and_write_timeout(short: World) -> None:
    async with listening_hub(short, lambda: short.request(track="post")) as made:
        before = resources(short)
        await made.connect(5)
        await short.until_live(5)
        await fill(short)
        await made.until_empty(before)
    assert short.hub.counters.ended_streams == {"aborted": 5}
    assert short.hub.counters.slow_demotions == 0


async def test_a_client_that_reads_no_more_and_shuts_its_sending_side_down_keeps_no_connection(short: World) -> None:
    """No check of the hub finds it later, because its stream has left the hub."""
    async with listening_hub(short, lambda: short.request(track="post")) as made:
        (client,) = await made.connect(1)
        await short.until_live()
        await fill(short)
        half_close(client)
        await eventually(lambda: short.hub.counters.ended_streams, what="the end of the connection")
        assert not len(short.hub.registry)


@pytest.mark.usefixtures("each_loop_over_clients")
async def test_a_client_that_reads_slowly_is_not_dropped(short: World) -> None:
    async with listening_hub(short, lambda: short.request(track="post")) as made:
        reads, _ = await made.connect(2)
        await short.until_live(2)
        await fill(short)

        async def read_on() -> None:
            while b"the last" not in await reads.read(1024):  # noqa: ASYNC110 - the pace is the point
                await asyncio.sleep(0.005)  # its own pace

        reading = asyncio.create_task(read_on())
        await eventually(lambda: short.hub.counters.ended_streams["aborted"], what="the stuck one to be gone")
        assert len(short.hub.registry) == 1
        short.post("post, the last")
        await asyncio.wait_for(reading, PATIENCE)


@linux
@pytest.mark.parametrize("since", [None, LOG_START], ids=["live", "from a cursor"])
async def test_a_client_whose_machine_vanished_is_dropped(short: World, since: Any) -> None:
    async with listening_hub(short, lambda: short.request(since, track="post")) as made:
        stays, *clients = await made.connect(6)
        await short.until_live(6)
        for client in clients:
            client.vanish()
        await eventually(lambda: len(short.hub.registry) == 1, what="five to be gone")
        assert short.hub.counters.ended_streams == {"aborted": 5}
        assert short.hub.counters.slow_demotions == 0
        short.post("post, the last")
        await stays.read_until(b"the last")


@linux
async def test_a_client_whose_machine_vanished_while_catching_up_is_dropped() -> None:
    """The log is unreadable meanwhile, so the server writes only heartbeats, which fill no buffer."""
    world = started_world(replace(SHORT, ring_bytes=0))
    world.post("post, the first")
    asked = 0

    async def away(after: Position, most: int) -> LogPage:
        nonlocal asked
        asked += 1
        raise Unavailable("the log cannot be read")

    world.log.read_page = away  # type: ignore[method-assign]  # the outage
    async with listening_hub(world, lambda: world.request(LOG_START, track="post")) as made:
        stays, goes = await made.connect(2)
        await eventually(lambda: asked == 2, what="both to read")
        goes.vanish()
        await eventually(lambda: world.hub.counters.ended_streams, what="one to be gone")
        assert world.hub.counters.ended_streams == {"aborted": 1}
        assert len(world.hub.registry) == 1
        await stays.read_until(b"heartbeat")


async def read_slowly(client: RawClient, last: bytes) -> bytes:
    """Read about 40 KB a second until ``last`` arrives."""
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

LONG = 320
"""So many posts are 208 KB, for which a slow reader takes more than two deadlines."""


def publish_many(world: World) -> list[bytes]:
    texts = [f"post {number} {'x' * 500}" for number in range(LONG)]
    for text in [*texts, "post, the last"]:
        world.post(text)
    return [text.encode() for text in texts]


@pytest.mark.parametrize("since", [None, LOG_START], ids=["live", "from a cursor"])
async def test_a_slow_client_with_a_small_tcp_window_gets_everything(since: Any) -> None:
    world = started_world(PATIENT)
    async with listening_hub(world, lambda: world.request(since, track="post"), ROOMY_BYTES) as made:
        texts = publish_many(world) if since is not None else []
        (client,) = await made.connect(1, receive_bytes=16_384)
        if since is None:
            await world.until_live()
            texts = publish_many(world)
        began = asyncio.get_running_loop().time()
        came = await asyncio.wait_for(read_slowly(client, b"the last"), 3 * PATIENCE)
        assert asyncio.get_running_loop().time() - began > 2 * PATIENT.write_timeout_seconds
        places = [came.find(text) for text in texts]
        assert places == sorted(places)
        assert -1 not in places
        assert not world.hub.counters.ended_streams


@pytest.mark.extended
async def test_a_stop_does_not_wait_for_clients_that_read_no_goodbye(short: World) -> None:
    world = started_world(replace(SHORT, write_timeout_seconds=60.0, heartbeat_seconds=60.0))
    starts = [None, LOG_START]
    async with listening_hub(world, lambda: world.request(starts[len(world.hub.registry) % 2], track="post")) as made:
        before = resources(world)
        await made.connect(4)
        await fill(world)
        world.hub.stop(lambda: reasons.shutdown_reason(1.0))
        await world.hub.wait_until_empty(PATIENCE)
        await made.until_empty(before)
    assert world.hub.counters.ended_streams == {"aborted": 4}
