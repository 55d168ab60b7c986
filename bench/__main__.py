"""``python -m bench``: measure the server beside its yardsticks in one run, and print a table of ratios."""

import argparse
import os
import resource
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bench import parts
from bench.against import checkout
from bench.clients import Clients
from bench.disturbance import Disturbance
from bench.lineup import BareServer, BookServer, Floor, QueueServer, Server, StreamServer
from bench.native import compiled
from bench.parts import Measured, Plan
from bench.process import end_cleanly, last_core, pin
from bench.report import Report, Results
from bench.site import Site, site

SPARE_FILES = 200
"""File descriptors kept free for everything except the clients' connections."""

IDLE_AT_MOST = 4000
"""Number of idle connections in a full run."""

CROWD = 10_000
"""Number of streams that return at once, if the system allows so many open files."""

CROWD_FILES = 4096
"""File descriptors that such a crowd needs besides its streams."""

MEASURES: dict[str, Callable[[Server, Clients, Plan], Measured]] = {
    "firehose": partial(parts.fan_out, kind="firehose"), "tracks": partial(parts.fan_out, kind="tracks"),
    "rooms": parts.rooms, "joined": parts.joined, "requests": parts.requests, "pages": parts.pages,
    "connects": parts.connects, "idle": parts.idle, "crowd": parts.returning,
}  # fmt: skip
PARTS = tuple(MEASURES)
"""The parts of a run, in order. A quick run leaves out the last one."""


@dataclass(frozen=True)
class Options:
    """The options of the command line."""

    plan: Plan
    parts: tuple[str, ...]
    against: str
    json: str


def options_from(arguments: list[str]) -> Options:
    """Parse the command line. End the program if it names an unknown part."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one short round, to see that it works")
    parser.add_argument("--only", default="", metavar="PARTS", help=f"comma-joined, of {', '.join(PARTS)}")
    parser.add_argument("--against", default="", metavar="COMMIT", help="measure another commit, not the yardsticks")
    parser.add_argument("--conns", type=int, default=1000, help="streaming clients (1000)")
    parser.add_argument("--rate", type=float, default=50, help="posts a second to firehose clients (50)")
    parser.add_argument("--track-rate", type=float, default=200, help="posts a second to tracking clients (200)")
    parser.add_argument("--rounds", type=int, default=0, help="interleaved rounds (3)")
    parser.add_argument("--seconds", type=float, default=0, help="length of each measurement (5)")
    parser.add_argument("--json", default="", metavar="FILE", help="write the figures there as well")
    given = parser.parse_args(arguments)
    wanted = tuple(given.only.split(",")) if given.only else PARTS[: -1 if given.quick else None]
    if unknown := set(wanted) - set(PARTS):
        parser.error(f"no such part: {', '.join(sorted(unknown))}")
    room = resource.getrlimit(resource.RLIMIT_NOFILE)[1] - SPARE_FILES
    plan = Plan(
        rounds=given.rounds or (1 if given.quick else 3), conns=min(given.conns, room),
        openings=min(given.conns if given.quick else 2 * given.conns, room),
        idle_conns=min(given.conns if given.quick else max(given.conns, IDLE_AT_MOST), room),
        rate=given.rate, track_rate=given.track_rate, seconds=given.seconds or (2 if given.quick else 5),
        warmup=0.5 if given.quick else 2, settle=0.2 if given.quick else 0.5,
        crowd=min(given.conns if given.quick else CROWD, max(1, room - CROWD_FILES)),
    )  # fmt: skip
    return Options(plan, tuple(part for part in PARTS if part in wanted), given.against, given.json)


class Bench:
    """One run: the sites, the servers and the results."""

    def __init__(self, options: Options, ours: list[StreamServer], shared: Site | None, folder: Path) -> None:
        """``shared`` is the site of the yardsticks, or None if another commit is measured in their place."""
        self.results = Results()
        self._options, self._ours, self._shared = options, ours, shared
        self._programs = compiled(folder)
        self._clients = Clients(folder, self._programs.load)

    def run(self) -> None:
        """Measure all parts in all rounds. In each round the servers follow each other."""
        plan = self._options.plan
        for part in self._options.parts:
            for number in range(1 if part == "crowd" else plan.rounds):
                for server in (*self._ours, *self._yardsticks(part)):
                    print(f"{part}, round {number + 1}, {server.column}", file=sys.stderr, flush=True)
                    for name, figures in MEASURES[part](server, self._clients, plan):
                        self.results.add(server.column, name, figures)

    def _yardsticks(self, part: str) -> list[Server]:
        if self._shared is None:
            return []
        queue, bare, floor = QueueServer(self._shared), BareServer(self._shared), self._programs.floor
        fan_out = [Floor(self._shared, floor), queue]
        found: dict[str, list[Server]] = {
            "firehose": [*fan_out], "tracks": [*fan_out], "rooms": [],
            "joined": [Floor(self._shared, floor, batch=True)], "requests": [BookServer(self._shared)], "pages": [],
            "connects": [bare], "idle": [queue], "crowd": [bare],
        }  # fmt: skip
        return found[part]


@contextmanager
def bench_of(options: Options) -> Iterator[tuple[Bench, str]]:
    """Start the sites. Yield the run, and the name of the other commit if one is measured."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="stream-server-bench-")))
        other = stack.enter_context(checkout(options.against)) if options.against else None
        sites = [stack.enter_context(site())]
        if other:
            sites.append(stack.enter_context(site(other.folder, other.python)))
        if {"requests", "pages"} & {*options.parts}:
            for one in sites:
                one.prepare_requests()
        names = ["ours", other.name if other else ""]
        servers = [StreamServer(one, name) for one, name in zip(sites, names, strict=False)]
        yield Bench(options, servers, None if other else sites[0], folder), names[1]


def main() -> None:
    """Measure and print the table. Progress goes to stderr."""
    options = options_from(sys.argv[1:])
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    pin(os.getpid(), last_core())
    end_cleanly()
    disturbance = Disturbance()
    with bench_of(options) as (bench, base):
        bench.run()
    report = Report(bench.results, options.plan, base)
    print(report.text(), disturbance.note(), sep="\n")
    if options.json:
        Path(options.json).write_text(report.json(), encoding="utf-8")


if __name__ == "__main__":
    main()
