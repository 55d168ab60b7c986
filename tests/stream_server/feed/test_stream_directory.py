"""The directory of open streams: a server of some users that is away, and processes that died."""

import time
from collections.abc import Iterable, Sequence
from typing import Any, cast

import pytest

from stream_server.feed import stream_directory
from stream_server.feed.stream_directory import StreamDirectory
from stream_server.store import keys
from stream_server.store.social.open_streams import OpenStream, RecordedStreams
from tests.redis_process import RedisProcess
from tests.stream_server.feed.node import Node
from tests.stream_server.hub import world as hub_world

MOST = 3


class AwayStreams:
    """Records nothing, as if the server of all users were away."""

    async def renew_lease(self, _process: str, _now_ms: int) -> bool:
        return True

    async def record(self, opened: Sequence[OpenStream], closed: Iterable[OpenStream]) -> RecordedStreams:
        return RecordedStreams({}, {one.uid for one in (*opened, *closed)})


async def test_a_long_outage_keeps_a_limited_number_of_closed_streams(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_directory, "MAX_KEPT_CLOSED", MOST)
    world = hub_world.World()
    directory = StreamDirectory(world.hub, cast(Any, AwayStreams()), lambda: 0)
    streams = [world.open(track="tea")[0] for _ in range(10)]
    for stream in streams[1::2]:
        stream.stop()
    await directory._record()
    assert [*directory._changed] == [f"c{at + 1}" for at in (0, 2, 4, 5, 6, 7, 8, 9)]


async def test_a_repeat_forgets_the_streams_of_dead_processes(without_canary: Node, redis_server: RedisProcess) -> None:
    """Nobody lists them, and no limit is met. Those of living processes stay."""
    streams, now = without_canary.store.open_streams, time.time_ns() // 1_000_000
    world = hub_world.World()
    directory = StreamDirectory(world.hub, streams, lambda: 0)
    world.hub.now_ms = lambda: now
    await streams.renew_lease("other", now)
    rows = [OpenStream("1", name, process, 1.0) for name, process in (("o1", "other"), ("d1", "dead"), ("d2", "dead"))]
    await streams.record(rows, [])

    async def recorded() -> list[str]:
        await directory._record()
        with redis_server.client() as client:
            return sorted(row.split()[0].decode() for row in client.zrange(keys.open_streams("1"), 0, -1))

    assert await recorded() == ["d1", "d2", "o1"]  # this first record is a repeat, of no stream
    world.open(track="tea")
    assert await recorded() == ["c1", "d1", "d2", "o1"]
    directory._next_repeat = 0.0  # an hour later
    assert await recorded() == ["c1", "o1"]
