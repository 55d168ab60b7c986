"""Measures the unit costs: does each deed some hundred times and compares the totals before and after."""

import asyncio
import os
import signal
import time
from collections import Counter
from collections.abc import Awaitable
from typing import NamedTuple

import msgspec

from bench import unit_costs
from bench.caller import HANDS, Caller, Traffic, in_turn
from bench.process import cpu_seconds, end
from bench.progress import Progress
from bench.redis_listener import Listener, listening
from bench.redis_meter import Reading, RedisMeter
from bench.unit_deeds import Community, Deed
from bench.unit_site import UnitSite
from stream_server.store import keys

QUIET_SECONDS = 0.15
"""Seconds without an entry or a job after which the deeds are done."""

WARM_SECONDS = 1.0
"""Seconds after a start in which a server may do more than later."""

SETTLE_SECONDS = 30.0
"""Longest wait in seconds for the jobs of the deeds."""

JOINED_SECONDS = 1.0
"""Seconds in which the hearer has surely read what was posted while it was stopped."""

SUBSCRIBERS = 3
"""Subscribers while deeds are measured: the server that does them, the one that hears, and the listener."""

MORE_SUBSCRIBERS = 40
"""Subscribers that are added to learn what one costs."""


class Sizes(NamedTuple):
    """The sizes of a run: deeds and streams of a kind, and the seconds of being idle and of deliveries."""

    deeds: int
    idle_seconds: float
    streams: int
    stream_seconds: float


class Totals(NamedTuple):
    """All totals at one moment. CPU times are in seconds."""

    at: float
    writer: float
    hearer: float
    published: float
    entries: float


class Times(NamedTuple):
    """CPU times of one deed in µs: of Redis' main thread, of the server that does it, and of one that hears it."""

    redis: float
    server: float
    hear: float


class DeedMeter:
    """Measures deeds. ``hearer`` is the process that only hears, and ``listener`` counts what is published."""

    def __init__(self, site: UnitSite, hearer: int, listener: Listener) -> None:
        self._site, self._hearer, self._listener = site, hearer, listener
        self._redis = RedisMeter(site.redis)
        self._idle = (Reading(Counter(), 0, 0, 0, 0, 0, 0, 0), Totals(0, 0, 0, 0, 0))
        self._idle_seconds = 1.0

    async def learn_idle(self, seconds: float) -> None:
        """Measure what all processes do while nothing happens. It is subtracted from all deeds."""
        await self.settle()
        redis, totals = self._redis.read(), self._totals()
        await asyncio.sleep(seconds)
        self._idle = self._redis.since(redis), _since(totals, self._totals())
        self._idle_seconds = self._idle[1].at

    async def measure(self, deed: Deed) -> unit_costs.Deed:
        """Do a deed as often as it says, and return what one costs."""
        await self.settle()
        redis, totals = self._redis.read(), self._totals()
        await in_turn(self._site.site.address, deed.alone, deed.call, hands=1)
        await self.settle()
        alone = self._times(deed.alone, self._redis.since(redis), _since(totals, self._totals()))
        families, redis, totals = self._redis.families(), self._redis.read(), self._totals()

        def later(caller: Caller, number: int) -> Awaitable[object]:
            return deed.call(caller, deed.alone + number)

        traffic = await in_turn(self._site.site.address, deed.times, later)
        await self.settle()
        done, passed = self._redis.since(redis), _since(totals, self._totals())
        grown = self._redis.families()
        grown.subtract(families)
        return self._cost(deed.times, done, passed, traffic, grown, alone)

    def _times(self, count: int, done: Reading, passed: Totals) -> Times:
        """Return the CPU times of one deed, without what the processes do while nothing happens."""
        idle, quiet = self._idle
        share = passed.at / self._idle_seconds
        hear = 1e6 * (passed.hearer - share * quiet.hearer) / count
        server = 1e6 * (passed.writer - share * quiet.writer) / count - hear
        return Times((done.main_us - share * idle.main_us) / count, server, hear)

    async def settle(self) -> None:
        """Wait until all jobs are done and nothing more is published."""
        end, entries = time.monotonic() + SETTLE_SECONDS, -1
        while self._redis.jobs_left() or entries != self._listener.entries:
            if time.monotonic() > end:
                raise RuntimeError(f"jobs are not done after {SETTLE_SECONDS:g} s")
            entries = self._listener.entries
            await asyncio.sleep(QUIET_SECONDS)

    def _cost(
        self, count: int, done: Reading, passed: Totals, traffic: Traffic, grown: "Counter[str]", alone: Times
    ) -> unit_costs.Deed:
        idle, _ = self._idle
        share = passed.at / self._idle_seconds
        calls = {name: (calls - share * idle.calls[name]) / count for name, calls in done.calls.items()}
        times = self._times(count, done, passed)
        return unit_costs.Deed(
            count=count,
            commands=sum(calls.values()),
            redis_us=times.redis,
            redis_other_us=(done.other_us - share * idle.other_us) / count,
            script_us=(done.script_us - share * idle.script_us) / count,
            server_us=times.server,
            hear_us=times.hear,
            alone_redis_us=alone.redis,
            alone_server_us=alone.server,
            alone_hear_us=alone.hear,
            entries=passed.entries / count,
            published=passed.published / count,
            redis_in=(done.received - share * idle.received) / count,
            redis_out=(done.sent - share * idle.sent - SUBSCRIBERS * passed.published) / count,
            http_in=traffic.sent / count,
            http_out=traffic.received / count,
            memory=done.memory / count,
            aof=(done.aof - share * idle.aof) / count,
            families={name: size / count for name, size in sorted(grown.items()) if abs(size) >= count},
            calls={name: number for name, number in sorted(calls.items()) if number >= 0.05},
        )

    def _totals(self) -> Totals:
        writer, hearer = cpu_seconds(self._site.writer[0].pid), cpu_seconds(self._hearer)
        return Totals(time.monotonic(), writer, hearer, self._listener.bytes, self._listener.entries)


async def deed_costs(
    site: UnitSite, community: Community, hearer: int, sizes: Sizes, progress: Progress
) -> dict[str, unit_costs.Deed]:
    """Measure all deeds, one after the other."""
    found = {}
    async with listening(site.redis_port) as [listener]:
        meter = DeedMeter(site, hearer, listener)
        await meter.learn_idle(sizes.idle_seconds)
        for part in (
            community.sign_ups, community.posts, community.pages, community.follows, community.deletes,
        ):  # fmt: skip
            for deed in part():
                with progress.part(deed.name, deed.alone + deed.times) as told:
                    found[deed.name] = await meter.measure(deed)
                    told(deed.alone + deed.times)
    return found


async def idle_costs(site: UnitSite, seconds: float) -> unit_costs.Idle:
    """Measure what Redis costs while nothing happens, and how much more a second server process makes it."""
    await asyncio.sleep(WARM_SECONDS)
    first, own = await _idle(site, seconds, site.writer[0].pid)
    process, _ = await asyncio.to_thread(site.serve, "second")
    try:
        await asyncio.sleep(WARM_SECONDS)
        both, cpu = await _idle(site, seconds, process.pid)
    finally:
        await asyncio.to_thread(end, process)
    return unit_costs.Idle(
        commands=both.calls.total() / seconds - first.calls.total() / seconds,
        redis_us=(both.main_us - first.main_us) / seconds,
        redis_own_us=max(0.0, 2 * first.main_us - both.main_us) / seconds,
        server_us=1e6 * (own + cpu) / 2 / seconds,
        redis_in=(both.received - first.received) / seconds,
        redis_out=(both.sent - first.sent) / seconds,
    )


async def _idle(site: UnitSite, seconds: float, pid: int) -> tuple[Reading, float]:
    """Return what Redis does in this time, and the CPU seconds of a process."""
    meter = RedisMeter(site.redis)
    before, cpu = meter.read(), cpu_seconds(pid)
    await asyncio.sleep(seconds)
    return meter.since(before), cpu_seconds(pid) - cpu


async def joined_us(site: UnitSite, community: Community, hearer: int) -> dict[str, float]:
    """Return what hearing a post costs if many come in one read. The hearer is stopped while they are posted."""
    return {deed.name: await _joined(site, deed, hearer) for deed in community.posts()[:2]}


async def _joined(site: UnitSite, deed: Deed, hearer: int) -> float:
    os.kill(hearer, signal.SIGSTOP)
    try:
        await in_turn(site.site.address, deed.times, deed.call)
        before = cpu_seconds(hearer)
    finally:
        os.kill(hearer, signal.SIGCONT)
    await asyncio.sleep(JOINED_SECONDS)
    early = cpu_seconds(hearer)
    await asyncio.sleep(JOINED_SECONDS)
    idle = cpu_seconds(hearer) - early
    return 1e6 * (early - before - idle) / deed.times


async def subscriber_us(site: UnitSite, community: Community, hands: int = HANDS) -> float:
    """Return the CPU time of Redis for one entry and one subscriber, in µs."""
    deed, meter = community.posts()[0], RedisMeter(site.redis)
    spent = []
    for count in (1, 1 + MORE_SUBSCRIBERS):
        async with listening(site.redis_port, count):
            before = meter.read()
            await in_turn(site.site.address, deed.times, deed.call, hands)
            spent.append(meter.since(before).main_us / deed.times)
    return (spent[1] - spent[0]) / MORE_SUBSCRIBERS


def without_subscribers(deed: unit_costs.Deed, us: float, alone_us: float) -> unit_costs.Deed:
    """Return the cost of a deed without that of sending its entries, which is ``us`` for one entry and subscriber."""
    sent = SUBSCRIBERS * deed.entries
    return msgspec.structs.replace(
        deed, redis_us=deed.redis_us - sent * us, alone_redis_us=deed.alone_redis_us - sent * alone_us
    )


def full_home(site: UnitSite) -> float:
    """Return the memory of a home timeline of full length, in bytes."""
    site.fill_homes(["full"])
    return float(site.redis.memory_usage(keys.home_timeline("full"), samples=0) or 0)


def _since(before: Totals, after: Totals) -> Totals:
    return Totals(*(late - early for late, early in zip(after, before, strict=True)))
