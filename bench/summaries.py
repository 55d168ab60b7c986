"""``python -m bench.summaries``: what streams that count cost beside streams that send every event.

A thousand firehose streams read 50 posts a second, once in full and once with `summary`, on fresh servers. What
the server needs for the posts alone, with one idle stream, is measured too, and taken off. A period is shorter than the
measurement, so each measurement has the end of one, for all streams at once.
"""

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from pathlib import Path

from redis import Redis

from bench.clients import Clients
from bench.lineup import StreamServer
from bench.native import compiled
from bench.process import end_cleanly
from bench.site import site
from stream_server.store import keys

PERIOD_SECONDS = 10
RATE = 50.0
SETTLE_SECONDS = 1.0


def measure(server: StreamServer, clients: Clients, lines: list[str], seconds: float) -> float:
    """Return the CPU time in µs that a fresh server with the streams of ``lines`` needs for each entry of the log.

    On a busy machine fewer posts come than are asked for, so the entries are counted.
    """
    came = 0.0

    with server.running() as running, Redis(unix_socket_path=server.site.redis_socket) as redis:

        async def work(done: asyncio.Event) -> None:
            nonlocal came
            began, before = time.monotonic(), redis.xlen(keys.LOG)
            await server.feed(running, "firehose", RATE, done)
            came = (redis.xlen(keys.LOG) - before) / (time.monotonic() - began)

        found = asyncio.run(
            clients.streams(running, lines, settle=SETTLE_SECONDS, warmup=SETTLE_SECONDS, duration=seconds, work=work)
        )
        return 1e6 * found["server_cpu_s"] / found["seconds"] / came


def main(arguments: list[str]) -> None:
    """Measure in rounds, and print the medians."""
    parser = argparse.ArgumentParser(prog="python -m bench.summaries", description=__doc__)
    parser.add_argument("--conns", type=int, default=1000, help="streams (1000)")
    parser.add_argument("--seconds", type=float, default=2.0 * PERIOD_SECONDS, help="of each measurement (20)")
    parser.add_argument("--rounds", type=int, default=3, help="interleaved rounds (3)")
    given = parser.parse_args(arguments)
    end_cleanly()
    costs: dict[str, list[float]] = {"no streams": [], "full": [], "summary": []}
    with tempfile.TemporaryDirectory(prefix="stream-server-bench-") as folder, site() as here:
        server, clients = StreamServer(here), Clients(Path(folder), compiled(Path(folder)).load)
        full = server.streams("firehose", given.conns)
        summary = [line.replace("firehose=true", f"firehose=true&summary={PERIOD_SECONDS}") for line in full]
        quiet = [server.streams("tracks", 1)[0].replace("track=", "track=nobody")]
        for number in range(given.rounds):
            for name, lines in (("no streams", quiet), ("full", full), ("summary", summary)):
                print(f"round {number + 1}, {name}", file=sys.stderr, flush=True)
                costs[name].append(measure(server, clients, lines, given.seconds))
    middle = {name: statistics.median(values) for name, values in costs.items()}
    for name, value in middle.items():
        print(f"{name:<12} {value:9.1f} µs of CPU for an entry of the log")
    share = (middle["summary"] - middle["no streams"]) / (middle["full"] - middle["no streams"])
    print(f"{given.conns} summary streams cost {100 * share:.1f} % of {given.conns} full ones")


if __name__ == "__main__":
    main(sys.argv[1:])
