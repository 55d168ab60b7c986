"""``python -m bench.compression``: what gzip costs and saves on streams, beside plain streams of the same server.

The rounds of both alternate on one server process. The posts are made of words by Zipf's law, or real texts from a file
with one JSON object a line, whose member ``message`` is the text.
"""

import argparse
import asyncio
import itertools
import json
import sys
import time
from pathlib import Path
from random import Random
from statistics import median

from rich.console import Console
from rich.table import Table

from bench.lineup import TOPICS, Running, StreamServer
from bench.matching_world import World
from bench.poster import Connection, with_hands
from bench.process import last_core, pin
from bench.site import Site, site

MAX_TEXT_CHARS = 240
"""Longest text of a post, so that a topic fits behind it."""

WITNESSES = 50
"""Number of clients that decode what they read."""

CODINGS = {"plain": "identity", "gzip": "gzip"}
"""The compared streams, and what their clients accept."""

ROWS = (
    ("bytes_per_delivery", "bytes a delivery", "{:.0f}"),
    ("cpu_us_per_delivery", "server CPU a delivery, µs", "{:.1f}"),
    ("core_share", "server, share of a core", "{:.2f}"),
    ("p50_ms", "post to client, p50, ms", "{:.1f}"),
    ("p99_ms", "post to client, p99, ms", "{:.1f}"),
    ("share_delivered", "delivered of what was due", "{:.2f}"),
)
"""Figure, title and format of each row of the table."""

Figures = dict[str, float]


class Texts:
    """The texts of the posts, in a fixed order and over again."""

    def __init__(self, file: Path | None) -> None:
        self._texts = itertools.cycle(_made_texts(500) if file is None else _read_texts(file))

    def post(self, number: int) -> dict[str, object]:
        """Return the body of post ``number``, with a topic and the present time."""
        text = f"{next(self._texts)} topic{number % TOPICS}"
        return {"message": text, "meta": {"t": time.monotonic_ns()}}


def _made_texts(count: int) -> list[str]:
    return [f"{event['text'][:MAX_TEXT_CHARS]} @author{n % 20}" for n, event in enumerate(World(1).events(count))]


def _read_texts(file: Path) -> list[str]:
    texts = [json.loads(line)["message"][:MAX_TEXT_CHARS] for line in file.read_text(encoding="utf-8").splitlines()]
    Random(1).shuffle(texts)
    return texts


async def steadily(shared: Site, texts: Texts, rate: float, done: asyncio.Event) -> None:
    """Post ``rate`` times a second until ``done`` is set."""
    start, numbers, authors = time.monotonic(), itertools.count(), itertools.cycle(shared.authors)

    async def hand(connection: Connection) -> None:
        while not done.is_set():
            number = next(numbers)
            await asyncio.sleep(max(0.0, start + number / rate - time.monotonic()))
            await connection.send(next(authors), texts.post(number))

    await with_hands(shared.address, 8, hand)


async def measure(
    shared: Site, running: Running, requests: list[str], texts: Texts, rate: float, seconds: float
) -> Figures:
    """Open a stream for each request, post at ``rate``, and return the figures."""
    file = shared.folder / "requests"
    file.write_text("\n".join(requests) + "\n")
    options = {
        "port": running.port, "pid": running.process.pid, "requests": file, "duration": seconds, "warmup": 1,
        "witness-step": max(1, len(requests) // WITNESSES),
    }  # fmt: skip
    arguments = [part for name, value in options.items() for part in (f"--{name}", str(value))]
    reader = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "bench.packed_reader", *arguments,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    pin(reader.pid, last_core())
    assert reader.stderr is not None
    await reader.stderr.readuntil(b"ready")
    done = asyncio.Event()
    posting = asyncio.create_task(steadily(shared, texts, rate, done))
    answer, problems = await reader.communicate()
    done.set()
    await posting
    if reader.returncode:
        raise RuntimeError(f"the clients failed: {problems.decode()[-2000:]}")
    figures: Figures = json.loads(answer)
    return figures


def compare(shared: Site, options: argparse.Namespace) -> dict[tuple[str, str], list[Figures]]:
    """Return the figures of all rounds by case and coding."""
    texts, server = Texts(options.texts), StreamServer(shared)
    found: dict[tuple[str, str], list[Figures]] = {}
    cases = {"firehose": options.rate, f"{100 // TOPICS} % tracks": options.track_rate}
    with server.running() as running:
        for number in range(options.rounds):
            for (case, rate), (coding, accepted) in itertools.product(cases.items(), CODINGS.items()):
                requests = server.streams("firehose" if case == "firehose" else "tracks", options.conns)
                requests = [f"{request}\tAccept-Encoding: {accepted}" for request in requests]
                figures = asyncio.run(measure(shared, running, requests, texts, rate, options.seconds))
                due = options.conns * rate * figures["seconds"] / (1 if case == "firehose" else TOPICS)
                figures["share_delivered"] = figures["deliveries"] / due
                found.setdefault((case, coding), []).append(figures)
                print(f"round {number + 1}/{options.rounds}  {case}: {coding} done", file=sys.stderr, flush=True)
    return found


def show(found: dict[tuple[str, str], list[Figures]], options: argparse.Namespace) -> None:
    """Print the medians."""
    table = Table(title=f"{options.conns} clients; medians of {options.rounds} alternating rounds")
    for heading in ("", *CODINGS, "gzip / plain"):
        table.add_column(heading, justify="right" if heading else "left")
    for case in dict.fromkeys(case for case, _ in found):
        rate = options.rate if case == "firehose" else options.track_rate
        table.add_row(f"[bold]{case}, {rate:g} posts/s")
        for name, title, form in ROWS:
            plain, packed = (median(one[name] for one in found[case, coding]) for coding in CODINGS)
            table.add_row(title, form.format(plain), form.format(packed), f"{packed / plain:.2f}" if plain else "-")
    Console(width=100).print(table)


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m bench.compression", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one short round, to see that it works")
    parser.add_argument("--conns", type=int, default=1000, help="streaming clients (1000)")
    parser.add_argument("--rate", type=float, default=50, help="posts a second to firehose clients (50)")
    parser.add_argument("--track-rate", type=float, default=200, help="posts a second to tracking clients (200)")
    parser.add_argument("--rounds", type=int, default=0, help="alternating rounds (3)")
    parser.add_argument("--seconds", type=float, default=0, help="length of each measurement (6)")
    parser.add_argument("--texts", type=Path, help="file with real texts, one JSON object with `message` a line")
    options = parser.parse_args()
    options.rounds = options.rounds or (1 if options.quick else 3)
    options.seconds = options.seconds or (2 if options.quick else 6)
    with site() as shared:
        show(compare(shared, options), options)


if __name__ == "__main__":
    main()
