"""One or two servers on one Redis behind a proxy, with authors' sessions and open streams."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest

from stream_server.store import keys
from tests.end_to_end.api import Api
from tests.end_to_end.consumer import Consumer
from tests.end_to_end.faults.proxy import Proxy
from tests.end_to_end.server import Server
from tests.processes import children, cpu_seconds, listening
from tests.redis_process import RedisProcess, private_redis
from tests.waiting import eventually

HEARTBEAT_SECONDS = 0.2

CANARY_SECONDS = 0.5

TIMEOUT_SECONDS = 1.0
"""The default time that a server waits for Redis. Tests of outages state it explicitly."""

FLAGS = (
    "--heartbeat-seconds", str(HEARTBEAT_SECONDS), "--canary-seconds", str(CANARY_SECONDS),
    "--redis-timeout-seconds", str(TIMEOUT_SECONDS), "--limits", "off",
)  # fmt: skip

STREAMS = 6
"""Streams per server, half of them SSE. With two workers both get some, except in one of 32 runs."""

LAYOUTS = {"one worker": (1, 1), "two workers": (1, 2), "two servers": (2, 1)}
"""The number of servers and of workers per server, by the name of the layout."""

EVERYWHERE = pytest.mark.parametrize("layout", LAYOUTS)

ONE_WORKER = pytest.mark.parametrize(
    "layout", [pytest.param(layout, marks=[pytest.mark.nightly] * (layout != "one worker")) for layout in LAYOUTS]
)
"""The other layouts test little more there, so they run at night."""


class Site(NamedTuple):
    """Servers that share one Redis behind ``proxy``, with a session for each."""

    redis: RedisProcess
    proxy: Proxy
    servers: Sequence[Server]
    apis: Sequence[Api]

    @property
    def processes(self) -> list[int]:
        """Process ids of the servers, or of their workers."""
        heads = [server.process.pid for server in self.servers if server.process is not None]
        return [one for head in heads for one in children(head) or [head]]

    def head(self) -> str:
        """Return the cursor of the newest entry in Redis, which a server may not have received yet."""
        with self.redis.client() as client:
            ((entry_id, fields),) = client.xrevrange(keys.LOG, count=1)
        return f"{entry_id.decode()}.{fields[b'n'].decode()}"

    def cpu_seconds(self) -> float:
        return sum(map(cpu_seconds, self.processes))

    async def streams(self, *authors: str, count: int = STREAMS) -> list[Consumer]:
        """Open ``count`` streams at each server, in both framings, which follow these authors."""
        follow = {"follow": ",".join(authors)}
        return [
            await api.stream(follow, framing=("sse", "ndjson")[number % 2])
            for api in self.apis
            for number in range(count)
        ]

    async def ready(self, wanted: bool) -> None:  # noqa: FBT001 - what is waited for
        """Wait until every server answers ``/readyz`` with ``wanted``."""
        for api in self.apis:
            await eventually(partial(is_ready, api, wanted), what=f"ready={wanted}")


async def is_ready(api: Api, wanted: bool) -> bool:  # noqa: FBT001 - what is asked for
    """Whether ``/readyz`` answers ``wanted``. Fails if the HTTP status does not match the answer."""
    answer = await api.call("GET", "/readyz")
    assert answer.status == (200 if answer.json["ready"] else 503), answer
    return bool(answer.json["ready"]) is wanted


async def all_until(streams: Sequence[Consumer], check: Callable[[Consumer], object]) -> None:
    await asyncio.gather(*(stream.until(check) for stream in streams))


async def feel(streams: Sequence[Consumer], *, behind: bool, times: int = 1) -> None:
    """Wait until each stream has received ``times`` more heartbeats that report a lag, or that report none."""
    before = {stream: _told(stream, behind=behind) for stream in streams}
    await all_until(streams, lambda stream: _told(stream, behind=behind) >= before[stream] + times)


def _told(stream: Consumer, *, behind: bool) -> int:
    return sum((beat["lag_ms"] > 0) is behind for beat in stream.of("heartbeat"))


async def close(streams: Sequence[Consumer]) -> None:
    """Close the streams. Fails if the server has ended one or sent a `gap`."""
    for stream in streams:
        assert not stream.ended, stream.messages[-1]
        assert not stream.of("gap")
        await stream.close()


@asynccontextmanager
async def site(folder: Path, layout: str, *flags: str, direct: bool = False) -> AsyncIterator[Site]:
    """Start the servers of a layout on a durable Redis behind one proxy, or with ``direct`` without the proxy."""
    servers, workers = LAYOUTS[layout]
    async with AsyncExitStack() as stack:
        redis = stack.enter_context(private_redis())
        proxy = await stack.enter_async_context(Proxy(redis.socket))
        common = (*FLAGS, "--workers", str(workers), "--redis", redis.url if direct else proxy.url, *flags)
        made = [Server(folder / f"server {number}", *common) for number in range(servers)]
        started = await asyncio.gather(*(stack.enter_async_context(server) for server in made))
        for one in started:  # a server announces itself when its first worker takes connections
            port = int(one.address.rpartition(":")[2])
            await eventually(partial(_all_listen, port, workers), what="all workers")
        apis = [await stack.enter_async_context(Api(server)) for server in started]
        yield Site(redis, proxy, started, apis)


def _all_listen(port: int, workers: int) -> bool:
    return listening(port) >= workers
