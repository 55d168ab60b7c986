"""One part of a round for one peer."""

import asyncio
from typing import Literal

from bench.clients import Clients
from bench.peers.figures import Figures
from bench.peers.peer import Live, Peer
from bench.peers.works import Part, Plan

WARM_CONNS = 20
"""Clients that connect and leave before idle connections are measured, so that what loads once does not count."""


def measure(peer: Peer, part: Part | Literal["idle"], clients: Clients, plan: Plan) -> Figures:
    """Start the peer, measure one part and end it. Raises RuntimeError if a client could not connect."""
    if part == "idle":
        with peer.running(0) as live:
            return asyncio.run(_idle(peer, live, clients, plan))
    with peer.running(plan.work(part).rate) as live:
        return asyncio.run(_busy(peer, live, part, clients, plan))


async def _idle(peer: Peer, live: Live, clients: Clients, plan: Plan) -> Figures:
    for conns in (WARM_CONNS, plan.idle_conns):
        figures = await clients.streams(live, _lines(peer, "firehose", conns), settle=plan.settle)
        _check(figures, conns)
    figures["open_per_cpu_s"] = figures["opened"] / figures["open_cpu_s"]
    return figures


async def _busy(peer: Peer, live: Live, part: Part, clients: Clients, plan: Plan) -> Figures:
    work = plan.work(part)

    async def feed(done: asyncio.Event) -> None:
        await peer.feed(live, work, done)

    lines = _lines(peer, part, plan.conns)
    figures = await clients.streams(
        live, lines, settle=plan.settle, warmup=plan.warmup, duration=plan.seconds, work=feed
    )
    _check(figures, plan.conns)
    count, cpu, seconds = (figures[name] for name in ("count", "server_cpu_s", "seconds"))
    figures["per_cpu_s"] = count / cpu
    figures["cpu_percent"] = 100 * cpu / seconds
    figures["share_delivered"] = count / (plan.conns * work.rate * work.share * seconds)
    return figures


def _lines(peer: Peer, part: Part, conns: int) -> list[str]:
    return [f"GET {request}" for request in peer.requests(part, conns)]


def _check(figures: Figures, conns: int) -> None:
    if figures["opened"] < conns:
        raise RuntimeError(f"only {figures['opened']} of {conns} clients connected")
