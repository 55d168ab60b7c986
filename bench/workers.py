"""``python -m bench.workers``: how much more two workers deliver than one.

One worker serves some streams. Then two workers serve twice as many, at the same rate of posts. The CPU time of each
process is read from `GET /v1/admin/operations`. A process can use one core, so the busiest one is the limit where
cores allow: a server delivers as much as its busiest process lets it. Rounds of both alternate.
"""

import argparse
import asyncio
import os
import resource
import tempfile
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table

from bench.caller import Caller, in_turn
from bench.clients import Clients, Figures
from bench.lineup import Kind, StreamServer
from bench.native import compiled
from bench.poster import steadily
from bench.process import end, end_cleanly, first_core, last_core, pin
from bench.site import Site, site

RATES: dict[Kind, float] = {"firehose": 40.0, "tracks": 100.0}
"""Posts a second to each kind of streams."""

ASKED = 1.8
"""What two workers should deliver, as a multiple of one."""


class Run(NamedTuple):
    """One run. CPU times are shares of a core.

    Attributes:
        busiest: CPU time of the busiest process.
        total: CPU time of all processes.
        delivered: Events that were delivered, a second.
    """

    busiest: float
    total: float
    delivered: float
    p50_ms: float
    p99_ms: float


class Meter:
    """Measures a server with a number of workers."""

    def __init__(self, made: Site, clients: Clients, conns: int, seconds: float) -> None:
        self._site, self._clients = made, clients
        self._conns, self._seconds = conns, seconds

    async def measure(self, kind: Kind, workers: int) -> Run:
        """Serve ``workers`` times the streams of one worker."""
        flags = ("--redis", f"unix://{self._site.redis_socket}", "--workers", str(workers))
        process, address = await asyncio.to_thread(self._site.serve, "measured", *flags)
        states: list[Any] = []
        try:
            pin(process.pid, first_core())

            async def work(done: asyncio.Event) -> None:
                posting = asyncio.create_task(steadily(self._site, RATES[kind], done))
                await asyncio.sleep(1)
                states.append(await self._state(address))
                await asyncio.sleep(self._seconds)
                states.append(await self._state(address))
                await posting

            lines = StreamServer(self._site).streams(kind, self._conns * workers)
            running = _Running(process, int(address.rpartition(":")[2]))
            figures = await self._clients.streams(
                running, lines, settle=0.5, warmup=1, duration=self._seconds + 0.5, work=work
            )
        finally:
            await asyncio.to_thread(end, process)
        return self._run(*states, figures)

    def _run(self, before: Any, after: Any, figures: Figures) -> Run:
        spent = _since(before, after, "cpu_seconds")
        delivered = sum(_since(before, after, "events_delivered"))
        numbers = (max(spent), sum(spent), delivered)
        return Run(*(number / self._seconds for number in numbers), figures["p50_ms"], figures["p99_ms"])

    async def _state(self, address: str) -> Any:
        found: list[Any] = []
        token = self._site.token(self._site.admin, "admin")

        async def ask(caller: Caller, _: int) -> None:
            found.append(await caller.call(token, "GET", "/v1/admin/operations"))

        await in_turn(address, 1, ask)
        return found[0]


class _Running(NamedTuple):
    process: Any
    port: int


def _since(before: Any, after: Any, name: str) -> list[float]:
    """Return the difference of a figure in each worker."""
    pairs = zip(before["workers"], after["workers"], strict=True)
    if any(early["pid"] != late["pid"] or not late["ready"] for early, late in pairs):
        raise RuntimeError("a worker did not answer, or was restarted")
    return [late[name] - early[name] for early, late in zip(before["workers"], after["workers"], strict=True)]


def gain(one: list[Run], two: list[Run]) -> float:
    """Return how many times as much two workers deliver, if each process has a core. The median of the rounds."""
    pairs = zip(one, two, strict=True)
    return median((second.delivered / second.busiest) / (first.delivered / first.busiest) for first, second in pairs)


def table(runs: dict[tuple[Kind, int], list[Run]]) -> Table:
    """Return the medians of all rounds."""
    made = Table(title="one and two workers, each with the same number of streams", title_justify="left")
    columns = ("delivered /s", "busiest, % of a core", "all, %", "µs a delivery", "p50 ms", "p99 ms")
    for column in ("streams", "workers", *columns, "two deliver, times", "asked"):
        made.add_column(column, justify="left" if column == "streams" else "right")
    for (kind, workers), found in runs.items():
        run = Run(*(median(values) for values in zip(*found, strict=True)))
        cells = [f"{run.delivered:,.0f}", *(f"{100 * share:.1f}" for share in (run.busiest, run.total))]
        cells += [f"{1e6 * run.total / run.delivered:.1f}", f"{run.p50_ms:.1f}", f"{run.p99_ms:.1f}"]
        ratio = [f"{gain(runs[kind, 1], found):.2f}", f"{ASKED:g}"] if workers > 1 else ["", ""]
        made.add_row(kind, str(workers), *cells, *ratio)
    return made


async def measure(meter: Meter, rounds: int) -> dict[tuple[Kind, int], list[Run]]:
    """Measure all kinds. Rounds of one and of two workers alternate."""
    found: dict[tuple[Kind, int], list[Run]] = {(kind, count): [] for kind in RATES for count in (1, 2)}
    for _ in range(rounds):
        for (kind, workers), runs in found.items():
            runs.append(await meter.measure(kind, workers))
    return found


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(prog="python -m bench.workers", description=__doc__)
    parser.add_argument("--conns", type=int, default=300, help="streams of each worker (300)")
    parser.add_argument("--seconds", type=float, default=4.0, help="length of each measurement (4)")
    parser.add_argument("--rounds", type=int, default=3, help="rounds (3)")
    given = parser.parse_args()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    pin(os.getpid(), last_core())
    end_cleanly()
    with tempfile.TemporaryDirectory(prefix="stream-server-bench-") as folder, site() as made:
        clients = Clients(Path(folder), compiled(Path(folder)))
        runs = asyncio.run(measure(Meter(made, clients, given.conns, given.seconds), given.rounds))
    Console(width=None if Console().is_terminal else 150).print(table(runs))


if __name__ == "__main__":
    main()
