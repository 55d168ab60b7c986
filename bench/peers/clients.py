"""Runs the program of the clients beside a running peer.

Only this file knows how the program is called, so another program can take its place.
"""

import asyncio
import json
import sys
from pathlib import Path

from bench.peers.figures import Figures
from bench.peers.peer import DEFAULT_READER, Live, Peer
from bench.peers.works import Plan, Work
from bench.process import last_core, pin

WARM_CONNS = 20
"""Clients that connect and leave before idle connections are measured, so that what loads once does not count."""

SETTLE_SECONDS = 1.0
"""Time in seconds between the last connect and the measurement of memory or events."""


class Clients:
    """Starts the clients. ``program`` is a load generator in C that can replace the one in Python, or empty."""

    def __init__(self, folder: Path, plan: Plan, program: str = "") -> None:
        self._requests = folder / "requests"
        self._plan = plan
        self._program = program

    async def idle(self, peer: Peer, live: Live) -> Figures:
        """Return memory and rate of connections without events."""
        for conns in (WARM_CONNS, self._plan.idle_conns):
            figures = await self._run(peer, live, peer.requests("firehose", conns), None)
        return figures

    async def busy(self, peer: Peer, live: Live, work: Work) -> Figures:
        """Return what arrives while the peer gets events."""
        figures = await self._run(peer, live, peer.requests(work.part, self._plan.conns), work)
        due = self._plan.conns * work.rate * work.share * figures["seconds"]
        figures["share_delivered"] = figures["deliveries"] / due
        figures["cpu_percent"] = 100 * figures["server_cpu_s"] / figures["seconds"]
        return figures

    async def _run(self, peer: Peer, live: Live, requests: list[str], work: Work | None) -> Figures:
        """Run the clients in a process of their own, and feed the peer once all are connected."""
        self._requests.write_text("\n".join(requests) + "\n")
        process = await asyncio.create_subprocess_exec(
            *self._command(peer, live, len(requests), work),
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        pin(process.pid, last_core())
        done = asyncio.Event()
        feeding = asyncio.create_task(_fed(process, peer, live, work, done)) if work else None
        assert process.stdout is not None
        answer = await process.stdout.read()
        done.set()
        if feeding is not None:
            await feeding
        problems = (await process.communicate())[1].decode()
        if process.returncode or not answer:
            raise RuntimeError(f"the clients failed: {problems[-500:]}")
        figures: Figures = {name: value for name, value in json.loads(answer).items() if name != "label"}
        if figures["opened"] < len(requests):
            raise RuntimeError(f"only {figures['opened']} of {len(requests)} clients connected")
        return figures

    def _command(self, peer: Peer, live: Live, conns: int, work: Work | None) -> list[str]:
        own = peer.reader != DEFAULT_READER or not self._program
        options = {
            "port": live.port, "pid": live.pid, "requests": self._requests, "conns": conns, "settle": SETTLE_SECONDS,
            "warmup": self._plan.warmup if work else 0, "duration": self._plan.seconds if work else 0,
        }  # fmt: skip
        arguments = [part for name, value in options.items() for part in (f"--{name}", str(value))]
        return [*([sys.executable, "-m", peer.reader] if own else [self._program]), *arguments]


async def _fed(process: asyncio.subprocess.Process, peer: Peer, live: Live, work: Work, done: asyncio.Event) -> None:
    assert process.stderr is not None
    await process.stderr.readuntil(b"ready")
    await peer.feed(live, work, done)
