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
    directory = StreamDirectory(hub_world.World().hub, cast(Any, AwayStreams()), lambda: 0)
    rows = [OpenStream("7", f"c{at}", directory.process, at) for at in range(10)]
    directory._changed = {row.connection: (row, row.opened_ms % 2 == 0) for row in rows}
    await directory._record()
    assert [*directory._changed] == ["c0", "c2", "c4", "c5", "c6", "c7", "c8", "c9"]
