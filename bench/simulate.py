"""``python -m bench.simulate``: the load of each part of a site, and which part is full first.

The unit costs come from a run of `bench.units`, by default the one behind `docs/capacity.md`. ``--check`` starts Redis
and two servers, posts and reads for some seconds, and compares what was predicted with what was measured.
"""

import argparse
import asyncio
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench.capacity import SAFE, Forecast, Part
from bench.paper_site import Layout, Traffic
from bench.simulate_check import check
from bench.unit_costs import CHECKED_IN, UnitCosts, read

MEANINGS = {
    "nodes": "machines with servers",
    "processes": "server processes of a node",
    "clients": "streams of a node",
    "kind": "kind of the streams: firehose, track or user",
    "users": "users with a full home timeline",
    "days": "days for which statuses are kept",
    "shards": "shards for derived data besides the core; 0: the core has them too",
    "replicas": "replicas from which the servers hear; 0: they hear from the core",
    "shared": "share of each core that other programs use",
    "gigabits": "network of a machine, Gb/s",
    "core_gb": "memory of a machine with Redis, GB",
    "node_gb": "memory of a machine with servers, GB",
    "posts": "posts a second",
    "followers": "followers of an author, on average",
    "mentions": "share of the posts that mention somebody",
    "deletes": "share of the posts that are deleted",
    "follows": "follows a second",
    "pages": "pages of 30 statuses read in a second",
    "homes": "share of the pages that are home timelines",
    "matching": "share of the posts that one stream receives",
    "reconnects": "connects of one stream in an hour",
}
"""The help of each option."""


def options_from(arguments: list[str]) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="python -m bench.simulate", description=__doc__)
    for name, default in (Layout()._asdict() | Traffic()._asdict()).items():
        flag = "--" + name.replace("_", "-")
        parser.add_argument(flag, type=type(default), default=default, help=f"{MEANINGS[name]} ({default})")
    parser.add_argument("--costs", type=Path, default=CHECKED_IN, metavar="FILE", help="a file of `bench.units --json`")
    parser.add_argument("--check", action="store_true", help="compare with two real servers")
    return parser.parse_args(arguments)


def forecast_of(costs: UnitCosts, options: argparse.Namespace) -> Forecast:
    """Return the forecast for the site of the command line."""
    given = vars(options)
    layout = Layout(**{name: given[name] for name in Layout._fields})
    return Forecast(costs, layout, Traffic(**{name: given[name] for name in Traffic._fields}))


def table(parts: list[Part]) -> Table:
    """Return the table of all parts."""
    made = Table(title="load of each part", title_justify="left")
    for column in ("part", "load", "limit", "of what is safe", "mostly"):
        made.add_column(column, justify="left" if column in {"part", "mostly"} else "right")
    for part in parts:
        limit = f"{part.limit:g} {part.unit}" if part.limit else ""
        share = f"{100 * part.share:.0f} %" if part.limit else ""
        made.add_row(part.name, f"{part.used:,.2f} {part.unit}", limit, share, part.mostly())
    return made


def main(arguments: list[str]) -> None:
    """Print the loads, or check them."""
    options = options_from(arguments)
    costs = read(options.costs)
    console = Console(width=None if Console().is_terminal else 160)
    if options.check:
        sys.exit(asyncio.run(check(costs, console)))
    forecast = forecast_of(costs, options)
    console.print(table(forecast.parts()))
    first = forecast.first_full()
    day = forecast.lasting_a_day() / 1e9
    console.print(f"first full: {first.name}, at {forecast.headroom():.2f} times this traffic; then: {first.advice}")
    console.print(f"a part may use {100 * SAFE:.0f} % of its limit; a day's statuses take {day:.2f} GB of the core")


if __name__ == "__main__":
    main(sys.argv[1:])
