"""``python -m bench``: measure the server beside its yardsticks in one run, and print a table of ratios."""

import argparse
import os
import resource
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from bench import parts
from bench.clients import Clients
from bench.lineup import BareServer, Floor, QueueServer, Server, StreamServer
from bench.native import Programs, compiled
from bench.parts import Measured, Plan
from bench.process import last_core, pin
from bench.progress import Progress
from bench.report import Report, Results
from bench.site import Site, site

SPARE_FILES = 200
"""File descriptors kept free for everything except the clients' connections."""

IDLE_AT_MOST = 4000
"""Number of idle connections in a full run."""

PARTS = ("firehose", "tracks", "joined", "requests", "connects", "idle")
"""The parts of a run, in order."""


@dataclass(frozen=True)
class Options:
    """What the command line asks for."""

    plan: Plan
    parts: tuple[str, ...]
    json: str


def options_from(arguments: list[str]) -> Options:
    """Parse the command line. End the program if it names an unknown part."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one short round, to see that it works")
    parser.add_argument("--only", default="", metavar="PARTS", help=f"comma-joined, of {', '.join(PARTS)}")
    parser.add_argument("--conns", type=int, default=1000, help="streaming clients (1000)")
    parser.add_argument("--rate", type=float, default=50, help="posts a second to firehose clients (50)")
    parser.add_argument("--track-rate", type=float, default=200, help="posts a second to tracking clients (200)")
    parser.add_argument("--rounds", type=int, default=0, help="interleaved rounds (3)")
    parser.add_argument("--seconds", type=float, default=0, help="length of each measurement (6)")
    parser.add_argument("--json", default="", metavar="FILE", help="write the figures there as well")
    given = parser.parse_args(arguments)
    wanted = tuple(given.only.split(",")) if given.only else PARTS
    if unknown := set(wanted) - set(PARTS):
        parser.error(f"no such part: {', '.join(sorted(unknown))}")
    room = resource.getrlimit(resource.RLIMIT_NOFILE)[1] - SPARE_FILES
    plan = Plan(
        rounds=given.rounds or (1 if given.quick else 3),
        conns=min(given.conns, room),
        openings=min(given.conns if given.quick else 2 * given.conns, room),
        idle_conns=min(given.conns if given.quick else max(given.conns, IDLE_AT_MOST), room),
        rate=given.rate,
        track_rate=given.track_rate,
        seconds=given.seconds or (2 if given.quick else 6),
        warmup=0.5 if given.quick else 2,
        settle=0.2 if given.quick else 0.5,
    )
    return Options(plan, tuple(part for part in PARTS if part in wanted), given.json)


class Bench:
    """One run: the sites, the servers and the results."""

    def __init__(self, options: Options, ours: list[StreamServer], yardsticks: Site | None, folder: Path) -> None:
        self.results = Results()
        self.programs = compiled(folder)
        self._options = options
        self._ours = ours
        self._yardsticks = yardsticks
        self._clients = Clients(folder, self.programs)

    def run(self, progress: Progress) -> None:
        """Measure all parts in all rounds. In each round the servers follow each other."""
        plan = self._options.plan
        for part in self._options.parts:
            steps = [(server, measured) for _ in range(plan.rounds) for server, measured in self._steps(part)]
            with progress.part(part, len(steps)) as told:
                for done, (server, measured) in enumerate(steps):
                    for name, figures in measured:
                        self.results.add(server.column, name, figures)
                    told(done + 1)

    def _steps(self, part: str) -> Iterator[tuple[Server, Measured]]:
        """Yield the servers of a part, and for each the measurement, which begins when it is iterated."""
        plan, clients = self._options.plan, self._clients
        for server in self._servers(part):
            if part in {"firehose", "tracks"}:
                yield server, parts.fan_out(server.site, server, clients, plan, part)
            elif part == "joined":
                yield server, parts.joined(server.site, server, clients, plan)
            elif part == "requests":
                yield server, parts.requests(server, clients, plan)
            elif part == "connects":
                yield server, parts.connects(server, clients, plan)
            else:
                yield server, parts.idle(server, clients, plan)

    def _servers(self, part: str) -> list[Server]:
        """Return the servers that a part measures: ours, then the yardsticks."""
        if self._yardsticks is None:
            return list(self._ours)
        return [*self._ours, *(one for one in self._beside(part, self._yardsticks) if not one.missing)]

    def _beside(self, part: str, where: Site) -> list[Server]:
        floor, missing = self.programs.floor, self.programs.missing
        if part in {"firehose", "tracks"}:
            return [Floor(where, floor, missing), QueueServer(where)]
        if part == "joined":
            return [Floor(where, floor, missing, batch=True)]
        return [QueueServer(where)] if part == "idle" else [BareServer(where)]


def notes_on(programs: Programs) -> list[str]:
    """Return what the reader of the table must know about the clients and the floor."""
    if not programs.missing:
        return []
    return [
        f"no floor, because its program could not be compiled: {programs.missing}",
        "the clients are the ones in Python: above about 100,000 events or 2,000 requests a second they are the limit",
    ]


def main() -> None:
    """Measure and print the table. Progress goes to stderr."""
    options = options_from(sys.argv[1:])
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    pin(os.getpid(), last_core())
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="stream-server-bench-"))
        here = stack.enter_context(site())
        if "requests" in options.parts:
            here.fill_home()
        bench = Bench(options, [StreamServer(here)], here, Path(folder))
        with (progress := Progress()):
            bench.run(progress)
    report = Report(bench.results, options.plan, "ours")
    report.show(notes_on(bench.programs))
    if options.json:
        Path(options.json).write_text(report.json(), encoding="utf-8")


if __name__ == "__main__":
    main()
