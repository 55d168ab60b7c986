"""Controls the child processes of the crowd's clients."""

import asyncio
import json
import sys
from collections import Counter
from typing import Any

from bench.process import last_core, pin

ANSWER_BYTES = 1 << 24
"""Longest answer line in bytes. A tally of 10,000 clients takes about 300 KB."""

PATIENCE_SECONDS = 900.0
"""Longest time in seconds to wait until all clients are connected."""

LATE = {"p50": 0.5, "p99": 0.99, "p999": 0.999, "max": 1.0}
"""The quantiles of the delay to report."""

Process = asyncio.subprocess.Process


class Pen:
    """The processes of `bench.herd`, each with as many clients and a source address of its own.

    It takes one command at a time.
    """

    def __init__(self, processes: list[Process], size: int) -> None:
        self._processes = processes
        self._size = size

    @classmethod
    async def start(cls, port: int, requests: list[str], size: int) -> "Pen":
        """Start a process for each file of ``size`` requests, on the core that all but the measured server use."""
        processes = []
        for number, file in enumerate(requests, 1):
            options = ("--source", f"127.0.0.{number}", "--port", str(port), "--requests", file)
            pipe = asyncio.subprocess.PIPE
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "bench.herd", *options, stdin=pipe, stdout=pipe, limit=ANSWER_BYTES
            )
            pin(process.pid, last_core())
            processes.append(process)
        return cls(processes, size)

    async def open(self, first: int, last: int, at_once: int) -> tuple[int, float]:
        """Connect the clients from ``first`` to ``last``. Return how many are open, and the seconds it took."""
        each = max(1, at_once // len(self._processes))
        begins = [number * self._size for number in range(len(self._processes))]
        parts = [(min(max(first - begin, 0), self._size), min(max(last - begin, 0), self._size)) for begin in begins]
        async with asyncio.timeout(PATIENCE_SECONDS):
            told = await self._all([{"do": "open", "first": a, "last": z, "at_once": each} for a, z in parts])
        return sum(one["opened"] for one in told), max(one["seconds"] for one in told)

    async def drop(self) -> None:
        """Close all connections."""
        await self._each(do="drop")

    async def figures(self) -> dict[str, Any]:
        """Return what was delivered since the last call, and with what delay in ms."""
        told = await self._each(do="figures")
        late = sorted(delay for one in told for delay in one["late"])
        seen: Counter[str] = Counter()
        wrong: Counter[str] = Counter()
        for one in told:
            seen.update(one["seen"])
            wrong.update(one["wrong"])
        delays = {name: late[int(share * (len(late) - 1))] / 1e6 if late else 0.0 for name, share in LATE.items()}
        sums = {name: sum(one[name] for one in told) for name in ("deliveries", "opened", "cpu_s")}
        return {**sums, "late_ms": delays, "seen": seen, "wrong": wrong}

    async def tally(self) -> list[tuple[int, int]]:
        """Return what each client has received so far."""
        return [(count, squares) for one in await self._each(do="tally") for count, squares in one["tally"]]

    async def end(self) -> None:
        """Stop the processes."""
        for process in self._processes:
            assert process.stdin is not None
            process.stdin.close()
            await process.wait()

    async def _each(self, **order: Any) -> list[dict[str, Any]]:
        return await self._all([order] * len(self._processes))

    async def _all(self, orders: list[dict[str, Any]]) -> list[dict[str, Any]]:
        pairs = zip(self._processes, orders, strict=True)
        return await asyncio.gather(*(_ask(process, order) for process, order in pairs))


async def _ask(process: Process, order: dict[str, Any]) -> dict[str, Any]:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps(order).encode() + b"\n")
    await process.stdin.drain()
    line = await process.stdout.readline()
    if not line:
        raise RuntimeError("a process of the clients has ended")
    answer: dict[str, Any] = json.loads(line)
    return answer
