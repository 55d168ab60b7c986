"""Measures what one connected client costs: its memory, its connect, its heartbeats and its deliveries."""

import asyncio
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from bench.clients import Clients, Figures
from bench.lineup import Kind, Running, stream_request
from bench.native import compiled
from bench.poster import Connection, steadily
from bench.process import cpu_seconds, end
from bench.redis_meter import RedisMeter
from bench.unit_costs import Stream
from bench.unit_deeds import text_of
from bench.unit_site import UnitSite

HEARTBEAT_SECONDS = 2.0
"""Interval of the heartbeats, shorter than by default, so that there are many to measure."""

FEW = 20
"""Streams of the warm-up."""

RATES = {"firehose": 40.0, "track": 100.0, "user": 40.0}
"""Posts a second to each kind of stream."""

SHARE = 10
"""One of so many streams is open in a second run, which tells what a post costs from what a delivery costs."""

FRIENDS = 10
"""Authors whom each user of a personal stream follows: half of those who post."""


class StreamMeter:
    """Measures streams of one kind at a time, each kind on a server of its own."""

    def __init__(self, site: UnitSite, count: int, seconds: float, hear_us: float) -> None:
        """``hear_us`` is what a server needs to hear one post in any case."""
        self._site, self._count, self._seconds, self._hear_us = site, count, seconds, hear_us
        self._clients = Clients(site.site.folder, compiled(site.site.folder).load)

    async def measure(self, kind: str) -> Stream:
        """Open streams, leave them idle, then post. Return what one of them costs."""
        lines, meter, rate = await self._lines(kind), RedisMeter(self._site.redis), RATES[kind]
        async with self._server() as running:
            await self._clients.streams(running, lines[:FEW], settle=0.5)
            quiet, redis_quiet = await self._idle(running, meter)
            before = meter.read()
            still = await self._clients.streams(running, lines, settle=1, duration=self._seconds)
            redis = meter.since(before).main_us
            busy = [await self._busy(running, chosen, rate) for chosen in (lines, lines[: len(lines) // SHARE])]
        passed, count = still["seconds"] + 1 + still["opened"] / still["open_per_s"], still["opened"]
        heartbeats = count * still["seconds"] / HEARTBEAT_SECONDS
        heartbeat_us = max(0.0, 1e6 * (still["server_cpu_s"] - quiet * still["seconds"]) / heartbeats)
        (many, many_us), (few, few_us) = (self._of_post(one, quiet, heartbeat_us, rate) for one in busy)
        each = max(0.0, (many_us - few_us) / max(1e-9, many - few))
        sent = busy[0]["bytes"] - still["bytes"] / still["seconds"] * busy[0]["seconds"]
        return Stream(
            memory=1024 * still["kib_per_idle_conn"], connect_us=1e6 * still["open_cpu_s"] / count,
            connect_redis_us=max(0.0, (redis - passed * redis_quiet) / count), heartbeat_us=heartbeat_us,
            wake_us=max(0.0, few_us - few * each), deliver_us=each,
            deliver_bytes=sent / max(1.0, busy[0]["count"]),
        )  # fmt: skip

    async def _busy(self, running: Running, lines: list[str], rate: float) -> Figures:
        async def post(connection: Connection, number: int) -> None:
            authors = self._site.site.authors
            status = {"message": text_of(number), "meta": {"t": time.monotonic_ns()}}
            await connection.call("POST", "/v1/statuses", authors[number % len(authors)], status)

        return await self._clients.streams(
            running, lines, settle=0.2, warmup=0.5, duration=self._seconds,
            work=lambda done: steadily(self._site.site.address, rate, done, post),
        )  # fmt: skip

    def _of_post(self, busy: Figures, quiet: float, heartbeat_us: float, rate: float) -> tuple[float, float]:
        """Return the deliveries of a post, and their CPU time in µs.

        It is what is left without heartbeats, hearing, and what an idle server does.
        """
        seconds = busy["seconds"]
        spent = 1e6 * (busy["server_cpu_s"] - quiet * seconds)
        spent -= heartbeat_us * busy["opened"] * seconds / HEARTBEAT_SECONDS + self._hear_us * rate * seconds
        return busy["count"] / (rate * seconds), spent / (rate * seconds)

    async def _lines(self, kind: str) -> list[str]:
        site = self._site.site
        if kind == "user":
            people = await asyncio.to_thread(site.users, "person", self._count)
            authors = site.users("author", 2 * FRIENDS)
            for start in (0, 1):  # each author has half of the people as followers
                await self._site.follow(people[start::2], authors[start::2])
            head = "GET /v1/stream/user\tAccept: text/event-stream\tAuthorization: Bearer "
            return [head + token for token in self._site.tokens(people, "stream read")]
        token = site.token(site.admin, "stream firehose")
        chosen: Kind = "firehose" if kind == "firehose" else "tracks"
        return [stream_request("/v1/stream", chosen, number, token) for number in range(self._count)]

    @asynccontextmanager
    async def _server(self) -> AsyncIterator[Running]:
        flags = ("--job-workers", "0", "--heartbeat-seconds", f"{HEARTBEAT_SECONDS:g}")
        process, address = await asyncio.to_thread(self._site.serve, "streams", *flags)
        try:
            yield Running(process, int(address.rpartition(":")[2]))
        finally:
            await asyncio.to_thread(end, process)

    async def _idle(self, running: Running, meter: RedisMeter) -> tuple[float, float]:
        """Return the CPU seconds a second of a server without streams, and the CPU µs a second of Redis."""
        await asyncio.sleep(1)
        before, redis = cpu_seconds(running.process.pid), meter.read()
        await asyncio.sleep(2)
        return (cpu_seconds(running.process.pid) - before) / 2, meter.since(redis).main_us / 2


async def stream_costs(site: UnitSite, count: int, seconds: float, hear_us: float) -> dict[str, Stream]:
    """Measure all kinds of streams."""
    meter, found = StreamMeter(site, count, seconds, hear_us), {}
    for kind in RATES:
        print(f"streams: {kind}", file=sys.stderr, flush=True)
        found[kind] = await meter.measure(kind)
    return found
