"""``python -m bench``: measure the server beside its yardsticks in one run, and print a table of ratios."""

import argparse
import os
import resource
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench import parts
from bench.against import checkout
from bench.clients import Clients
from bench.disturbance import Disturbance
from bench.lineup import BareServer, Floor, Kind, QueueServer, Server, SseServer, StreamServer, WebSocketServer
from bench.native import Programs, compiled
from bench.parts import Measured, Plan
from bench.process import end_cleanly, last_core, pin
from bench.progress import Progress
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

PARTS = ("firehose", "tracks", "joined", "requests", "connects", "idle", "websocket", "crowd")
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
        rounds=given.rounds or (1 if given.quick else 3),
        conns=min(given.conns, room),
        openings=min(given.conns if given.quick else 2 * given.conns, room),
        idle_conns=min(given.conns if given.quick else max(given.conns, IDLE_AT_MOST), room),
        rate=given.rate,
        track_rate=given.track_rate,
        seconds=given.seconds or (2 if given.quick else 5),
        warmup=0.5 if given.quick else 2,
        settle=0.2 if given.quick else 0.5,
        crowd=min(given.conns if given.quick else CROWD, max(1, room - CROWD_FILES)),
    )
    return Options(plan, tuple(part for part in PARTS if part in wanted), given.against, given.json)


class Bench:
    """One run: the sites, the servers and the results."""

    def __init__(self, options: Options, ours: list[StreamServer], shared: Site | None, folder: Path) -> None:
        """``shared`` is the site of the yardsticks, or None if another commit is measured in their place."""
        self.results = Results()
        self.programs = compiled(folder)
        self._options = options
        self._ours = ours
        self._shared = shared
        self._clients = Clients(folder, self.programs)

    def run(self, progress: Progress) -> None:
        """Measure all parts in all rounds. In each round the servers follow each other."""
        plan = self._options.plan
        for part in self._options.parts:
            rounds = range(1 if part == "crowd" else plan.rounds)
            steps = [(server, measured) for _ in rounds for server, measured in self._steps(part)]
            with progress.part(part, len(steps)) as told:
                for done, (server, measured) in enumerate(steps):
                    for name, figures in measured:
                        self.results.add(server.column, name, figures)
                    told(done + 1)

    def _steps(self, part: str) -> Iterator[tuple[Server, Measured]]:
        """Yield the servers of a part, and for each the measurement, which begins when it is iterated."""
        plan, clients = self._options.plan, self._clients
        answering: list[parts.Answering] = [*self._ours, *([BareServer(self._shared)] if self._shared else ())]
        if part == "requests":
            yield from ((server, parts.requests(server, clients, plan)) for server in answering)
        elif part == "connects":
            yield from ((server, parts.connects(server, clients, plan)) for server in answering)
        elif part == "crowd":
            yield from ((server, parts.returning(server, plan)) for server in answering)
        elif part == "joined":
            yield from ((server, parts.joined(server, clients, plan)) for server in self._receiving(part))
        elif part == "websocket":
            yield from ((server, parts.websocket(server, clients, plan)) for server in self._websockets())
        elif part == "idle":
            yield from ((server, parts.idle(server, clients, plan)) for server in self._receiving(part))
        else:
            kind: Kind = "tracks" if part == "tracks" else "firehose"
            yield from ((server, parts.fan_out(server, clients, plan, kind)) for server in self._receiving(part))

    def _websockets(self) -> list[StreamServer]:
        """Return our servers with WebSockets and, for comparison, with Server-Sent Events."""
        servers: list[StreamServer] = [WebSocketServer(one.site, one.column) for one in self._ours]
        return [*servers, SseServer(self._shared)] if self._shared else servers

    def _receiving(self, part: str) -> list[Server]:
        """Return the servers that deliver posts in a part: ours, then the yardsticks."""
        servers: list[Server] = [*self._ours]
        if self._shared and part != "idle" and not self.programs.missing:
            servers.append(Floor(self._shared, self.programs.floor, batch=part == "joined"))
        if self._shared and part != "joined":
            servers.append(QueueServer(self._shared))
        return servers


def notes_on(programs: Programs) -> list[str]:
    """Return what the reader of the table must know about the clients and the floor."""
    if not programs.missing:
        return []
    return [
        f"no floor, because its program could not be compiled: {programs.missing}",
        "the clients are the ones in Python: above about 100,000 events or 20,000 requests a second they are the limit",
    ]


@contextmanager
def bench_of(options: Options) -> Iterator[tuple[Bench, str]]:
    """Start the sites. Yield the run, and the name of the other commit if one is measured."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="stream-server-bench-")))
        other = stack.enter_context(checkout(options.against)) if options.against else None
        sites = [stack.enter_context(site())]
        if other:
            sites.append(stack.enter_context(site(other.folder, other.python)))
        if "requests" in options.parts:
            for one in sites:
                one.fill_home()
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
    with bench_of(options) as (bench, base), (progress := Progress()):
        bench.run(progress)
    report = Report(bench.results, options.plan, "ours", base)
    report.show([*notes_on(bench.programs), disturbance.note()])
    if options.json:
        Path(options.json).write_text(report.json(), encoding="utf-8")


if __name__ == "__main__":
    main()
