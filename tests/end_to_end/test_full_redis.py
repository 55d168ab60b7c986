"""A Redis with full memory: the server refuses writes; reads and streams continue."""

from pathlib import Path

import pytest

from tests.end_to_end.faults.author import posted
from tests.end_to_end.faults.site import all_until, close, feel, is_ready, site

pytestmark = pytest.mark.extended

QUIET_BEATS = 8
"""Heartbeats to wait for: 1.6 seconds, which is three canary checks."""


async def test_a_full_redis_refuses_writes_and_nothing_else(tmp_path: Path) -> None:
    """Streams stay live, servers stay ready, and cursors work. When there is memory again, posts arrive."""
    async with site(tmp_path, "one worker", "--ring-bytes", "0") as full:
        (api,) = full.apis
        uid = await api.user()
        streams = await full.streams(uid)
        first, second = [await api.post(uid, text) for text in ("first", "second")]
        await all_until(streams, lambda stream: ("post", second["id"]) in stream.received)
        cursor = next(m["cursor"] for m in streams[0].messages if m["kind"] == "post")
        with full.redis.client() as client:
            client.config_set("maxmemory", 1)
        refused = await posted(api, uid, "third", "key")
        assert (refused.error[0], refused.error[1]) == (503, "unavailable")
        await feel(streams, behind=False, times=QUIET_BEATS)
        assert await is_ready(api, wanted=True)
        returned = await api.stream({"follow": uid, "since": cursor})
        await returned.until(lambda stream: stream.received == [("post", second["id"])])
        with full.redis.client() as client:
            client.config_set("maxmemory", 0)
        await api.until_metric("memory_alarm", lambda value: value == 0)
        third = (await posted(api, uid, "third", "key")).json
        await all_until([*streams, returned], lambda stream: ("post", third["id"]) in stream.received)
        assert streams[0].received == [("post", one["id"]) for one in (first, second, third)]
        await close([*streams, returned])
