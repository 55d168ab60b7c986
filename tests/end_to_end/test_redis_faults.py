"""Redis restarts, freezes, is slow, or disconnects its subscribers: no acknowledged write is missing."""

import asyncio
import signal
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.api import Answer, mint
from tests.end_to_end.consumer import Consumer
from tests.end_to_end.faults.author import Author, in_log_order, posted
from tests.end_to_end.faults.site import EVERYWHERE, ONE_WORKER, Site, all_until, close, feel, site
from tests.processes import state
from tests.redis_process import RedisProcess
from tests.waiting import eventually

pytestmark = pytest.mark.extended


@pytest.fixture
async def broken(tmp_path: Path, layout: str) -> AsyncIterator[Site]:
    async with site(tmp_path, layout) as made:
        yield made


async def authors(broken: Site) -> tuple[Author, Author]:
    first, second = [await broken.apis[0].user() for _ in range(2)]
    return Author(first, *broken.apis), Author(second, *reversed(broken.apis))


async def all_arrived(broken: Site, streams: list[Consumer], *writing: Author) -> None:
    """Check that each stream received each acknowledged post once and in order, without an end or a gap."""
    head = broken.head()
    await all_until(streams, lambda stream: any(m["cursor"] == head for m in stream.messages))
    for stream in streams:
        assert stream.received == in_log_order(writing)
    await close(streams)


@EVERYWHERE
async def test_a_restart_of_redis_loses_no_acknowledged_write(broken: Site) -> None:
    """Redis gets kill -9 while users post. The streams stay open, report their lag, and continue by themselves."""
    one, other = await authors(broken)
    streams = await broken.streams(one.uid, other.uid)
    async with one, other:
        for _ in range(2):
            await asyncio.gather(one.has_posted(10), other.has_posted(10))
            broken.redis.kill()
            before = len(one.acknowledged)
            await broken.ready(False)
            await feel(streams, behind=True, times=3)
            assert len(one.acknowledged) - before <= 1  # an answer that was on its way; no write succeeds meanwhile
            broken.proxy.refused = 0
            broken.proxy.refuse(of=b"SUBSCRIBE")
            await asyncio.to_thread(broken.redis.start)
            await one.has_posted(10)  # no server receives these posts by subscription
            await eventually(lambda: broken.proxy.refused, what="a refused subscription")
            broken.proxy.refuse(False)
            await broken.ready(True)
            await feel(streams, behind=False)
        await asyncio.gather(one.has_posted(10), other.has_posted(10))
    assert one.refused
    await all_arrived(broken, streams, one, other)


QUIET_BEATS = 10
"""Heartbeats to wait for: an outage of 2 seconds, in which a busy loop would show."""


@ONE_WORKER
async def test_an_outage_is_waited_out_without_a_busy_loop(broken: Site) -> None:
    """The server makes few connection attempts and uses almost no CPU. A busy loop would use a thousand times more."""
    streams = await broken.streams(await broken.apis[0].user())
    broken.redis.kill()
    await feel(streams, behind=True)
    dials, used, began = broken.proxy.connections, broken.cpu_seconds(), time.monotonic()
    await feel(streams, behind=True, times=QUIET_BEATS)
    lasted = time.monotonic() - began
    dials, used = broken.proxy.connections - dials, broken.cpu_seconds() - used
    processes = len(broken.processes)
    assert 0 < dials < 20 * lasted * processes
    assert used < 0.3 * lasted * processes
    await asyncio.to_thread(broken.redis.start)
    await broken.ready(True)
    await feel(streams, behind=False)
    await close(streams)


async def away(redis: RedisProcess, how: str) -> None:
    """Kill Redis, or stop it by SIGSTOP."""
    if how == "killed":
        await asyncio.to_thread(redis.kill)
    else:
        redis.pause()
        await eventually(lambda: stopped(redis))


def stopped(redis: RedisProcess) -> bool:
    assert redis.process is not None
    return state(redis.process.pid) == "T"


async def back(redis: RedisProcess, how: str) -> None:
    if how == "killed":
        await asyncio.to_thread(redis.start)
    else:
        redis.resume()


def told_to_return(answer: Answer) -> str:
    """Check that a 503 says in body and header when to retry. Return its code."""
    status, code, _ = answer.error
    assert status == 503
    assert answer.json["error"]["retry_after"] > 0
    assert int(answer.headers["Retry-After"]) >= 1
    return code


@pytest.mark.parametrize("how", ["killed", "paused"])
async def test_writes_fail_fast_and_are_never_queued(tmp_path: Path, how: str) -> None:
    """Writes and reads get 503 with `retry_after` within a second. A refused write does not appear later."""
    async with site(tmp_path, "one worker", direct=True) as broken:
        (api,) = broken.apis
        uid = await api.user()
        streams = await broken.streams(uid)
        first = await api.post(uid, "before")
        await away(broken.redis, how)
        unknown = []
        for number in range(3):  # Redis is away until these are answered
            refused = told_to_return(await posted(api, uid, f"{number}", f"key-{number}"))
            assert refused in {"unavailable", "outcome_unknown"}
            unknown += [number] if refused == "outcome_unknown" else []
            assert told_to_return(await api.call("GET", "/v1/users/me", token=mint(uid))) == "unavailable"
        assert len(unknown) < 3
        await feel(streams, behind=True, times=3)
        await back(broken.redis, how)
        await broken.ready(True)
        again = [(await posted(api, uid, f"{number}", f"key-{number}")).json for number in unknown]
        last = await api.post(uid, "after")
        await told_exactly(streams, first, *again, last)


@ONE_WORKER
async def test_a_write_whose_outcome_is_unknown_is_made_once_by_its_key(broken: Site) -> None:
    """Redis takes the write but does not answer: 503 `outcome_unknown`. A repeated request gets the true outcome."""
    api = broken.apis[-1]
    uid = await api.user()
    streams = await broken.streams(uid)
    with broken.redis.client() as client:
        client.client_pause(3_600_000, all=False)  # longer than any wait for an answer
        for number in range(3):
            refused = await posted(api, uid, f"{number}", f"key-{number}")
            assert told_to_return(refused) == "outcome_unknown"
            assert (await api.call("GET", "/v1/users/me", token=mint(uid))).status == 200  # reads go on
        client.client_unpause()
    again = [(await posted(api, uid, f"{number}", f"key-{number}")).json for number in range(3)]
    assert [(await posted(api, uid, f"{number}", f"key-{number}")).json for number in range(3)] == again
    await told_exactly(streams, *again, await api.post(uid, "after"))


async def told_exactly(streams: list[Consumer], *statuses: dict[str, Any]) -> None:
    """Check that each stream received exactly these statuses once, in the order of their ids, and is still open."""
    wanted = sorted((status["id"] for status in statuses), key=int)
    await all_until(streams, lambda stream: ("post", wanted[-1]) in stream.received)
    for stream in streams:
        assert [one for _, one in stream.received] == wanted
    await close(streams)


@ONE_WORKER
@pytest.mark.parametrize("how", ["paused", "stopped"])
async def test_a_frozen_redis_loses_nothing(broken: Site, how: str) -> None:
    """CLIENT PAUSE or SIGSTOP lasts longer than the server's timeout. The server reports an outage and then its end."""
    one, other = await authors(broken)
    streams = await broken.streams(one.uid, other.uid)
    async with one, other:
        await one.has_posted(10)
        if how == "stopped":
            await away(broken.redis, "paused")
            await feel(streams, behind=True, times=10)
            broken.redis.resume()
        else:
            began = time.monotonic()
            with broken.redis.client() as client:
                client.client_pause(3000)
                await feel(streams, behind=True)
                await asyncio.to_thread(client.ping)
            assert time.monotonic() - began > 2.5
        await broken.ready(True)
        await feel(streams, behind=False)
        await one.has_posted(10)
    assert one.refused
    await all_arrived(broken, streams, one, other)


@ONE_WORKER
async def test_a_slow_redis_slows_and_loses_nothing(broken: Site) -> None:
    """Each answer takes 0.2 s longer. Posts wait for it, and late events arrive once and in order."""
    one, other = await authors(broken)
    streams = await broken.streams(one.uid, other.uid)
    broken.proxy.delay(0.2)
    async with one, other:
        await one.has_posted(5)
    assert one.slowest_seconds > 0.2
    assert broken.proxy.delayed_bytes > 0
    broken.proxy.delay(0)
    await broken.ready(True)
    await all_arrived(broken, streams, one, other)


OVERFLOWN = "overcoming of output buffer limits"
"""The log message of Redis when it disconnects a client for its output buffer."""


async def test_a_subscriber_whose_output_buffer_overflows_misses_nothing(tmp_path: Path) -> None:
    """A frozen server does not read a burst, so Redis cuts its link. When the server runs again, it reads the log."""
    async with site(tmp_path, "two servers", direct=True) as broken:
        frozen, busy = broken.servers[0].process, broken.apis[1]
        assert frozen is not None
        with broken.redis.client() as client:
            client.config_set("client-output-buffer-limit", "pubsub 65536 0 0")
        writing = [Author(await busy.user(), busy) for _ in range(8)]
        streams = await broken.streams(*(author.uid for author in writing))
        frozen.send_signal(signal.SIGSTOP)
        try:
            async with AsyncExitStack() as stack:
                for author in writing:
                    await stack.enter_async_context(author)
                await eventually(lambda: OVERFLOWN in broken.redis.log, what="a buffer to overflow")
        finally:
            frozen.send_signal(signal.SIGCONT)
        await broken.ready(True)
        await all_arrived(broken, streams, *writing)


def _was_cut(broken: Site, times: int) -> bool:
    return broken.redis.log.count(OVERFLOWN) == times


async def test_a_subscriber_that_a_flood_cuts_is_back_at_its_next_attempt(tmp_path: Path) -> None:
    """Redis cuts the link again and again. Each time one attempt suffices, and no author is refused meanwhile."""
    async with site(tmp_path, "one worker", direct=True) as broken:
        api = broken.apis[0]
        one, other = await authors(broken)
        streams = await broken.streams(one.uid, other.uid)
        with broken.redis.client() as client:
            client.config_set("client-output-buffer-limit", "pubsub 65536 0 0")
            async with one, other:
                for cuts in range(1, 6):
                    with client.pipeline() as flood:  # one transaction: Redis sends nothing to anybody meanwhile
                        for _ in range(400):
                            flood.publish("events:post", b"x" * 1000)
                        await asyncio.to_thread(flood.execute)
                    await eventually(partial(_was_cut, broken, cuts), what="a cut")
                    await asyncio.gather(one.has_posted(5), other.has_posted(5))
                    await broken.ready(True)
        assert await api.metric("redis_reconnects_total") == cuts
        assert not one.refused + other.refused
        await all_arrived(broken, streams, one, other)
