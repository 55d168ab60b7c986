"""Controls the child process of the crowd's clients."""

import asyncio
import json
import sys
from typing import Any

from bench.process import last_core, pin

ANSWER_BYTES = 1 << 24
"""Longest answer line in bytes. A tally of 10,000 clients takes about 300 KB."""

PATIENCE_SECONDS = 180.0
"""Longest time in seconds to wait until all clients are connected."""


class Pen:
    """The process of `bench.herd`. It takes one command at a time."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    @classmethod
    async def start(cls, port: int, requests: str) -> "Pen":
        """Start the process on the core that everything except the measured server uses."""
        command = [sys.executable, "-m", "bench.herd", "--port", str(port), "--requests", requests]
        process = await asyncio.create_subprocess_exec(
            *command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, limit=ANSWER_BYTES
        )
        pin(process.pid, last_core())
        return cls(process)

    async def open(self, first: int, last: int, at_once: int) -> tuple[int, float]:
        """Connect the clients from ``first`` to ``last``. Return how many are open, and the seconds it took."""
        await self._order(do="open", first=first, last=last, at_once=at_once)
        async with asyncio.timeout(PATIENCE_SECONDS):
            answer = await self._answer()
        return answer["opened"], answer["seconds"]

    async def drop(self) -> None:
        """Close all connections."""
        await self._order(do="drop")
        await self._answer()

    async def figures(self) -> dict[str, Any]:
        """Return what was delivered since the last call."""
        await self._order(do="figures")
        return await self._answer()

    async def tally(self) -> list[tuple[int, int]]:
        """Return what each client has received so far."""
        await self._order(do="tally")
        return [(count, squares) for count, squares in (await self._answer())["tally"]]

    async def end(self) -> None:
        """Stop the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        await self._process.wait()

    async def _order(self, **order: Any) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(order).encode() + b"\n")
        await self._process.stdin.drain()

    async def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = await self._process.stdout.readline()
        if not line:
            raise RuntimeError("the process of the clients has ended")
        answer: dict[str, Any] = json.loads(line)
        return answer
