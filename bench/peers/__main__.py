"""``python -m bench.peers``: measure other streaming servers beside this one in one run, and print one table."""

import argparse
import json
import os
import resource
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from bench.clients import Clients
from bench.native import compiled
from bench.peers import table
from bench.peers.centrifugo import Centrifugo
from bench.peers.event import sampled
from bench.peers.figures import Results
from bench.peers.jetstream import Jetstream
from bench.peers.mercure import Mercure
from bench.peers.nchan import Nchan
from bench.peers.ours import QueueServer, StreamServer
from bench.peers.peer import Peer
from bench.peers.programs import Missing, Programs
from bench.peers.round import measure
from bench.peers.works import PARTS, Plan
from bench.process import end_cleanly, last_core, pin
from bench.site import Site, site

SPARE_FILES = 200
"""File descriptors kept free for everything except the clients' connections."""

IDLE_CONNS = 4000
"""Number of idle connections in a full run."""

CLASSES: dict[str, type[Peer]] = {
    "stream-server": StreamServer, "aiohttp": QueueServer, "centrifugo": Centrifugo, "mercure": Mercure,
    "nchan": Nchan, "jetstream": Jetstream,
}  # fmt: skip
"""All servers by the name that ``--only`` takes, in the order of their columns."""


@dataclass(frozen=True)
class Options:
    """The command line."""

    plan: Plan
    names: list[str]
    parts: list[str]
    folders: list[Path]
    markdown: bool
    json: str


def options_from(arguments: list[str]) -> Options:
    """Parse the command line. An unknown peer ends the program with a message."""
    parser = argparse.ArgumentParser(prog="python -m bench.peers", description=__doc__)
    parser.add_argument("--peers-folder", type=Path, action="append", default=[], help="folder of the peers' programs")
    parser.add_argument("--only", default=",".join(CLASSES), help=f"some of: {','.join(CLASSES)}")
    parser.add_argument("--parts", default=",".join(PARTS), help=f"some of: {','.join(PARTS)}")
    parser.add_argument("--quick", action="store_true", help="one short round, to see that it works")
    parser.add_argument("--rounds", type=int, default=0, help="interleaved rounds (2)")
    parser.add_argument("--seconds", type=float, default=0, help="length of each measurement (5)")
    parser.add_argument("--conns", type=int, default=1000, help="clients that receive events (1000)")
    parser.add_argument("--rate", type=float, default=50, help="events a second of the firehose (50)")
    parser.add_argument("--topic-rate", type=float, default=200, help="events a second if a client gets a tenth (200)")
    parser.add_argument("--markdown", action="store_true", help="print the table as Markdown")
    parser.add_argument("--json", default="", help="also write the figures of all rounds to this file")
    given = parser.parse_args(arguments)
    names = given.only.split(",")
    parts = given.parts.split(",")
    if unknown := [name for name in names if name not in CLASSES] + [part for part in parts if part not in PARTS]:
        parser.error(f"unknown: {', '.join(unknown)}; known: {', '.join((*CLASSES, *PARTS))}")
    return Options(_plan(given), names, parts, given.peers_folder, given.markdown, given.json)


def _plan(given: argparse.Namespace) -> Plan:
    room = resource.getrlimit(resource.RLIMIT_NOFILE)[1] - SPARE_FILES
    return Plan(
        rounds=given.rounds or (1 if given.quick else 2),
        conns=min(given.conns, room),
        idle_conns=min(given.conns if given.quick else max(given.conns, IDLE_CONNS), room),
        rate=given.rate,
        topic_rate=given.topic_rate,
        seconds=given.seconds or (2 if given.quick else 5),
        warmup=1 if given.quick else 1.5,
        settle=0.2 if given.quick else 1,
    )


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
    """Return the servers that are there, and by title of its column what each other one lacks."""
    found, missing = [], {}
    for name in names:
        try:
            found.append(makers[name]())
        except Missing as problem:
            missing[CLASSES[name].name] = f"{problem} (see bench/PEERS.md)"
    return found, missing


def run(peers: list[Peer], parts: list[str], clients: Clients, plan: Plan) -> Results:
    """Measure all rounds. In each part the peers follow each other. A peer that fails once is left out from then on."""
    results = Results()
    for number in range(plan.rounds):
        for part in (part for part in PARTS if part in parts):
            for peer in peers:
                if peer.name in results.failed or (part != "idle" and part not in peer.chooses):
                    continue
                told = f"round {number + 1}/{plan.rounds}, {part}, {peer.name}"
                try:
                    results.add(peer.name, part, measure(peer, part, clients, plan))
                except (RuntimeError, OSError) as problem:
                    results.failed[peer.name] = str(problem).splitlines()[0][:200]
                    told += f": {problem}"
                print(told, file=sys.stderr, flush=True)
    return results


def columns_of(peers: list[Peer], missing: dict[str, str], failed: dict[str, str]) -> dict[str, table.Column]:
    """Return a column for each server by its title, also for one that is missing."""
    columns = {name: table.Column(name, missing=why) for name, why in missing.items()}
    for peer in peers:
        why, chooses = failed.get(peer.name, ""), dict(peer.chooses)
        columns[peer.name] = table.Column(peer.name, peer.version(), peer.clients, peer.settings, why, chooses)
    return columns


def main() -> None:
    """Measure and print the table. Progress goes to stderr."""
    options = options_from(sys.argv[1:])
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    plan = options.plan
    end_cleanly()
    pin(os.getpid(), last_core())
    with site() as shared:
        peers, missing = gathered(makers(shared, Programs(options.folders)), options.names)
        results = run(peers, options.parts, Clients(shared.folder, compiled(shared.folder)), plan)
    by_title = columns_of(peers, missing, results.failed)
    columns = [by_title[CLASSES[name].name] for name in options.names]
    if options.json:
        Path(options.json).write_text(json.dumps(results.everything(), indent=1), encoding="utf-8")
    if options.markdown:
        print(table.markdown(results, columns, plan))
    else:
        table.terminal(results, columns, plan)


if __name__ == "__main__":
    main()
