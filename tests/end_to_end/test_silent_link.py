"""A silent link: the canary notices it, the server reconnects, and no event is missing."""

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest

from tests.end_to_end.api import Api
from tests.end_to_end.consumer import Consumer
from tests.end_to_end.faults.proxy import Proxy
from tests.end_to_end.faults.site import (
    CANARY_SECONDS,
    EVERYWHERE,
    FLAGS,
    HEARTBEAT_SECONDS,
    Site,
    all_until,
    close,
    site,
)
from tests.end_to_end.server import Server
from tests.redis_process import private_redis
from tests.waiting import eventually

pytestmark = pytest.mark.extended

SUBSCRIBED = b"SUBSCRIBE"

BEATS_OF_A_CHECK = CANARY_SECONDS / HEARTBEAT_SECONDS
"""Heartbeats in the time of a canary check. A busy server is late with both."""


def dialled(broken: Site, before: int) -> bool:
    """Return whether every worker, which must subscribe again, has made a new connection."""
    return broken.proxy.connections - before >= len(broken.processes)


@pytest.fixture
async def broken(tmp_path: Path, layout: str) -> AsyncIterator[Site]:
    async with site(tmp_path, layout) as made:
        yield made


def told(status_id: str, stream: Consumer) -> bool:
    return ("post", status_id) in stream.received


@EVERYWHERE
async def test_a_silent_link_is_noticed_within_two_canary_checks(broken: Site) -> None:
    """The link reports no error and no end. Events of that time still arrive, after a reconnect."""
    api, uid = broken.apis[0], await broken.apis[0].user()
    streams = await broken.streams(uid)
    for _ in range(2):
        dials = broken.proxy.connections
        broken.proxy.swallow(of=SUBSCRIBED)
        swallowed = broken.proxy.swallowed_bytes
        posted = await api.post(uid, "into the silence")
        beats = [len(stream.of("heartbeat")) for stream in streams]
        await all_until(streams, partial(told, posted["id"]))
        # Without a canary the wait would never end (last test). Some of these may have been under way before.
        silent = [len(stream.of("heartbeat")) - before for stream, before in zip(streams, beats, strict=True)]
        assert max(silent) < 10 * 2 * BEATS_OF_A_CHECK
        assert broken.proxy.swallowed_bytes > swallowed
        await eventually(partial(dialled, broken, dials))
    await broken.ready(True)
    for stream in streams:
        assert len(stream.received) == 2
    await close(streams)


async def test_without_the_canary_a_silent_link_is_not_noticed(tmp_path: Path) -> None:
    """The control: the post is on the log and reaches the other server's stream.

    Here it arrives only when the link ends.
    """
    with private_redis() as redis:
        async with Proxy(redis.socket) as proxy:
            deaf = Server(tmp_path / "deaf", *FLAGS, "--redis", proxy.url, "--canary-seconds", "3600")
            well = Server(tmp_path / "well", *FLAGS, "--redis", redis.url)
            async with deaf, well, Api(deaf) as deaf_api, Api(well) as api:
                uid = await api.user()
                starving, hearing = await deaf_api.stream({"follow": uid}), await api.stream({"follow": uid})
                proxy.swallow(of=SUBSCRIBED)
                posted = await api.post(uid, "into the silence")
                await hearing.until(lambda stream: told(posted["id"], stream))
                await eventually(lambda: proxy.swallowed_bytes > 0)
                # Many times as long as the canary would have needed, by the starving server's own heartbeats.
                beats = len(starving.of("heartbeat")) + round(10 * BEATS_OF_A_CHECK)
                await starving.until(lambda stream: len(stream.of("heartbeat")) >= beats)
                assert starving.received == []
                assert {beat["lag_ms"] for beat in starving.of("heartbeat")} == {0}  # the server has not noticed it
                await proxy.cut()
                await starving.until(lambda stream: told(posted["id"], stream))
                await asyncio.gather(starving.close(), hearing.close())
