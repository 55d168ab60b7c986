"""Measures the unit costs: does each deed some hundred times and compares the totals before and after."""

import asyncio
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import NamedTuple

from bench.poster import HANDS, in_turn
from bench.process import cpu_seconds
from bench.redis_meter import Reading, RedisMeter
from bench.unit_costs import Deed, Times
from bench.unit_deeds import Call, Community
from bench.unit_deeds import Deed as Planned
from bench.unit_site import UnitSite
from stream_server.events.entry import CHANNELS
from stream_server.store import keys

QUIET_SECONDS = 0.15
"""Seconds without an entry or a job after which the deeds are done."""

SETTLE_SECONDS = 30.0
"""Longest wait in seconds for the jobs of the deeds."""

SUBSCRIBERS = 2
"""Subscribers while deeds are measured: the server that does them, and the one that hears."""

MORE_SUBSCRIBERS = 40
"""Subscribers that are added to learn what one costs."""


class Totals(NamedTuple):
    """CPU times in seconds of the server that does the deeds and of the one that hears, and the time."""

    at: float
    writer: float
    hearer: float


class DeedMeter:
    """Measures deeds. ``hearer`` is the process that only hears."""

    def __init__(self, site: UnitSite, hearer: int) -> None:
        self._site, self._hearer = site, hearer
        self._redis = RedisMeter(site.redis)
        self.idle, self.idle_totals = Reading(0, 0, 0, 0, 0), Totals(1, 0, 0)

    async def learn_idle(self, seconds: float) -> None:
        """Measure what all processes do while nothing happens. It is subtracted from all deeds."""
        await self._settle()
        redis, totals = self._redis.read(), self._totals()
        await asyncio.sleep(seconds)
        self.idle, self.idle_totals = self._redis.since(redis), self._since(totals)

    async def measure(self, deed: Planned) -> Deed:
        """Do a deed as often as it says, first one at a time. Return what one costs."""
        _, _, alone = await self._do(deed.alone, deed.call, 1)
        families = self._redis.families()[0]
        answers, done, many = await self._do(
            deed.times, lambda connection, number: deed.call(connection, deed.alone + number), HANDS
        )
        grown = self._redis.families()[0]
        grown.subtract(families)
        count = deed.times
        return Deed(
            commands=done.commands / count, many=many, alone=alone, entries=done.entries / count,
            memory=done.memory / count, aof=done.aof / count, answer=answers / count,
            families={name: size / count for name, size in sorted(grown.items()) if abs(size) >= count},
        )  # fmt: skip

    async def subscriber_us(self, deed: Planned) -> float:
        """Return the CPU time of Redis for one entry and one subscriber, in µs."""
        spent = []
        for count in (0, MORE_SUBSCRIBERS):
            async with _subscribed(self._site.redis_port, count):
                _, done, _ = await self._do(deed.times, deed.call, HANDS)
                spent.append(done.main_us / deed.times)
        return (spent[1] - spent[0]) / MORE_SUBSCRIBERS

    async def _do(self, count: int, call: Call, hands: int) -> tuple[int, Reading, Times]:
        """Return the bytes of the answers, what Redis did, and the CPU times of one deed, without what is idle."""
        await self._settle()
        redis, totals = self._redis.read(), self._totals()
        answers = await in_turn(self._site.site.address, count, call, hands)
        await self._settle()
        done, passed, quiet = self._redis.since(redis), self._since(totals), self.idle_totals
        share = passed.at / quiet.at
        done = done._replace(
            commands=done.commands - share * self.idle.commands, main_us=done.main_us - share * self.idle.main_us
        )
        hear = 1e6 * (passed.hearer - share * quiet.hearer) / count
        server = 1e6 * (passed.writer - share * quiet.writer) / count - hear
        return answers, done, Times(done.main_us / count, server, hear)

    async def _settle(self) -> None:
        """Wait until all jobs are done and nothing more is published. Raises RuntimeError if that takes too long."""
        end, entries = time.monotonic() + SETTLE_SECONDS, -1
        while self._redis.jobs_left() or entries != self._redis.entries():
            if time.monotonic() > end:
                raise RuntimeError(f"jobs are not done after {SETTLE_SECONDS:g} s")
            entries = self._redis.entries()
            await asyncio.sleep(QUIET_SECONDS)

    def _totals(self) -> Totals:
        return Totals(time.monotonic(), cpu_seconds(self._site.writer[0].pid), cpu_seconds(self._hearer))

    def _since(self, before: Totals) -> Totals:
        return Totals(*(late - early for late, early in zip(self._totals(), before, strict=True)))


async def deed_costs(meter: DeedMeter, community: Community) -> tuple[dict[str, Deed], float]:
    """Measure all deeds, one after the other. Return them and the cost of one subscriber of an entry in µs."""
    found = {}
    parts = (community.sign_ups, community.posts, community.pages, community.follows, community.deletes)
    for deed in (deed for part in parts for deed in part()):
        print(deed.name, file=sys.stderr, flush=True)
        found[deed.name] = await meter.measure(deed)
    return found, await meter.subscriber_us(community.posts()[0])


def without_subscribers(deed: Deed, us: float) -> Deed:
    """Return a deed without the cost of sending its entries, ``us`` for one entry and subscriber."""
    sent = SUBSCRIBERS * deed.entries * us
    many, alone = (Times(one.redis - sent, one.server, one.hear) for one in (deed.many, deed.alone))
    return Deed(deed.commands, many, alone, deed.entries, deed.memory, deed.aof, deed.answer, deed.families)


def full_home(site: UnitSite) -> float:
    """Return the memory of a home timeline of full length, in bytes."""
    site.fill_homes(["full"])
    return float(site.redis.memory_usage(keys.home_timeline("full"), samples=0) or 0)


@asynccontextmanager
async def _subscribed(port: int, count: int) -> AsyncIterator[None]:
    """Have ``count`` subscribers of all entries, which read and forget them."""

    async def read(reader: asyncio.StreamReader) -> None:
        while await reader.read(1 << 18):
            pass

    opened = [await asyncio.open_connection("127.0.0.1", port) for _ in range(count)]
    tasks = []
    for reader, writer in opened:
        writer.write(f"SUBSCRIBE {' '.join(CHANNELS)}\r\n".encode())
        tasks.append(asyncio.create_task(read(reader)))
    yield
    for task, (_, writer) in zip(tasks, opened, strict=True):
        task.cancel()
        writer.close()
