"""``python -m bench.ingest``: how many lines a second `POST /v1/ingest` takes, and what a line costs.

One connection sends lines without a pause while another task reads the answers. Authors post short texts; one line in
ten is a reply, and half of the texts have a tag or name another user. The server has one core, Redis and this program
have the other. The second server, which started Redis and reads its events, is there too. With ``--alone`` that server
is the measured one, as on a site with one server.
"""

import argparse
import asyncio
import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random
from typing import NamedTuple

import redis
from rich.console import Console
from rich.table import Table

from bench.lineup import Running, StreamServer
from bench.matching_world import World
from bench.process import cpu_seconds, end_cleanly, first_core, last_core, pin
from bench.site import Site, site

MARK = 3000
"""The asked rate, in lines a second."""

AUTHORS = 200
FOLLOWS_EACH = 5
MAX_TEXT_CHARS = 200
READ_BYTES = 1 << 18


class Figures(NamedTuple):
    """One run: lines, seconds, and CPU seconds of the server and of Redis."""

    lines: int
    seconds: float
    server_cpu: float
    redis_cpu: float


def community() -> list[bytes]:
    """Return the lines that create the authors and their follows."""
    users = [{"op": "user", "user": {"foreign_id": f"u{n}", "login": f"writer{n}"}} for n in range(AUTHORS)]
    follows = [
        {"op": "follow", "source": f"u{n}", "target": f"u{(n + step) % AUTHORS}"}
        for n in range(AUTHORS)
        for step in range(1, FOLLOWS_EACH + 1)
    ]
    return [json.dumps(line).encode() + b"\n" for line in users + follows]


def posts(count: int, run: str) -> list[bytes]:
    """Return ``count`` lines that post."""
    source, texts = Random(1), [event["text"][:MAX_TEXT_CHARS] for event in World(1).events(500)]
    return [json.dumps(_post(source, texts, number, run)).encode() + b"\n" for number in range(count)]


def _post(source: Random, texts: list[str], number: int, run: str) -> dict[str, object]:
    ending = ("", "", f" #tag{source.randrange(50)}", f" @writer{source.randrange(AUTHORS)}")[source.randrange(4)]
    status = {
        "foreign_id": f"{run}-{number}",
        "author": f"u{source.randrange(AUTHORS)}",
        "message": texts[source.randrange(len(texts))] + ending,
    }
    if number % 10 == 9:
        status["in_reply_to"] = f"{run}-{number - 5}"
    return {"op": "post", "status": status}


async def send(port: int, token: str, lines: list[bytes]) -> list[bytes]:
    """Send lines as one request, and return the answers. Reads while it sends."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=READ_BYTES)
    head = "POST /v1/ingest HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n"
    writer.write(f"{head}Content-Type: application/x-ndjson\r\nAuthorization: Bearer {token}\r\n\r\n".encode())

    async def write() -> None:
        for at in range(0, len(lines), 50):
            part = b"".join(lines[at : at + 50])
            writer.write(b"%x\r\n%b\r\n" % (len(part), part))
            await writer.drain()
        writer.write(b"0\r\n\r\n")

    _, answer = await asyncio.gather(write(), reader.read(-1))
    writer.close()
    return [line for line in answer.split(b"\n") if line.startswith(b'{"line"')]


async def measure(shared: Site, running: Running, count: int, runs: int) -> list[Figures]:
    """Create the community, then send ``count`` posts ``runs`` times."""
    token = shared.token(shared.users("site", 1)[0], "ingest")
    looking = redis.Redis(unix_socket_path=shared.redis_socket)
    await _send_all(running.port, token, community())
    found = []
    for run in range(runs):
        lines = posts(count, f"r{run}{time.time_ns()}")
        pids, start = (running.process.pid, looking.info("server")["process_id"]), time.monotonic()
        before = [cpu_seconds(pid) for pid in pids]
        await _send_all(running.port, token, lines)
        seconds = time.monotonic() - start
        found.append(Figures(count, seconds, *(cpu_seconds(p) - b for p, b in zip(pids, before, strict=True))))
    return found


async def _send_all(port: int, token: str, lines: list[bytes]) -> None:
    answers = await send(port, token, lines)
    refused = [answer for answer in answers if b'"error"' in answer]
    if len(answers) != len(lines) or refused:
        sys.exit(f"{len(answers)} answers to {len(lines)} lines, refused: {refused[:3]}")


@contextmanager
def owner(shared: Site) -> Iterator[Running]:
    """Return the server that started Redis. It gets the first core, and Redis stays on the last."""
    assert shared.writer is not None  # the site has started it
    pin(shared.writer.pid, first_core())
    pin(redis.Redis(unix_socket_path=shared.redis_socket).info("server")["process_id"], last_core())
    yield Running(shared.writer, int(shared.address.rpartition(":")[2]))


def table(found: list[Figures]) -> Table:
    """Return the table of all runs."""
    made = Table("lines a second", "server, CPU µs a line", "Redis, CPU µs a line", title=f"asked for: {MARK}")
    for one in found:
        made.add_row(
            f"{one.lines / one.seconds:,.0f}",
            f"{one.server_cpu / one.lines * 1e6:,.0f}",
            f"{one.redis_cpu / one.lines * 1e6:,.0f}",
        )
    return made


def main(arguments: list[str]) -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m bench.ingest", description=__doc__)
    parser.add_argument("--lines", type=int, default=20_000, help="lines of a run (20000)")
    parser.add_argument("--runs", type=int, default=3, help="runs (3)")
    parser.add_argument("--alone", action="store_true", help="measure the server that started Redis, without a second")
    options = parser.parse_args(arguments)
    end_cleanly()
    pin(os.getpid(), last_core())
    with site() as shared, owner(shared) if options.alone else StreamServer(shared).running() as running:
        Console().print(table(asyncio.run(measure(shared, running, options.lines, options.runs))))


if __name__ == "__main__":
    main(sys.argv[1:])
