"""The limit of unsent bytes for each client, and bursts, on real sockets and both event loops."""

import asyncio
import json
import random
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any

import pytest
import uvloop

from stream_server.events.position import LOG_START
from stream_server.hub.limits import HubLimits
from stream_server.hub.messages import Framing
from stream_server.web.streaming.compression import compress_framing
from tests.end_to_end.faults.clients import RawClient
from tests.stream_server.hub.listening_hub import listening_hub, resources, until_resources
from tests.stream_server.hub.world import LIMITS, World
from tests.tiers import sample
from tests.waiting import eventually

pytestmark = pytest.mark.usefixtures("each_loop_over_clients")

BURST = 10_000

PAGE = 512
"""So many entries a turn, as the feed publishes what it reads from the log."""

CONTROLS = 1024
"""What a gap, a warning and a goodbye may add to the bound."""

Loop = Callable[[], asyncio.AbstractEventLoop]

both_loops = pytest.mark.parametrize(
    "loop",
    [
        pytest.param(asyncio.new_event_loop, id="asyncio", marks=pytest.mark.nightly),
        pytest.param(uvloop.new_event_loop, id="uvloop"),
    ],
)


def run(work: Callable[[World], Coroutine[Any, Any, None]], loop: Loop, limits: HubLimits) -> None:
    """Run the work on such a loop, with a hub of its own that must end clean."""

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
    """Publish as fast as possible. Returns the texts."""
    chance = random.Random(1)  # so that gzip cannot make the burst small
    said = [f"post {number} {chance.randbytes(100).hex()}" for number in range(BURST)]
    for number, text in enumerate(said):
        world.post(text)
        if number % PAGE == 0:
            await asyncio.sleep(0)  # lets the hub write once per page
    return said


@both_loops
@pytest.mark.parametrize("buffer_bytes", sample([4096, 65_536, 196_608], lambda buffer_bytes: buffer_bytes == 65_536))
@pytest.mark.parametrize("compress", [lambda framing: framing, compress_framing], ids=["plain", "gzip"])
def test_no_client_has_more_unsent_bytes_than_its_limit_even_in_a_burst(
    loop: Loop, buffer_bytes: int, compress: Callable[[Framing], Framing]
) -> None:
    async def work(world: World) -> None:
        world.post("one")
        asked = 0

        def next_request() -> Any:
            nonlocal asked
            asked += 1
            request = world.request(LOG_START if asked % 2 else None, track=f"post,w{asked}")
            return request._replace(framing=compress(request.framing))

        async with listening_hub(world, next_request) as made:
            before = resources(world)
            clients = await made.connect(10)
            await world.until_live(10)
            await burst(world)
            await eventually(lambda: world.hub.counters.slow_demotions == 10, what="everybody refused")
            await eventually(lambda: made.max_unsent_bytes > buffer_bytes / 4, what="something unsent")
            await eventually(lambda: not world.hub.live.flusher.is_busy)
            assert made.max_unsent_bytes <= buffer_bytes + CONTROLS
            for client in clients:
                client.reset()
            await until_resources(world, before)

    run(work, loop, replace(LIMITS, buffer_bytes=buffer_bytes, ring_bytes=1 << 24))


async def read_posts(client: RawClient, count: int, pace_seconds: float) -> list[str]:
    """Read slowly until so many posts have arrived. Returns their texts."""
    said: list[str] = []
    rest = b""
    while len(said) < count:
        piece = await client.read(16_384)
        assert piece, "the connection ended"
        *lines, rest = (rest + piece).split(b"\n")
        messages = [json.loads(line) for line in lines if line.startswith(b"{")]
        said += [one["status"]["message"] for one in messages if one["kind"] == "post"]
        await asyncio.sleep(pace_seconds)  # the client's own pace
    return said


@both_loops
def test_a_burst_cuts_no_client_that_reads(loop: Loop) -> None:
    """The limit of entries behind is small, so slow readers are demoted. All receive all entries, once and in order."""

    async def work(world: World) -> None:
        async with listening_hub(world, lambda: world.request(track="post")) as made:
            before = resources(world)
            clients = await made.connect(5, receive_bytes=16_384)
            reads = [read_posts(client, BURST, 0.0005 * number) for number, client in enumerate(clients)]
            reading = asyncio.gather(*reads)
            said = await burst(world)
            assert [posts == said for posts in await reading] == [True] * len(clients)
            assert world.hub.counters.slow_demotions > 0
            assert not world.hub.counters.ended_streams
            for client in clients:
                client.reset()
            await until_resources(world, before)

    run(
        work,
        loop,
        replace(LIMITS, buffer_bytes=65_536, ring_bytes=1 << 24, far_behind_entries=100, slow_window_seconds=10.0),
    )
