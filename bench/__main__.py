"""``python -m bench``: measure the server beside a plain aiohttp server in one run, and print a table."""

import argparse
import os
import resource
import sys

from bench.lineup import QueueServer, StreamServer
from bench.report import Results, show
from bench.rounds import Plan, measure
from bench.site import site

SPARE_FILES = 200
"""File descriptors kept free for everything except the clients' connections."""

IDLE_AT_MOST = 4000
"""Number of idle connections in a full run."""


def plan_from(arguments: list[str]) -> Plan:
    """Parse the command line into a plan."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one short round, to see that it works")
    parser.add_argument("--conns", type=int, default=1000, help="streaming clients (1000)")
    parser.add_argument("--rate", type=float, default=50, help="posts a second to firehose clients (50)")
    parser.add_argument("--track-rate", type=float, default=200, help="posts a second to tracking clients (200)")
    parser.add_argument("--rounds", type=int, default=0, help="interleaved rounds (3)")
    parser.add_argument("--seconds", type=float, default=0, help="length of each measurement (8)")
    given = parser.parse_args(arguments)
    room = resource.getrlimit(resource.RLIMIT_NOFILE)[1] - SPARE_FILES
    return Plan(
        rounds=given.rounds or (1 if given.quick else 3),
        conns=min(given.conns, room),
        idle_conns=min(given.conns if given.quick else max(given.conns, IDLE_AT_MOST), room),
        rate=given.rate,
        track_rate=given.track_rate,
        seconds=given.seconds or (3 if given.quick else 8),
        warmup=1 if given.quick else 2,
        posts=True,
        ssefan=os.environ.pop("STREAM_SERVER_SSEFAN", ""),
    )


def main() -> None:
    """Measure and print the table. Progress goes to stderr."""
    plan = plan_from(sys.argv[1:])
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    results = Results()
    with site() as shared:
        servers = (StreamServer(shared), QueueServer(shared))
        for number in range(plan.rounds):
            for server in servers:
                for part, figures in measure(shared, server, plan):
                    results.add(server.name, part, figures)
                    print(f"round {number + 1}/{plan.rounds}  {server.name}: {part} done", file=sys.stderr, flush=True)
        show(results, [server.name for server in servers], plan)


if __name__ == "__main__":
    main()
