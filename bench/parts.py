"""The parts of a run. Each measures every server that it concerns once, one after the other."""

import asyncio
from collections.abc import Awaitable, Iterator
from dataclasses import dataclass

from bench import crowd
from bench.burst import Bursts
from bench.clients import Clients, Figures, Work
from bench.gauges import until
from bench.lineup import TOPICS, BareServer, Kind, Running, Server, StreamServer
from bench.poster import steadily

ASKERS = 32
"""Connections that send requests at the same time."""

FEW = 20
"""Clients of a warm-up."""

JOINED = (10, 20.0)
"""Posts a burst and bursts a second, for about ten events a read."""

FLOOD = (250, 2.0)
"""The same for many events a read."""

CROWD_RATE = 100.0
"""Posts a second to the streams of the crowd."""

CUTS = ("storm", "restart")
"""The parts of a run of the crowd in which all connections close and all clients return."""

Measured = Iterator[tuple[str, Figures]]
"""Names of what was measured, and the figures."""

Answering = StreamServer | BareServer
"""The servers that answer requests."""


@dataclass(frozen=True)
class Plan:
    """The sizes of a run. Times are in seconds, rates in posts a second."""

    rounds: int
    conns: int
    openings: int
    idle_conns: int
    rate: float
    track_rate: float
    seconds: float
    warmup: float
    settle: float
    crowd: int


def fan_out(server: Server, clients: Clients, plan: Plan, kind: Kind) -> Measured:
    """Measure clients that read while the writer posts at the planned rate."""
    rate = plan.track_rate if kind == "tracks" else plan.rate

    def work(done: asyncio.Event) -> Awaitable[object]:
        return steadily(server.site, rate, done)

    with server.running() as running:
        share = 1 / TOPICS if kind == "tracks" else 1.0
        yield kind, _streamed(server, running, clients, plan, kind, work, rate * share)


def joined(server: Server, clients: Clients, plan: Plan) -> Measured:
    """Measure firehose clients while posts come in bursts."""
    with server.running() as running:
        for name, (size, per_second) in (("joined", JOINED), ("flood", FLOOD)):

            async def work(done: asyncio.Event, size: int = size, per_second: float = per_second) -> None:
                await (await Bursts.of(server.site)).run(size, per_second, done)

            yield name, _streamed(server, running, clients, plan, "firehose", work, size * per_second)


def requests(server: Answering, clients: Clients, plan: Plan) -> Measured:
    """Measure how many requests a second a server answers, and what one costs."""
    with server.running() as running:
        for name, lines in server.calls().items():
            times = {"warmup": plan.warmup / 2, "duration": plan.seconds / 2}
            yield name, _per_request(asyncio.run(clients.requests(running, lines, conns=ASKERS, **times)))


def connects(server: Answering, clients: Clients, plan: Plan) -> Measured:
    """Measure how many streams a second a server opens, and what opening costs."""
    with server.running() as running:
        asyncio.run(clients.streams(running, server.streams("firehose", FEW), settle=0))
        for name, lines in server.openings(plan.openings):
            if isinstance(server, StreamServer):
                asyncio.run(until(running.port, running.process.pid, lambda seen: seen.streams == 0, 30))
            found = asyncio.run(clients.streams(running, lines, settle=0.1))
            found["per_s"], found["cpu_us"] = found["open_per_s"], 1e6 * found["open_cpu_s"] / found["opened"]
            found["client_cpu_share"] = found["open_client_share"]
            yield name, found


def idle(server: Server, clients: Clients, plan: Plan) -> Measured:
    """Measure the memory of a connection.

    A few clients connect first, so that what the server loads once does not count for each.
    """
    with server.running() as running:
        for count in (FEW, plan.idle_conns):
            found = asyncio.run(clients.streams(running, server.streams("firehose", count), settle=1))
        yield "idle", found


def websocket(server: StreamServer, clients: Clients, plan: Plan) -> Measured:
    """Measure fan-out and idle memory, for WebSockets, or for Server-Sent Events to compare with them."""
    kinds: tuple[Kind, ...] = ("firehose", "tracks")
    for kind in kinds:
        yield from ((f"websocket {name}", figures) for name, figures in fan_out(server, clients, plan, kind))
    yield from ((f"websocket {name}", figures) for name, figures in idle(server, clients, plan))


def returning(server: Answering, plan: Plan) -> Measured:
    """Measure many streams, all of which close and return at once. Of a bare server, measure how long opening takes."""
    sizes = crowd.Plan(conns=plan.crowd, hold=plan.warmup, rates=(CROWD_RATE,), seconds=plan.seconds, json="")
    if isinstance(server, BareServer):
        bare = asyncio.run(crowd.measure_bare(server.site, sizes))
        times = {f"{part}_s": bare.seconds for part in CUTS}
        yield "crowd", times | {f"{part}_cpu_s": bare.cpu_seconds for part in CUTS}
        return
    ledger = asyncio.run(crowd.measure(server.site, server, sizes))
    posts = f"{CROWD_RATE:g} posts/s"
    yield (
        "crowd",
        {
            **{f"{part}_s": ledger.value(part, crowd.LIVE) for part in CUTS},
            **{f"{part}_cpu_s": ledger.value(part, crowd.CPU) for part in CUTS},
            "refused": ledger.value("storm", "refused connects") + ledger.value("restart", "refused connects"),
            "ramp_per_s": ledger.value("ramp", "connects"),
            "p50_ms": ledger.value(posts, "post to client, p50"),
            "p99_ms": ledger.value(posts, "post to client, p99"),
            "cpu_percent": ledger.value(posts, "server"),
            "kib_per_idle_conn": ledger.value("hold", "memory of a stream"),
            "left_mib": ledger.value("leave", "memory more than before"),
            "broken": len(ledger.broken),
            "client_cpu_share": ledger.value(posts, "clients") / 100,
        },
    )


def _streamed(
    server: Server, running: Running, clients: Clients, plan: Plan, kind: Kind, work: Work, due: float
) -> Figures:
    """Return what the clients of one server received. ``due`` is the number of posts a second for each."""
    times = {"settle": plan.settle, "warmup": plan.warmup, "duration": plan.seconds}
    found = asyncio.run(clients.streams(running, server.streams(kind, plan.conns), **times, work=work))
    count, cpu = max(1.0, found["count"]), found["server_cpu_s"]
    return found | {
        "per_cpu_s": count / cpu,
        "cpu_percent": 100 * cpu / found["seconds"],
        "share": count / (plan.conns * due * found["seconds"]),
        "bytes_each": found["bytes"] / count,
    }


def _per_request(found: Figures) -> Figures:
    count = max(1.0, found["count"])
    return found | {"per_s": count / found["seconds"], "cpu_us": 1e6 * found["server_cpu_s"] / count}
