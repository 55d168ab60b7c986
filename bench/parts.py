"""The parts of a run. Each measures every server that it concerns once, one after the other."""

import asyncio
from collections.abc import Awaitable, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass

from bench import crowd, replica
from bench.burst import Bursts
from bench.clients import Clients, Figures, Work
from bench.gauges import until
from bench.lineup import Kind, Running, Server, StreamServer
from bench.poster import TOPICS, post_to_rooms
from bench.process import cpu_seconds

ASKERS = 32
"""Connections that send requests at the same time."""

FEW = 20
"""Clients of a warm-up."""

JOINED = (10, 20.0)
"""Posts a burst and bursts a second, for about ten events a read."""

TICK_SECONDS = 0.01
"""The unit of CPU times: less is measured as nothing."""

CROWD_RATE = 100.0
"""Posts a second to the streams of the crowd."""

NO_HEARTBEAT_SECONDS = 3600
"""An interval of heartbeats that is longer than a run."""

Measured = Iterator[tuple[str, Figures]]
"""Names of what was measured, and the figures."""


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

    def rate_of(self, kind: Kind) -> float:
        """Return the posts a second."""
        return self.rate if kind == "firehose" else self.track_rate


def fan_out(server: Server, clients: Clients, plan: Plan, kind: Kind) -> Measured:
    """Measure clients that read while posts come at the planned rate."""
    rate = plan.rate_of(kind)
    with server.running(rate) as running:

        def work(done: asyncio.Event) -> Awaitable[object]:
            return server.feed(running, kind, rate, done)

        due = rate * (1 if kind == "firehose" else 1 / TOPICS)
        yield kind, _streamed(server, running, clients, plan, kind, work, due)


def rooms(server: Server, clients: Clients, plan: Plan) -> Measured:
    """Measure many clients that each want the posts of one author, then as many that each want those of a room.

    No heartbeat is sent. Else those of the clients that open slower would fall into the measured seconds, and others
    not: a heartbeat of each costs more than all posts.
    """
    if not isinstance(server, StreamServer):
        return
    for name, lines in server.selections(plan.crowd).items():
        with server.running(heartbeat_seconds=NO_HEARTBEAT_SECONDS) as running:
            asyncio.run(clients.streams(running, lines[:FEW], settle=0))
            times = {"settle": plan.settle, "warmup": plan.warmup, "duration": plan.seconds}
            found = asyncio.run(
                clients.streams(running, lines, **times, work=lambda done: post_to_rooms(server.site, plan.rate, done))
            )
        costs = {"per_cpu_s": found["count"] / found["server_cpu_s"], "cpu_us": 1e6 * found["open_cpu_s"] / len(lines)}
        yield name, found | costs | {"share": found["count"] / (plan.rate * found["seconds"])}


def joined(server: Server, clients: Clients, plan: Plan) -> Measured:
    """Measure firehose clients while posts come in bursts."""
    size, per_second = JOINED

    async def work(done: asyncio.Event) -> None:
        await (await Bursts.of(server.site)).run(size, per_second, done)

    with server.running() as running:
        yield "joined", _streamed(server, running, clients, plan, "firehose", work, size * per_second)


def requests(server: Server, clients: Clients, plan: Plan) -> Measured:
    """Measure how many requests a second a server answers, and what one costs the server and Redis."""
    with server.running() as running:
        for name, lines in server.calls().items():
            asyncio.run(clients.requests(running, lines, conns=ASKERS, duration=plan.warmup / 2))
            redis = cpu_seconds(server.site.redis_pid())
            found = asyncio.run(clients.requests(running, lines, conns=ASKERS, duration=plan.seconds / 2))
            redis = cpu_seconds(server.site.redis_pid()) - redis
            count = max(1.0, found["count"])
            costs = {"cpu_us": 1e6 * found["server_cpu_s"] / count, "redis_us": 1e6 * redis / count}
            yield name, found | costs | {"per_s": count / found["seconds"]}


def pages(server: Server, clients: Clients, plan: Plan) -> Measured:
    """Measure what a home page costs the server, the primary and the busiest replica, with none and more replicas."""
    if isinstance(server, StreamServer):
        yield from asyncio.run(_pages(server, clients, plan)).items()


async def _pages(server: StreamServer, clients: Clients, plan: Plan) -> dict[str, Figures]:
    found: dict[str, Figures] = {}
    lines, primary = server.calls()["home"], server.site.redis_pid()
    async with AsyncExitStack() as stack:
        made = [replica.replica(server.site.open_redis_port()) for _ in range(server.site.most_replicas)]
        replicas = [await stack.enter_async_context(each) for each in made]
        for count in range(len(replicas) + 1):
            with server.running(replicas=[each.port for each in replicas[:count]]) as running:
                await clients.requests(running, lines, conns=ASKERS, duration=plan.warmup / 2)
                before = [cpu_seconds(pid) for pid in (primary, *(each.pid for each in replicas))]
                figures = await clients.requests(running, lines, conns=ASKERS, duration=plan.seconds / 2)
                after = [cpu_seconds(pid) for pid in (primary, *(each.pid for each in replicas))]
            us = [1e6 * (late - early) / max(1.0, figures["count"]) for early, late in zip(before, after, strict=True)]
            costs = {"cpu_us": 1e6 * figures["server_cpu_s"] / max(1.0, figures["count"]), "primary_us": us[0]}
            found[f"{count} replicas"] = figures | costs | {"replica_us": max(us[1:])}
    return found


def connects(server: Server, clients: Clients, plan: Plan) -> Measured:
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
        yield "idle", found | {"open_per_cpu_s": found["opened"] / max(found["open_cpu_s"], TICK_SECONDS)}


def returning(server: Server, _: Clients, plan: Plan) -> Measured:
    """Measure many streams, all of which close and return at once. Of a bare server, measure how long opening takes."""
    sizes = crowd.Plan(conns=plan.crowd, hold=plan.warmup, rates=(CROWD_RATE,), seconds=plan.seconds)
    if not isinstance(server, StreamServer):
        bare = asyncio.run(crowd.measure_bare(server.site, sizes))
        storms = {"storm_s": bare.seconds, "storm_cpu_s": bare.cpu_seconds}
        yield "crowd", storms | {"restart_s": bare.seconds, "restart_cpu_s": bare.cpu_seconds}
        return
    ledger = asyncio.run(crowd.measure(server, sizes))
    figures = {f"{part}_s": ledger.value(part, crowd.LIVE) for part in ("storm", "restart")}
    figures |= {f"{part}_cpu_s": ledger.value(part, crowd.CPU) for part in ("storm", "restart")}
    yield "crowd", figures | {"broken": len(ledger.broken)}


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
    }
