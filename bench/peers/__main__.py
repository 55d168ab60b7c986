"""``python -m bench.peers``: measure other streaming servers beside this one in one run, and print one table."""

import argparse
import os
import resource
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Literal, NamedTuple

from bench import parts
from bench.clients import Clients
from bench.lineup import Kind
from bench.native import compiled
from bench.parts import Plan
from bench.peers.centrifugo import Centrifugo
from bench.peers.jetstream import Jetstream
from bench.peers.mercure import Mercure
from bench.peers.nchan import Nchan
from bench.peers.ours import QueueServer, StreamServer
from bench.peers.peer import Peer, sampled
from bench.peers.programs import Missing, Programs
from bench.process import end_cleanly, last_core, pin
from bench.report import Key, Results
from bench.site import Site, site
from bench.table import NOTHING, figure, markdown

SPARE_FILES = 200
"""File descriptors kept free for everything except the clients' connections."""

IDLE_CONNS = 4000
"""Number of idle connections in a full run."""

KINDS: tuple[Kind, ...] = ("firehose", "topic", "tracks")
PARTS = (*KINDS, "idle")
"""The parts of a round, in order."""

NAMES = ("stream-server", "aiohttp", "centrifugo", "mercure", "nchan", "jetstream")
"""All servers by the name that ``--only`` takes, in the order of their columns."""

FIGURES = {
    "deliveries per server-CPU-second": ("per_cpu_s",), "CPU of the server, % of a core": ("cpu_percent",),
    "time to a client, p50 / p99, ms": ("p50_ms", "p99_ms"), "delivered of what was due": ("share",),
    "busy share of the clients' core": ("core_busy_share",),
}  # fmt: skip
IDLE_FIGURES = {
    "memory of one, KiB": ("kib_per_idle_conn",), "opened per second": ("open_per_s",),
    "opened per server-CPU-second": ("open_per_cpu_s",),
}  # fmt: skip
"""The rows of a part: their titles, and what is in their cells."""


class Options(NamedTuple):
    """The command line."""

    plan: Plan
    names: list[str]
    parts: list[str]
    folders: list[Path]


def options_from(arguments: list[str]) -> Options:
    """Parse the command line. An unknown peer ends the program with a message."""
    parser = argparse.ArgumentParser(prog="python -m bench.peers", description=__doc__)
    parser.add_argument("--peers-folder", type=Path, action="append", default=[], help="folder of the peers' programs")
    parser.add_argument("--only", default=",".join(NAMES), help=f"some of: {','.join(NAMES)}")
    parser.add_argument("--parts", default=",".join(PARTS), help=f"some of: {','.join(PARTS)}")
    parser.add_argument("--quick", action="store_true", help="one short round, to see that it works")
    parser.add_argument("--rounds", type=int, default=0, help="interleaved rounds (2)")
    parser.add_argument("--seconds", type=float, default=0, help="length of each measurement (5)")
    parser.add_argument("--conns", type=int, default=1000, help="clients that receive events (1000)")
    given = parser.parse_args(arguments)
    names, wanted = given.only.split(","), given.parts.split(",")
    if unknown := [*(name for name in names if name not in NAMES), *(part for part in wanted if part not in PARTS)]:
        parser.error(f"unknown: {', '.join(unknown)}; known: {', '.join((*NAMES, *PARTS))}")
    room = resource.getrlimit(resource.RLIMIT_NOFILE)[1] - SPARE_FILES
    plan = Plan(
        rounds=given.rounds or (1 if given.quick else 2), conns=min(given.conns, room), openings=0, crowd=0,
        idle_conns=min(given.conns if given.quick else max(given.conns, IDLE_CONNS), room),
        rate=50, track_rate=200, seconds=given.seconds or (2 if given.quick else 5),
        warmup=1 if given.quick else 1.5, settle=0.2 if given.quick else 1,
    )  # fmt: skip
    return Options(plan, names, wanted, given.peers_folder)


def makers(shared: Site, programs: Programs) -> dict[str, Callable[[], Peer]]:
    """Return by name what creates each server. It raises Missing if a program is not there."""
    event = sampled(shared)
    return {
        "stream-server": lambda: StreamServer(shared),
        "aiohttp": lambda: QueueServer(shared),
        "centrifugo": lambda: Centrifugo(shared, programs, event),
        "mercure": lambda: Mercure(shared, programs, event),
        "nchan": lambda: Nchan(shared, programs, event),
        "jetstream": lambda: Jetstream(shared, programs),
    }


def gathered(makers: Mapping[str, Callable[[], Peer]], names: list[str]) -> tuple[list[Peer], dict[str, str]]:
    """Return the servers that are there, and by name what each other one lacks."""
    found, missing = [], {}
    for name in names:
        try:
            found.append(makers[name]())
        except Missing as problem:
            missing[name] = f"{problem} (see bench/PEERS.md)"
    return found, missing


def run(peers: list[Peer], wanted: list[str], clients: Clients, plan: Plan) -> tuple[Results, dict[str, str]]:
    """Measure all rounds. In each part the peers follow each other. A peer that fails once is left out from then on.

    Return the figures, and by column why a peer failed.
    """
    results, failed = Results(), dict[str, str]()
    for number, part in ((number, part) for number in range(plan.rounds) for part in PARTS if part in wanted):
        for peer in peers:
            kind = next((kind for kind in KINDS if kind == part), None)
            if peer.column in failed or (kind and kind not in peer.chooses):
                continue
            told = f"round {number + 1}/{plan.rounds}, {part}, {peer.column}"
            measured = parts.fan_out(peer, clients, plan, kind) if kind else parts.idle(peer, clients, plan)
            try:
                for name, figures in measured:
                    results.add(peer.column, name, figures)
            except (RuntimeError, OSError) as problem:
                failed[peer.column] = str(problem).splitlines()[0][:200]
                told += f": {problem}"
            print(told, file=sys.stderr, flush=True)
    return results, failed


def table(results: Results, peers: list[Peer], plan: Plan, missing: Mapping[str, str]) -> str:
    """Return the table as Markdown, and a note for each peer. ``missing`` says why a peer has no or few figures."""
    head = ["", *(peer.column for peer in peers)]
    rows = [["version", *(peer.version() for peer in peers)], ["clients", *(peer.clients for peer in peers)]]
    measured = markdown(head, [*rows, *_rows(results, peers, plan)], padded=True)
    notes = [f"- {peer.column}: {peer.settings}." for peer in peers]
    notes += [f"- {name}: not measured: {why}." for name, why in missing.items()]
    title = f"Medians of {plan.rounds} interleaved rounds; each server on one core, everything else on another."
    return "\n".join([measured, title, "", *notes])


def _rows(results: Results, peers: list[Peer], plan: Plan) -> Iterator[list[str]]:
    titles: dict[Kind | Literal["idle"], str] = {
        "firehose": f"firehose, {plan.conns:,} clients \N{MULTIPLICATION SIGN} {plan.rate:g} events/s",
        "topic": f"one topic of ten, {plan.conns:,} clients \N{MULTIPLICATION SIGN} {plan.track_rate:g} events/s",
        "tracks": "the same, each client with a filter of words of its own",
        "idle": f"{plan.idle_conns:,} idle connections",
    }
    for part, title in titles.items():
        if part != "idle":
            yield [f"{title}: chosen by", *(peer.chooses.get(part, NOTHING) for peer in peers)]
        for name, figures in (IDLE_FIGURES if part == "idle" else FIGURES).items():
            cells = []
            for peer in peers:
                values = [results.median(Key(peer.column, part), one) for one in figures]
                cells.append(NOTHING if None in values else " / ".join(map(figure, values)))
            yield [f"{title}: {name}" if part == "idle" else f"\N{HORIZONTAL ELLIPSIS} {name}", *cells]


def main() -> None:
    """Measure and print the table. Progress goes to stderr."""
    options = options_from(sys.argv[1:])
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    end_cleanly()
    pin(os.getpid(), last_core())
    with site() as shared:
        peers, missing = gathered(makers(shared, Programs(options.folders)), options.names)
        results, failed = run(peers, options.parts, Clients(shared.folder, compiled(shared.folder).load), options.plan)
    print(table(results, peers, options.plan, missing | failed))


if __name__ == "__main__":
    main()
