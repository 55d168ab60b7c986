"""``python -m bench.replay``: how many past entries a second a selective stream goes through.

The writer's log is filled with posts. Two servers share it. One has received all posts, so they are in its *ring* in
memory. The other starts afterwards, so it reads them from the *log* in Redis. Clients then ask for the posts since the
beginning, by a filter that one post in a hundred or in ten matches. All posts count, because all of them are searched.
"""

import argparse
import asyncio
import itertools
import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

from bench.lineup import Running, StreamServer
from bench.matching_world import World
from bench.poster import Connection, with_hands
from bench.process import cpu_seconds, last_core, pin
from bench.site import Site, site

MARKS = {"ring": 200_000, "log": 50_000}
"""The goals: entries a second of one client."""

MAX_TEXT_CHARS = 240
"""Longest text of a post, so that two tags fit behind it."""

HANDS = 32
"""Connections that post at the same time."""

READ_BYTES = 1 << 18
"""Most bytes of one read of a client."""

POST_MARK = b'{"kind":"post"'
"""The first bytes of each post of a stream."""


class Case(NamedTuple):
    """Clients that replay at once, from the ring or the log. One post in ``step`` matches."""

    source: str
    step: int
    clients: int

    @property
    def title(self) -> str:
        """Name of the row."""
        return f"{self.source}, {100 // self.step} % match, {self.clients} client{'s' if self.clients > 1 else ''}"


class Figures(NamedTuple):
    """One replay: its duration in seconds, and the server's CPU time."""

    seconds: float
    cpu_seconds: float


def texts(file: Path | None) -> Iterator[str]:
    """Yield texts of posts without an end: real ones from a file, else words by Zipf's law."""
    made = [f"{event['text']} @nobody{n % 20}" for n, event in enumerate(World(1).events(1000))]
    real = [] if file is None else [json.loads(line)["message"] for line in file.read_text("utf-8").splitlines()]
    return (text[:MAX_TEXT_CHARS] for text in itertools.cycle(real or made))


async def fill(shared: Site, posts: int, file: Path | None) -> None:
    """Write ``posts`` posts. Each has a tag that one post in a hundred has, and one that one in ten has."""
    bodies = zip(range(posts), texts(file), itertools.cycle(shared.authors), strict=False)

    async def hand(connection: Connection) -> None:
        for number, text, author in bodies:
            await connection.send(author, {"message": f"{text} #every100n{number % 100} #every10n{number % 10}"})

    await with_hands(shared.address, HANDS, hand)


async def read_matches(port: int, token: str, query: str, expected: int) -> None:
    """Open a stream and read until ``expected`` posts have arrived."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=READ_BYTES)
    head = f"GET /v1/stream?{query} HTTP/1.1\r\nHost: localhost\r\nAccept: application/x-ndjson\r\n"
    writer.write(f"{head}Authorization: Bearer {token}\r\n\r\n".encode())
    first = await reader.readuntil(b"\r\n\r\n")
    if b" 200 " not in first.split(b"\r\n", 1)[0]:
        raise RuntimeError(f"refused: {first!r}")
    found, rest = 0, b""
    while found < expected:
        data = rest + await reader.read(READ_BYTES)
        if data == rest:
            raise RuntimeError(f"the stream ended after {found} of {expected} posts")
        found += data.count(POST_MARK)
        rest = data[-len(POST_MARK) + 1 :]
    writer.close()


async def first_cursor(port: int, token: str) -> str:
    """Return the cursor of the head of the log, from the `hello` of a stream."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    head = "GET /v1/stream?track=x HTTP/1.1\r\nHost: localhost\r\nAccept: application/x-ndjson\r\n"
    writer.write(f"{head}Authorization: Bearer {token}\r\n\r\n".encode())
    await reader.readuntil(b"\r\n\r\n")
    await reader.readline()
    hello = json.loads(await reader.readline())
    writer.close()
    return str(hello["cursor"])


async def measure(running: Running, token: str, case: Case, since: str, posts: int) -> Figures:
    """Let the clients of a case replay at once. Each has a filter of its own."""
    expected = posts // case.step
    queries = [f"track=every{case.step}n{n % case.step},nobody{n}says&since={since}" for n in range(case.clients)]
    cpu, start = cpu_seconds(running.process.pid), time.monotonic()
    await asyncio.gather(*(read_matches(running.port, token, query, expected) for query in queries))
    return Figures(time.monotonic() - start, cpu_seconds(running.process.pid) - cpu)


class Rates:
    """The rates of all replays of one case, in entries a second and a server-CPU-second.

    ``first`` is the rate of the first replay, in which the server decodes the entries of the ring.
    """

    def __init__(self) -> None:
        self.first: float | None = None
        self.by_time: list[float] = []
        self.by_cpu: list[float] = []

    def add(self, entries: int, figures: list[Figures]) -> None:
        """Add replays of ``entries`` entries each. CPU time has a resolution of 10 ms, so they count together."""
        rates = [entries / one.seconds for one in figures]
        self.first = rates[0] if self.first is None else self.first
        self.by_time.extend(rates)
        self.by_cpu.append(entries * len(figures) / max(0.01, sum(one.cpu_seconds for one in figures)))


@contextmanager
def servers(shared: Site, options: argparse.Namespace) -> Iterator[tuple[dict[str, Running], str]]:
    """Start the server that receives all posts, write the posts, and start the server that reads them from the log."""
    with ExitStack() as stack:
        token = shared.token(shared.admin, "stream")
        hearing = stack.enter_context(StreamServer(shared).running())
        since = asyncio.run(first_cursor(hearing.port, token))
        start = time.monotonic()
        asyncio.run(fill(shared, options.posts, options.texts))
        print(f"{options.posts} posts in {time.monotonic() - start:.0f} s", file=sys.stderr, flush=True)
        yield {"ring": hearing, "log": stack.enter_context(StreamServer(shared).running())}, since


def run(shared: Site, options: argparse.Namespace) -> dict[Case, Rates]:
    """Return the rates of all cases. The rounds of the cases alternate."""
    token, rates = shared.token(shared.admin, "stream"), {}
    cases = [Case(*one) for one in itertools.product(MARKS, (100, 10), (1, options.clients))]
    with servers(shared, options) as (running, since):
        for number, case in itertools.product(range(options.rounds), cases):
            times = 3 if case.clients == 1 else 1
            figures = [
                asyncio.run(measure(running[case.source], token, case, since, options.posts)) for _ in range(times)
            ]
            rates.setdefault(case, Rates()).add(options.posts * case.clients, figures)
            print(f"round {number + 1}/{options.rounds}  {case.title}", file=sys.stderr, flush=True)
    return rates


def show(rates: dict[Case, Rates], options: argparse.Namespace) -> None:
    """Print the medians, and for one client the ratio to the mark."""
    table = Table(title=f"{options.posts} posts; medians of {options.rounds} rounds")
    for heading in ("", "first, entries /s", "entries /s", "entries /server-CPU-s", "of the mark"):
        table.add_column(heading, justify="right" if heading else "left")
    for case, found in rates.items():
        by_time, by_cpu = median(found.by_time), median(found.by_cpu)
        ratio = f"{by_time / MARKS[case.source]:.2f}" if case.clients == 1 else ""
        table.add_row(case.title, f"{found.first or 0:,.0f}", f"{by_time:,.0f}", f"{by_cpu:,.0f}", ratio)
    Console(width=110).print(table)


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m bench.replay", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few posts and one round, to see that it works")
    parser.add_argument("--posts", type=int, default=0, help="posts on the log (10000)")
    parser.add_argument("--clients", type=int, default=100, help="clients that replay at once (100)")
    parser.add_argument("--rounds", type=int, default=0, help="rounds (3)")
    parser.add_argument("--texts", type=Path, help="file with real texts, one JSON object with `message` a line")
    options = parser.parse_args()
    options.posts = options.posts or (3000 if options.quick else 10_000)
    options.rounds = options.rounds or (1 if options.quick else 3)
    if hasattr(os, "sched_setaffinity"):
        pin(os.getpid(), last_core())
    with site() as shared:
        show(run(shared, options), options)


if __name__ == "__main__":
    main()
