"""``python -m bench.units``: what a post, a delete, a follow, a page, a heard entry and a stream cost.

Each deed is done some hundred times over HTTP. A figure is the difference of the totals before and after, divided by
the number of deeds, less what the processes do while nothing happens. One server does the deeds and another only hears
their entries. Redis keeps an append-only file, synced every second, and is reached over TCP.

`bench/README.md` says how to read the figures, and `docs/capacity.md` is made from them.
"""

import argparse
import asyncio
import os
import platform
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import NamedTuple

from bench import capacity_page
from bench.against import checkout
from bench.disturbance import Disturbance
from bench.process import CORES, end_cleanly, last_core, memory_kib, pin
from bench.site import ROOT
from bench.unit_costs import CHECKED_IN, Machine, UnitCosts
from bench.unit_deeds import Community
from bench.unit_replicas import page_costs
from bench.unit_run import DeedMeter, deed_costs, full_home, without_subscribers
from bench.unit_site import SYNCED, UnitSite, hearing, unit_site
from bench.unit_streams import stream_costs


class Sizes(NamedTuple):
    """The sizes of a run: deeds and streams of a kind, and the seconds of being idle and of deliveries."""

    deeds: int
    idle_seconds: float
    streams: int
    stream_seconds: float


FULL = Sizes(deeds=300, idle_seconds=8, streams=500, stream_seconds=4)
QUICK = Sizes(deeds=60, idle_seconds=1, streams=100, stream_seconds=1.5)


class Options(NamedTuple):
    """The command line."""

    sizes: Sizes
    commit: str
    write: bool


def options_from(arguments: list[str]) -> Options:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="python -m bench.units", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer deeds, to see that it works")
    parser.add_argument("--commit", default="", help="measure another commit, with the programs of this checkout")
    parser.add_argument("--write", action="store_true", help="write unit_costs.json and the pages made from it")
    given = parser.parse_args(arguments)
    return Options(QUICK if given.quick else FULL, given.commit, given.write)


async def measure(folder: Path, python: str, sizes: Sizes, commit: str) -> UnitCosts:
    """Measure the server of a checkout."""
    disturbance = Disturbance()
    async with unit_site(folder, python) as site:
        costs = await _measured(site, sizes)
        machine = Machine(
            processor=_processor(), cores=len(CORES), python=platform.python_version(), redis=site.redis_version,
            appendfsync=SYNCED, commit=commit, busy_percent=100 * disturbance.share(),
        )  # fmt: skip
    return costs(machine)


async def _measured(site: UnitSite, sizes: Sizes) -> Callable[[Machine], UnitCosts]:
    memory = 1024.0 * memory_kib(site.writer[0].pid)
    community = Community(site, sizes.deeds)
    await community.gather()
    async with hearing(site) as hearer:
        meter = DeedMeter(site, hearer)
        await meter.learn_idle(sizes.idle_seconds)
        deeds, subscriber_us = await deed_costs(meter, community)
    hear_us = deeds["post, 0 followers"].many.hear
    streams = await stream_costs(site, sizes.streams, sizes.stream_seconds, hear_us)
    idle, totals = meter.idle, meter.idle_totals
    disturbance, pages = Disturbance(), await page_costs(site, community, 5 * sizes.deeds)
    return partial(
        UnitCosts, pages=pages, pages_busy_percent=100 * disturbance.share(),
        idle_commands=idle.commands / totals.at / 2,  # two servers are idle, the writer and the hearer
        idle_redis_us=idle.main_us / totals.at / 2,
        idle_server_us=1e6 * (totals.writer + totals.hearer) / totals.at / 2,
        deeds={name: without_subscribers(deed, subscriber_us) for name, deed in deeds.items()},
        streams=streams, subscriber_us=subscriber_us, full_home=full_home(site), process_memory=memory,
    )  # fmt: skip


def _processor() -> str:
    rows = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    return next((row.partition(":")[2].strip() for row in rows if row.startswith("model name")), platform.machine())


def _commit() -> str:
    done = subprocess.run(
        ["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return done.stdout.strip()


def main(arguments: list[str]) -> None:
    """Measure, and print the tables of the page about capacity. Progress goes to stderr."""
    options = options_from(arguments)
    end_cleanly()
    pin(os.getpid(), last_core())
    with ExitStack() as stack:
        folder, python, name = ROOT, sys.executable, _commit()
        if options.commit:
            name, folder, python = stack.enter_context(checkout(options.commit))
        costs = asyncio.run(measure(folder, python, options.sizes, name))
    for build in capacity_page.BLOCKS.values():
        print(build(costs))
    if options.write:
        CHECKED_IN.write_text(costs.json(), encoding="utf-8")
        subprocess.run([sys.executable, "-m", "docs.tables"], cwd=ROOT, check=True)


if __name__ == "__main__":
    main(sys.argv[1:])
