"""``python -m bench.webhooks``: what ten dead endpoints cost: the delay of a healthy one, and processor time.

One server has one webhook with a healthy endpoint. Its delay is from the answer to a post until the endpoint has the
post. It is measured without dead endpoints, and with ten that accept a connection and answer nothing. The share of a
core is that of the server while nobody posts.
"""

import asyncio
import statistics
import tempfile
import time
from contextlib import AsyncExitStack
from pathlib import Path
from typing import NamedTuple

from bench.process import cpu_seconds
from stream_server.web.webhooks.deliveries import PACE_SECONDS
from tests.end_to_end.api import Api, mint
from tests.end_to_end.server import Server
from tests.end_to_end.webhook_endpoint import Endpoint, hang
from tests.waiting import eventually

POSTS = 200
DEAD = 10
QUIET_SECONDS = 20.0
"""Time in seconds for which the processor time of the quiet server is measured."""

FLAGS = ("--limits", "off", "--webhook-networks", "127.0.0.1")


class Row(NamedTuple):
    """Delays in ms, and the share of a core of the quiet server."""

    median_ms: float
    p99_ms: float
    core_share: float


async def deliver(api: Api, uid: str, author: str, url: str, name: str) -> None:
    """Give ``uid`` a webhook with the posts of ``author``."""
    body = {"parameters": {"follow": author}, "deliver": {"url": url}}
    await api.done("PUT", f"/v1/subscriptions/{name}", token=mint(uid), json=body)


async def measure(api: Api, author: str, healthy: Endpoint, pid: int) -> Row:
    """Post one by one, then be quiet."""
    delays = []
    for _ in range(POSTS):
        await asyncio.sleep(PACE_SECONDS)  # else the pace would be measured
        status = (await api.post(author, "hello"))["id"]
        posted = time.perf_counter()
        while status not in healthy.statuses()[-3:]:  # noqa: ASYNC110 - an event would be set by what is measured
            await asyncio.sleep(0.0005)
        delays.append((time.perf_counter() - posted) * 1000)
    before = cpu_seconds(pid)
    await asyncio.sleep(QUIET_SECONDS)
    used = cpu_seconds(pid) - before
    return Row(statistics.median(delays), statistics.quantiles(delays, n=100)[98], used / QUIET_SECONDS)


async def main() -> None:
    """Measure both and print a table."""
    async with AsyncExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        server = await stack.enter_async_context(Server(Path(folder), *FLAGS, preloaded=False))
        api = await stack.enter_async_context(Api(server))
        assert server.process is not None
        pid = server.process.pid
        author, other = await api.user(), await api.user()
        healthy = await stack.enter_async_context(Endpoint())
        await deliver(api, author, author, healthy.url, "healthy")
        await measure(api, author, healthy, pid)  # to warm up
        alone = await measure(api, author, healthy, pid)
        dead = [await stack.enter_async_context(Endpoint()) for _ in range(DEAD)]
        for number, one in enumerate(dead):
            one.behaviour = hang
            await deliver(api, other, author, one.url, f"dead{number}")
        await api.post(author, "hello")
        await eventually(lambda: all(one.received for one in dead))
        beside = await measure(api, author, healthy, pid)
    print("| | median, ms | p99, ms | share of a core, quiet |\n|---|---|---|---|")
    for name, row in (("alone", alone), (f"beside {DEAD} dead endpoints", beside)):
        cells = f"{row.median_ms:.1f} | {row.p99_ms:.1f} | {row.core_share:.2%}"
        print(f"| {name} | {cells} |")


if __name__ == "__main__":
    asyncio.run(main())
