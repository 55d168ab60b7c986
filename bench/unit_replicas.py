"""``python -m bench.unit_replicas``: what a page costs the primary, the replicas and the server.

Each server has another number of replicas in ``--redis-read``, from none to two, and answers the same home timelines.

    python -m bench.unit_replicas --write       # also these figures in unit_costs.json, and docs/capacity.md
"""

import asyncio
import os
import subprocess
import sys
from contextlib import AsyncExitStack

import msgspec
from redis import Redis

from bench import capacity_page, replica, unit_costs
from bench.disturbance import Disturbance
from bench.poster import Connection, in_turn
from bench.process import cpu_seconds, end, end_cleanly, last_core, pin
from bench.redis_meter import RedisMeter
from bench.site import ROOT
from bench.unit_costs import PageCost
from bench.unit_deeds import PAGE, Community
from bench.unit_site import OPTIONS, SYNCED, UnitSite, unit_site

PAGES = 1500
"""Pages of each server, if this program runs alone."""


async def page_costs(site: UnitSite, community: Community, pages: int) -> list[PageCost]:
    """Measure home timelines that are answered by the primary alone, and with one and two replicas."""
    found = []
    async with AsyncExitStack() as stack:
        made = [replica.replica(site.redis_port, *OPTIONS, appendfsync=SYNCED) for _ in range(replica.MOST)]
        ports = [(await stack.enter_async_context(each)).port for each in made]
        for count in range(replica.MOST + 1):
            print(f"pages with {count} replicas", file=sys.stderr, flush=True)
            found.append(await _measure(site, community, ports[:count], pages))
    return found


async def _measure(site: UnitSite, community: Community, ports: list[int], pages: int) -> PageCost:
    urls = " ".join(f"redis://127.0.0.1:{port}" for port in ports)
    flags = ("--redis-read", urls) if ports else ()
    process, address = await asyncio.to_thread(site.serve, f"near{len(ports)}", "--job-workers", "0", *flags)
    primary, replicas = RedisMeter(site.redis), [RedisMeter(Redis(port=port)) for port in ports]
    tokens = site.tokens(community.readers(10), "read")

    async def home(connection: Connection, number: int) -> None:
        await connection.call("GET", f"/v1/timelines/home?count={PAGE}", tokens[number % len(tokens)])

    try:
        await in_turn(address, pages // 3, home)
        before, readings, spent = primary.read(), [each.read() for each in replicas], cpu_seconds(process.pid)
        await in_turn(address, pages, home)
        server_us = 1e6 * (cpu_seconds(process.pid) - spent)
        near = [each.since(reading).main_us for each, reading in zip(replicas, readings, strict=True)]
        return PageCost(
            primary=primary.since(before).main_us / pages, replica=max(near, default=0) / pages,
            server=server_us / pages,
        )  # fmt: skip
    finally:
        await asyncio.to_thread(end, process)


async def _run() -> list[PageCost]:
    async with unit_site(ROOT, sys.executable) as site:
        community = Community(site, PAGES // 5)
        await community.gather()
        for deed in community.posts()[2:3]:  # of authors with ten followers, so that homes have a page
            await in_turn(site.site.address, deed.times, deed.call)
        return await page_costs(site, community, PAGES)


def main(arguments: list[str]) -> None:
    """Measure, and print the table of the page about capacity."""
    end_cleanly()
    pin(os.getpid(), last_core())
    disturbance = Disturbance()
    costs = msgspec.structs.replace(unit_costs.read(), pages=asyncio.run(_run()))
    costs = msgspec.structs.replace(costs, pages_busy_percent=100 * disturbance.share())
    print(capacity_page.replicas(costs))
    if arguments == ["--write"]:
        unit_costs.CHECKED_IN.write_text(costs.json(), encoding="utf-8")
        subprocess.run([sys.executable, "-m", "docs.tables"], cwd=ROOT, check=True)


if __name__ == "__main__":
    main(sys.argv[1:])
