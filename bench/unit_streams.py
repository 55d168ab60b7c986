"""Measures what one connected client costs: its memory, its connect, its heartbeats and its deliveries."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager

from bench import unit_costs
from bench.caller import Caller, in_turn
from bench.clients import Clients, Figures, Work
from bench.lineup import Running, track_of
from bench.native import compiled
from bench.process import cpu_seconds, end, memory_kib
from bench.redis_meter import RedisMeter
from bench.unit_deeds import text_of
from bench.unit_site import UnitSite

HEARTBEAT_SECONDS = 2.0
"""Interval of the heartbeats, shorter than by default, so that there are many to measure."""

WARM_SECONDS = 1.0
"""Seconds after a start in which a server may do more than later."""

IDLE_SECONDS = 2.0

FEW = 20
"""Streams of the warm-up."""

RATES = {"firehose": 40.0, "track": 100.0, "user": 40.0}
"""Posts a second to each kind of stream."""

SHARE = 10
"""One of so many streams is open in a second run, which tells what a post costs from what a delivery costs."""

LONGEST_SECONDS = 600.0
"""Seconds after which nothing more is posted, if nobody stopped it before."""

FRIENDS = 10
"""Authors whom each user of a personal stream follows: half of those who post."""


class StreamMeter:
    """Measures streams of one kind at a time, each kind on a server of its own."""

    def __init__(self, site: UnitSite, count: int, seconds: float, hear_us: float) -> None:
        """``hear_us`` is what a server needs to hear one post in any case."""
        self._site, self._seconds, self._hear_us = site, seconds, hear_us
        self._clients = Clients(site.site.folder, compiled(site.site.folder))
        self._count = count

    async def measure(self, kind: str) -> unit_costs.Stream:
        """Open streams, leave them idle, then post. Return what one of them costs."""
        lines = await self._lines(kind)
        async with self._server() as running:
            quiet = await self._idle_seconds(running)
            meter = RedisMeter(self._site.redis)
            await self._clients.streams(running, lines[:FEW], settle=0.5)
            before = meter.read()
            await asyncio.sleep(1)
            redis_quiet, before = meter.since(before), meter.read()
            still = await self._clients.streams(running, lines, settle=1, duration=self._seconds)
            redis = meter.since(before)
            busy = [await self._busy(running, chosen, RATES[kind]) for chosen in (lines, lines[: len(lines) // SHARE])]
        passed = still["seconds"] + 1 + still["opened"] / still["open_per_s"]
        count = max(1.0, still["opened"])
        heartbeats = count * still["seconds"] / HEARTBEAT_SECONDS
        heartbeat_us = max(0.0, 1e6 * (still["server_cpu_s"] - quiet * still["seconds"]) / heartbeats)
        return unit_costs.Stream(
            count=int(count),
            memory=1024 * still["kib_per_idle_conn"],
            redis_memory=max(0.0, redis.memory / count),
            connect_us=1e6 * still["open_cpu_s"] / count,
            connect_redis_us=max(0.0, (redis.main_us - passed * redis_quiet.main_us) / count),
            connect_commands=(redis.calls.total() - passed * redis_quiet.calls.total()) / count,
            heartbeat_us=heartbeat_us,
            heartbeat_bytes=still["bytes"] / heartbeats,
            **self._delivery(*(self._of_post(one, quiet, heartbeat_us, RATES[kind]) for one in busy)),
            deliver_bytes=_without(still, busy[0]) / max(1.0, busy[0]["count"]),
        )

    async def _busy(self, running: Running, lines: list[str], rate: float) -> Figures:
        return await self._clients.streams(
            running, lines, settle=0.2, warmup=0.5, duration=self._seconds, work=self._posting(rate)
        )

    def _of_post(self, busy: Figures, quiet: float, heartbeat_us: float, rate: float) -> tuple[float, float]:
        """Return the deliveries of a post, and their CPU time in µs.

        It is what is left without heartbeats, hearing, and what an idle server does.
        """
        seconds = busy["seconds"]
        spent = 1e6 * (busy["server_cpu_s"] - quiet * seconds)
        spent -= heartbeat_us * busy["opened"] * seconds / HEARTBEAT_SECONDS + self._hear_us * rate * seconds
        return busy["count"] / (rate * seconds), spent / (rate * seconds)

    def _delivery(self, many: tuple[float, float], few: tuple[float, float]) -> dict[str, float]:
        """Return the cost of a post that is delivered, and of each delivery, from those of many and of few streams."""
        each = max(0.0, (many[1] - few[1]) / max(1e-9, many[0] - few[0]))
        return {"wake_us": max(0.0, few[1] - few[0] * each), "deliver_us": each}

    def _posting(self, rate: float) -> Work:
        def work(done: asyncio.Event) -> Awaitable[object]:
            return _steadily(self._site, rate, done)

        return work

    async def _lines(self, kind: str) -> list[str]:
        site = self._site.site
        if kind == "user":
            people = await self._people()
            return [_request("/v1/stream/user", token) for token in self._site.tokens(people, "stream read")]
        token = site.token(site.admin, "stream firehose")
        if kind == "firehose":
            return [_request("/v1/stream?firehose=true", token)] * self._count
        return [_request(f"/v1/stream?track={track_of(number)}", token) for number in range(self._count)]

    async def _people(self) -> list[str]:
        people = await asyncio.to_thread(self._site.site.users, "person", self._count)
        authors = self._site.site.users("author", 2 * FRIENDS)
        for start in (0, 1):  # each author has half of the people as followers
            await self._site.follow(people[start::2], authors[start::2])
        return people

    @asynccontextmanager
    async def _server(self) -> AsyncIterator[Running]:
        flags = ("--job-workers", "0", "--heartbeat-seconds", f"{HEARTBEAT_SECONDS:g}")
        process, address = await asyncio.to_thread(self._site.serve, "streams", *flags)
        try:
            yield Running(process, int(address.rpartition(":")[2]))
        finally:
            await asyncio.to_thread(end, process)

    async def _idle_seconds(self, running: Running) -> float:
        """Return the CPU seconds a second of a server without streams."""
        await asyncio.sleep(WARM_SECONDS)
        before = cpu_seconds(running.process.pid)
        await asyncio.sleep(IDLE_SECONDS)
        return (cpu_seconds(running.process.pid) - before) / IDLE_SECONDS


def _without(still: Figures, busy: Figures) -> float:
    """Return the bytes of the deliveries: those of the busy time without the heartbeats."""
    return float(busy["bytes"] - still["bytes"] / still["seconds"] * busy["seconds"])


async def stream_costs(site: UnitSite, count: int, seconds: float, hear_us: float) -> dict[str, unit_costs.Stream]:
    """Measure all kinds of streams."""
    meter = StreamMeter(site, count, seconds, hear_us)
    return {kind: await meter.measure(kind) for kind in RATES}


def process_memory(site: UnitSite) -> float:
    """Return the memory of a server process without streams, in bytes."""
    return 1024.0 * memory_kib(site.writer[0].pid)


async def _steadily(site: UnitSite, rate: float, done: asyncio.Event) -> None:
    """Post texts of the usual length at a rate until ``done`` is set. The clients recognise a post by its time."""

    async def post(caller: Caller, number: int) -> None:
        if not done.is_set():
            status = {"message": text_of(number), "meta": {"t": time.monotonic_ns()}}
            token = site.site.authors[number % len(site.site.authors)]
            await caller.call(token, "POST", "/v1/statuses", status)

    posting = asyncio.create_task(in_turn(site.site.address, round(LONGEST_SECONDS * rate), post, rate=rate))
    await done.wait()
    posting.cancel()
    await asyncio.wait([posting])


def _request(path: str, token: str) -> str:
    return f"GET {path}\tAccept: text/event-stream\tAuthorization: Bearer {token}"
