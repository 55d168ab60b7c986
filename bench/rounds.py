"""One round: a fresh server with idle connections, the firehose, selective tracks, and posts."""

import asyncio
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass

from bench.lineup import TOPICS, QueueServer, Running, StreamServer
from bench.poster import saturated, steadily
from bench.process import last_core, pin
from bench.site import Site

Figures = dict[str, float]
"""Values by name."""

Server = StreamServer | QueueServer
"""One of the measured servers."""

POSTING_HANDS = 32
"""Clients that post at the same time."""


@dataclass(frozen=True)
class Plan:
    """The sizes of a run. Times are in seconds, rates in posts a second."""

    rounds: int
    conns: int
    idle_conns: int
    rate: float
    track_rate: float
    seconds: float
    warmup: float
    posts: bool
    ssefan: str


def measure(site: Site, server: Server, plan: Plan) -> Iterator[tuple[str, Figures]]:
    """Yield name and figures of each part of a round."""
    with server.running() as running:
        yield "idle", _idle(site, server, running, plan)
    with server.running() as running:
        yield "firehose", asyncio.run(_fan_out(site, server, running, plan, tracking=False))
        yield "track", asyncio.run(_fan_out(site, server, running, plan, tracking=True))
        if server.takes_posts and plan.posts:
            posts = asyncio.run(saturated(site, running.port, POSTING_HANDS, plan.seconds))
            yield "posts", {"posts_per_s": posts}


def _idle(site: Site, server: Server, running: Running, plan: Plan) -> Figures:
    """Measure idle connections.

    A few clients connect first, so that what the server loads once does not count for each.
    """
    for conns in (20, plan.idle_conns):
        figures = asyncio.run(_read(site, server, running, plan, conns, seconds=0.0))
    return figures


async def _fan_out(site: Site, server: Server, running: Running, plan: Plan, *, tracking: bool) -> Figures:
    """Measure clients that read while the writer posts at the planned rate."""
    rate = plan.track_rate if tracking else plan.rate
    figures = await _read(site, server, running, plan, plan.conns, seconds=plan.seconds, rate=rate, tracking=tracking)
    expected = plan.conns * rate * figures["seconds"] / (TOPICS if tracking else 1)
    figures["share_delivered"] = figures["deliveries"] / expected
    return figures


async def _read(
    site: Site, server: Server, running: Running, plan: Plan, conns: int,
    *, seconds: float, rate: float = 0.0, tracking: bool = False,
) -> Figures:  # fmt: skip
    """Run the clients in their own process, post once they are ready, and return their figures."""
    requests = site.folder / "requests"
    requests.write_text("\n".join(server.requests(tracking, conns)) + "\n")
    program = [plan.ssefan] if plan.ssefan else [sys.executable, "-m", "bench.reader"]
    options = {
        "port": running.port, "conns": conns, "pid": running.process.pid, "requests": requests,
        "duration": seconds, "warmup": plan.warmup if seconds else 0, "settle": 1,
    }  # fmt: skip
    arguments = [part for name, value in options.items() for part in (f"--{name}", str(value))]
    reader = await asyncio.create_subprocess_exec(
        *program, *arguments, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    pin(reader.pid, last_core())
    assert reader.stderr is not None
    await reader.stderr.readuntil(b"ready")
    done = asyncio.Event()
    posting = asyncio.create_task(steadily(site, rate, done)) if rate else None
    answer, problems = await reader.communicate()
    done.set()
    if posting is not None:
        await posting
    if reader.returncode:
        raise RuntimeError(f"the clients failed: {problems.decode()[-2000:]}")
    figures: Figures = {name: value for name, value in json.loads(answer).items() if name != "label"}
    return figures
