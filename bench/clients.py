"""Runs the program of the clients beside a measured server, and returns its figures."""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Protocol

from bench.native import Programs
from bench.process import last_core, pin

Figures = dict[str, float]
"""Values by name."""

Work = Callable[[asyncio.Event], Awaitable[object]]
"""Posts until the event is set."""


class Process(Protocol):
    """The process that is measured."""

    @property
    def pid(self) -> int: ...


class Running(Protocol):
    """A running server: the process that is measured, and the port of its clients."""

    @property
    def process(self) -> Process: ...

    @property
    def port(self) -> int: ...


class Clients:
    """Starts clients: the program in C, or the slower one in Python if it could not be compiled."""

    def __init__(self, folder: Path, programs: Programs) -> None:
        self._requests = folder / "requests"
        self._program = [programs.load] if programs.load else [sys.executable, "-m", "bench.reader"]

    async def streams(
        self, running: Running, lines: list[str], *, settle: float, warmup: float = 0, duration: float = 0,
        work: Work | None = None,
    ) -> Figures:  # fmt: skip
        """Open one stream a line, do ``work`` once all are open, and return what arrived. Times are in seconds."""
        return await self._run(
            "streams", running, lines, len(lines), {"settle": settle, "warmup": warmup, "duration": duration}, work
        )

    async def requests(
        self, running: Running, lines: list[str], *, conns: int, warmup: float, duration: float
    ) -> Figures:
        """Send the requests in turn over ``conns`` connections, each again as soon as it has its answer."""
        return await self._run("requests", running, lines, conns, {"warmup": warmup, "duration": duration}, None)

    async def _run(
        self, mode: str, running: Running, lines: list[str], conns: int, times: dict[str, float], work: Work | None
    ) -> Figures:
        self._requests.write_text("\n".join(lines) + "\n")
        options = {"port": running.port, "pid": running.process.pid, "requests": self._requests, "conns": conns} | times
        arguments = [part for name, value in options.items() for part in (f"--{name}", str(value))]
        process = await asyncio.create_subprocess_exec(
            *self._program, mode, *arguments, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
        )
        pin(process.pid, last_core())
        done = asyncio.Event()
        posting = asyncio.create_task(_started(process, work, done)) if work else None
        assert process.stdout is not None
        answer = await process.stdout.read()
        done.set()
        if posting is not None:
            await posting
        problems = (await process.communicate())[1].decode()
        if await process.wait() or not answer:
            raise RuntimeError(f"the clients failed: {problems[-2000:]}")
        figures: Figures = json.loads(answer)
        if figures["refused"] or figures["closed_early"]:
            print(f"refused {figures['refused']}, closed {figures['closed_early']}: {problems[-500:]}", file=sys.stderr)
        return figures


async def _started(process: asyncio.subprocess.Process, work: Work, done: asyncio.Event) -> None:
    """Begin the work as soon as all streams are open."""
    assert process.stderr is not None
    await process.stderr.readuntil(b"ready")
    await work(done)
