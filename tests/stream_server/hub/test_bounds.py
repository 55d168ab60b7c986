"""What a client may have unsent, and what a burst does to those who read: real sockets, on both loops."""

import asyncio
import json
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any

import pytest
import uvloop

from stream_server.events.position import LOG_START
from stream_server.hub.limits import HubLimits
from tests.end_to_end.faults.clients import RawClient
from tests.stream_server.hub.site import left, settles, site
from tests.stream_server.hub.world import LIMITS, World
from tests.tiers import sample
from tests.waiting import eventually

BURST = 10_000

PAGE = 512
"""So many entries a turn, as the feed publishes what it reads from the log."""

CONTROLS = 1024
"""What a gap, a warning and a goodbye may add to the bound."""

Loop = Callable[[], asyncio.AbstractEventLoop]

both_loops = pytest.mark.parametrize(
    "loop",
    [
        pytest.param(asyncio.new_event_loop, id="asyncio", marks=pytest.mark.extended),
        pytest.param(uvloop.new_event_loop, id="uvloop"),
    ],
)


def run(work: Callable[[World], Coroutine[Any, Any, None]], loop: Loop, limits: HubLimits) -> None:
    """The test's work on a loop of that kind, in a world of its own, of which nothing stays."""

    async def whole() -> None:
        world = World(limits)
        world.hub.start()
        await work(world)
        world.hub.stop(lambda: pytest.fail("somebody is still here"))
        await world.hub.background_tasks.cancel_all()
        assert world.hub.background_tasks.failures == 0

    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(whole())


async def burst(world: World) -> list[str]:
    """Publish as fast as it goes; gives what was said."""
    said = [f"post {number} {'x' * 200}" for number in range(BURST)]
    for number, text in enumerate(said):
        world.post(text)
        if number % PAGE == 0:
            await asyncio.sleep(0)
    return said


@both_loops
@pytest.mark.parametrize("buffer_bytes", sample([4096, 65_536, 196_608], lambda buffer_bytes: buffer_bytes == 65_536))
def test_nobody_has_more_unsent_than_the_bound_also_in_a_burst(loop: Loop, buffer_bytes: int) -> None:
    """Ten who never read, live and from a cursor: all bounds are met, and all were reached for."""

    async def work(world: World) -> None:
        world.post("one")
        asked = 0

        def asks() -> Any:
            nonlocal asked
            asked += 1
            return world.ask(LOG_START if asked % 2 else None, track=f"post,w{asked}")

        async with site(world, asks) as made:
            before = left(world)
            clients = await made.connect(10)
            await eventually(lambda: world.hub.count_live_clients() == 10, what="live")
            await burst(world)
            await eventually(lambda: world.hub.counters.slow_demotions == 10, what="everybody refused")
            await eventually(lambda: made.highest > buffer_bytes / 4, what="something unsent")
            await eventually(lambda: not world.hub.flusher.is_busy)
            assert made.highest <= buffer_bytes + CONTROLS
            for client in clients:
                client.reset()
            await settles(world, before)

    run(work, loop, replace(LIMITS, buffer_bytes=buffer_bytes, ring_bytes=1 << 24))


async def read_posts(client: RawClient, count: int, pace_seconds: float) -> list[str]:
    """Read at a pace until so many posts have come; gives what they say. Chunks end where lines do."""
    said: list[str] = []
    rest = b""
    while len(said) < count:
        piece = await client.read(16_384)
        assert piece, "the connection ended"
        *lines, rest = (rest + piece).split(b"\n")
        told = [json.loads(line) for line in lines if line.startswith(b"{")]
        said += [one["status"]["message"] for one in told if one["kind"] == "post"]
        await asyncio.sleep(pace_seconds)  # the client's own pace
    return said


@both_loops
def test_a_burst_cuts_nobody_who_reads(loop: Loop) -> None:
    """Slow readers fall out of live and get all ten thousand, once and in order, though any distance is far here."""

    async def work(world: World) -> None:
        async with site(world, lambda: world.ask(track="post")) as made:
            before = left(world)
            clients = await made.connect(5, receive_bytes=16_384)
            reads = [read_posts(client, BURST, 0.0005 * number) for number, client in enumerate(clients)]
            reading = asyncio.gather(*reads)
            said = await burst(world)
            assert [posts == said for posts in await reading] == [True] * len(clients)
            assert world.hub.counters.slow_demotions > 0
            assert not world.hub.counters.ended_streams
            for client in clients:
                client.reset()
            await settles(world, before)

    run(
        work,
        loop,
        replace(LIMITS, buffer_bytes=65_536, ring_bytes=1 << 24, far_behind_entries=100, slow_window_seconds=10.0),
    )
