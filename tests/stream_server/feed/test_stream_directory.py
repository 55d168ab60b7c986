"""The directory of open streams while the server of some users is away."""

from collections.abc import Iterable, Sequence
from typing import Any, cast

import pytest

from stream_server.feed import stream_directory
from stream_server.feed.stream_directory import StreamDirectory
from stream_server.store.social.open_streams import OpenStream, RecordedStreams
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
