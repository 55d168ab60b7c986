"""Runs the program of the clients, ``load.c``, beside a measured server, and returns its figures."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path

from bench.lineup import Running
from bench.process import last_core, pin

Figures = dict[str, float]
"""Values by name."""

Work = Callable[[asyncio.Event], Awaitable[object]]
"""Posts until the event is set."""


class Clients:
    """Starts clients by the compiled ``program``."""

    def __init__(self, folder: Path, program: str) -> None:
        self._requests = folder / "requests"
        self._program = program

    async def streams(
        self, running: Running, lines: list[str], *, settle: float, warmup: float = 0, duration: float = 0,
        work: Work | None = None,
    ) -> Figures:  # fmt: skip
        """Open one stream a line, do ``work`` once all are open, and return what arrived. Times are in seconds.

        Raises RuntimeError if a stream does not open.
        """
        times = {"settle": settle, "warmup": warmup, "duration": duration}
        found = await self._run("streams", running, lines, len(lines), times, work)
        if found["opened"] < len(lines):
            raise RuntimeError(f"only {found['opened']} of {len(lines)} clients connected")
        return found

    async def requests(self, running: Running, lines: list[str], *, conns: int, duration: float) -> Figures:
        """Send the requests in turn over ``conns`` connections, each again as soon as it has its answer.

        Raises RuntimeError if one is refused.
        """
        found = await self._run("requests", running, lines, conns, {"warmup": 0, "duration": duration}, None)
        if found["refused"]:
            raise RuntimeError(f"{found['refused']} requests were refused")
        return found

    async def _run(
        self, mode: str, running: Running, lines: list[str], conns: int, times: dict[str, float], work: Work | None
    ) -> Figures:
        self._requests.write_text("\n".join(lines) + "\n")
        options = {"port": running.port, "pid": running.process.pid, "requests": self._requests, "conns": conns} | times
        arguments = [part for name, value in options.items() for part in (f"--{name}", str(value))]
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(self._program, mode, *arguments, stdout=pipe, stderr=pipe)
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
        return figures


async def _started(process: asyncio.subprocess.Process, work: Work, done: asyncio.Event) -> None:
    """Begin the work as soon as all streams are open."""
    assert process.stderr is not None
    await process.stderr.readuntil(b"ready")
    await work(done)
