"""Compares a forecast with two real servers, which post, read pages and serve streams at fixed rates."""

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from random import Random
from statistics import median
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

from bench.caller import OpenStream, in_turn
from bench.capacity import Forecast
from bench.disturbance import Disturbance
from bench.lineup import TOPICS, track_of
from bench.paper_site import Layout, Traffic
from bench.process import CORES, cpu_seconds, end
from bench.redis_meter import RedisMeter
from bench.site import ROOT
from bench.unit_costs import UnitCosts
from bench.unit_deeds import Community, Deed
from bench.unit_site import UnitSite, unit_site

TOLERANCE = 0.25
"""Greatest error of a forecast."""

KNOWN = "post, 10 followers"
"""The deed that is measured once more, because the speed of a shared machine changes from run to run."""

SECONDS = 2
ROUNDS = 5
"""Rounds of traffic, and the seconds of each. Before and after all of them the known deed is measured."""

WARM_SECONDS = 2

KNOWN_TIMES = 100

CLIENTS = 100
"""Streams of each server."""

SERVERS = 2
LAYOUT = Layout(nodes=SERVERS, processes=1, clients=CLIENTS, kind="track", users=0)
TRAFFIC = Traffic(
    posts=80, followers=10, mentions=0.5, deletes=0, follows=0, pages=80, homes=0.5, matching=1 / TOPICS, reconnects=0
)


class Measured(NamedTuple):
    """The measured load of one second. CPU times are shares of a core, sizes are in bytes.

    ``speed`` is the cost of the known deed, in Redis and the server, divided by that in the unit costs.
    """

    speed: float
    redis_cpu: float
    first_cpu: float
    second_cpu: float
    redis_network: float
    aof: float
    streams: float


async def check(costs: UnitCosts, console: Console) -> int:
    """Print what was predicted and what was measured. Return 1 if one of the errors is too great, else 0."""
    disturbance = Disturbance()
    async with unit_site(ROOT, sys.executable) as site, _second(site) as second:
        measured = await _measure(site, second, costs)
    layout, others = LAYOUT._replace(shared=disturbance.share() / len(CORES)), disturbance.note()
    wrong = False
    made = Table(title=f"a second of two servers, each with {CLIENTS} streams", title_justify="left")
    for column in ("", "predicted", "measured", "measured / predicted"):
        made.add_column(column, justify="right" if column else "left")
    for name, predicted, found in _rows(Forecast(costs, layout, TRAFFIC), measured):
        wrong = wrong or abs(found / predicted - 1) > TOLERANCE
        made.add_row(name, f"{predicted:,.3f}", f"{found:,.3f}", f"{found / predicted:.2f}")
    console.print(made)
    console.print(
        f"the machine: {KNOWN} takes {measured.speed:.2f} times its unit cost now, and so was everything predicted"
    )
    console.print(others)
    console.print(f"at least one is off by more than {100 * TOLERANCE:.0f} %" if wrong else "all are near enough")
    return int(wrong)


def _rows(forecast: Forecast, found: Measured) -> Iterator[tuple[str, float, float]]:
    server = found.speed * forecast.process_cpu().used
    yield "Redis: CPU, cores", found.speed * forecast.core_cpu().used, found.redis_cpu
    yield "first server: CPU, cores", server, found.first_cpu
    yield "second server: CPU, cores", server, found.second_cpu
    yield "Redis: network, kB", forecast.core_network().used * 125_000, found.redis_network / 1000
    yield "Redis: append-only file, kB", forecast.core_disk().used * 1000, found.aof / 1000
    stream = forecast.costs.streams[LAYOUT.kind]
    sent = 2 * (forecast.deliveries() * stream.deliver_bytes + CLIENTS / 15 * stream.heartbeat_bytes)
    yield "both servers: to streams, kB", sent / 1000, found.streams / 1000


@asynccontextmanager
async def _second(site: UnitSite) -> "AsyncIterator[tuple[int, str]]":
    process, address = await asyncio.to_thread(site.serve, "second")
    try:
        yield process.pid, address
    finally:
        await asyncio.to_thread(end, process)


async def _measure(site: UnitSite, second: tuple[int, str], costs: UnitCosts) -> Measured:
    """Return the medians of all rounds. The known deed is measured without streams, as for the unit costs."""
    community = Community(site, round(TRAFFIC.posts), followers=(10,))
    await community.gather()
    addresses = (site.site.address, second[1])
    early = await _speed(site, community, costs)
    streams = [await _stream(site, address, number) for address in addresses for number in range(CLIENTS)]
    await _traffic(addresses, community, WARM_SECONDS)
    pids = (site.writer[0].pid, second[0])
    rounds = [await _round(site, pids, addresses, community, streams) for _ in range(ROUNDS)]
    for stream in streams:
        stream.close()
    speed = (early + await _speed(site, community, costs)) / 2
    return Measured(*(median(values) for values in zip(*rounds, strict=True)))._replace(speed=speed)


async def _round(
    site: UnitSite, pids: tuple[int, int], addresses: tuple[str, str], community: Community, streams: list[OpenStream]
) -> Measured:
    meter = RedisMeter(site.redis)
    before, cpu, received = meter.read(), [cpu_seconds(pid) for pid in pids], sum(one.received for one in streams)
    await _traffic(addresses, community, SECONDS)
    done = meter.since(before)
    first, second = ((cpu_seconds(pid) - early) / SECONDS for pid, early in zip(pids, cpu, strict=True))
    received = sum(one.received for one in streams) - received
    redis, network = done.main_us / 1e6 / SECONDS, (done.received + done.sent) / SECONDS
    return Measured(1.0, redis, first, second, network, done.aof / SECONDS, received / SECONDS)


async def _speed(site: UnitSite, community: Community, costs: UnitCosts) -> float:
    """Return the CPU time of the known deed in Redis and its server, as a multiple of the unit costs."""
    deed, known, idle = community.posts()[0], costs.deeds[KNOWN], costs.idle
    meter, start, spent = RedisMeter(site.redis), time.monotonic(), cpu_seconds(site.writer[0].pid)
    before = meter.read()
    await in_turn(site.site.address, KNOWN_TIMES, deed.call, hands=1)
    found = meter.since(before).main_us + 1e6 * (cpu_seconds(site.writer[0].pid) - spent)
    sending = SERVERS * known.entries * costs.alone_subscriber_us
    expected = KNOWN_TIMES * (known.alone_redis_us + sending + known.alone_server_us + known.alone_hear_us)
    resting = idle.redis_own_us + SERVERS * idle.redis_us + idle.server_us
    return found / (expected + (time.monotonic() - start) * resting)


async def _stream(site: UnitSite, address: str, number: int) -> OpenStream:
    return await OpenStream.open(address, site.site.token(site.site.admin, "stream"), f"track={track_of(number)}")


async def _traffic(addresses: tuple[str, str], community: Community, seconds: float) -> None:
    """Do all deeds at their rates, half of them at each server."""
    pages, posts = community.pages(), community.posts()
    await asyncio.gather(
        *(_at_rate(address, deed, TRAFFIC.posts / 4, seconds) for address in addresses for deed in posts),
        *(_at_rate(address, deed, TRAFFIC.pages / 4, seconds) for address in addresses for deed in pages),
        asyncio.sleep(seconds),
    )


async def _at_rate(address: str, deed: Deed, rate: float, seconds: float) -> None:
    """Do a deed at random times, as many independent people do. Equal intervals would let deeds come in step."""
    chance = Random(f"{address} {deed.name}")
    due = sorted(chance.uniform(0, seconds) for _ in range(round(rate * seconds)))
    await in_turn(address, len(due), deed.call, due=due)
