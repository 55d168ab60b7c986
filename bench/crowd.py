"""``python -m bench.crowd``: 10,000 streams of all kinds on one server, from the first to the last.

The clients connect (ramp), stay idle (hold) and receive posts at several rates. Then all connections close at once and
the clients resume by their cursors while posts go on (storm). They leave, the server is started again, and they return
to it once more: it fills its ring from the log (restart). The exit code is 1 if a post was missed or arrived twice, if
a stream was cut, or if anything was left behind: these are promises, not figures.

The yardstick of a storm is the time in which a bare aiohttp server opens as many connections of the same clients. A
server with several workers has none. More than 20,000 streams need several workers and several processes of clients,
because a process may open only so many files, and because one source address has only 28,000 ports.
"""

import argparse
import asyncio
import random
import resource
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

from bench import mix
from bench.gauges import Seen, looked, until
from bench.ledger import Ledger
from bench.lineup import BareServer, Running, StreamServer
from bench.pen import Pen
from bench.poster import Connection, steadily
from bench.process import cpu_seconds, end_cleanly, tree_seconds
from bench.site import Site, site

SPARE_FILES = 200
"""File descriptors kept free for everything except the clients' connections."""

WAITING_FILES = 4096
"""In a storm, this many connections may wait to be accepted before the server has closed the old ones."""

LISTENERS = 500
"""Users whose tokens the clients share."""

HANDS = 32
"""Most connections that post at the same time."""

RAMP_AT_ONCE = 128
"""Connections that are opening at the same time during the ramp."""

FEW = 20
"""Clients of the warm-up."""

SETTLE_SECONDS = 180.0
"""Longest wait in seconds for all clients to receive what is due."""

STORM_RATE = 100.0
"""Posts a second during the storm."""

STORM_DELIVERIES = 10_000
"""Deliveries a second of loud posts during the storm. More would need the CPU that is to open streams."""

STORM_AROUND_SECONDS = 2.0
"""Seconds of posts before and after the storm."""


LIVE = "until all are live"
"""Name of the figure that is compared with the yardstick."""

CPU = "CPU of the server until then"
"""Name of the figure that says what the return of all clients costs. Other programs disturb it less than the time."""


@dataclass(frozen=True)
class Plan:
    """The sizes of a run. Times are in seconds, rates in posts a second.

    Attributes:
        workers: Worker processes of the measured server.
        sources: Processes of clients, each with a source address of its own.
    """

    conns: int
    hold: float
    rates: tuple[float, ...]
    seconds: float
    workers: int = 1
    sources: int = 1

    @property
    def of_source(self) -> int:
        """Most clients of one process."""
        return -(-self.conns // self.sources)


def plan_from(arguments: list[str]) -> Plan:
    """Parse the command line into a plan. End the program if the system allows too few open files."""
    parser = argparse.ArgumentParser(prog="python -m bench.crowd", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="short times, to see that it works")
    parser.add_argument("--conns", type=int, default=10_000, help="streams (10000)")
    parser.add_argument("--hold", type=float, default=0, help="seconds of being idle (60)")
    parser.add_argument("--seconds", type=float, default=0, help="seconds of each rate of posts (20)")
    parser.add_argument("--workers", type=int, default=1, help="worker processes of the server (1)")
    parser.add_argument("--sources", type=int, default=1, help="processes of clients, each with its own address (1)")
    parser.add_argument("--rates", default="1,100,1000", help="posts a second, one after the other (1,100,1000)")
    given = parser.parse_args(arguments)
    needed = -(-given.conns // min(given.workers, given.sources)) + WAITING_FILES + SPARE_FILES
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if hard < needed:
        parser.error(f"a process needs {needed} open files and {hard} are allowed: raise `ulimit -n`")
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return Plan(
        conns=given.conns,
        hold=given.hold or (10 if given.quick else 60),
        rates=tuple(float(rate) for rate in given.rates.split(",")),
        seconds=given.seconds or (5 if given.quick else 20),
        workers=given.workers,
        sources=given.sources,
    )


class Press:
    """Posts to the writer, and reports each acknowledged post to the oracle."""

    def __init__(self, site: Site, authors: list[str], oracle: mix.Oracle) -> None:
        self._address = site.address
        self._tokens = [site.token(uid, "write") for uid in authors]
        self._oracle = oracle
        self._next = 0
        self._chance = random.Random(8)

    async def run(self, rate: float, done: asyncio.Event, loud_seconds: float = 1.0) -> float:
        """Post at ``rate`` until ``done`` is set. Return the rate achieved.

        A loud post comes every ``loud_seconds``, or each post is loud if fewer come.
        """
        start, posted, every = time.monotonic(), self._oracle.posts, max(1, round(rate * loud_seconds))

        async def post(connection: Connection, turn: int) -> None:
            draft = mix.draft(self._next, loud=turn % every == 0, chance=self._chance)
            self._next += 1
            status_id = await connection.send(self._tokens[draft.author], mix.body(draft, time.monotonic_ns()))
            self._oracle.posted(draft, status_id)

        await steadily(self._address, rate, done, post, min(HANDS, max(1, round(rate))))
        return (self._oracle.posts - posted) / (time.monotonic() - start)


class Restartable:
    """The measured server, which can be started again on the same port."""

    def __init__(self, server: StreamServer, workers: int) -> None:
        self._server, self._workers = server, workers
        self._context: AbstractContextManager[Running] = server.running(workers=workers)
        self.running = self._context.__enter__()

    def start_again(self) -> None:
        """Start the server again after it was stopped."""
        self._context = self._server.running(port=self.running.port, workers=self._workers)
        self.running = self._context.__enter__()

    def end(self) -> None:
        """Stop the server."""
        self._context.__exit__(None, None, None)


class Crowd:
    """One run: a measured server, its clients, and the figures noted."""

    def __init__(self, measured: Restartable, pen: Pen, press: Press, oracle: mix.Oracle, plan: Plan) -> None:
        self.measured, self.pen, self.press, self.oracle, self.plan = measured, pen, press, oracle, plan
        self.askers = [mix.asker(number) for number in range(plan.conns)]
        self.ledger = Ledger()

    @property
    def running(self) -> Running:
        """The server as it runs now."""
        return self.measured.running

    async def run(self) -> None:
        """Run all parts in order."""
        before = await self._warm_up()
        await self._ramp()
        await self._hold(before)
        for rate in self.plan.rates:
            await self._publish(rate)
        await self._storm("storm", self.pen.drop)
        await self._leave("leave", before)
        await self._storm("restart", self._restart)
        await self._leave("leave again", None)

    async def _restart(self) -> None:
        await self.pen.drop()
        await asyncio.to_thread(self.measured.end)
        start = time.monotonic()
        await asyncio.to_thread(self.measured.start_again)
        await self._all_workers()
        self.ledger.note("restart", "until it listens", time.monotonic() - start, "s")

    async def _all_workers(self) -> None:
        """Wait for all workers. The address is told as soon as the first of them listens."""
        await self._seen(lambda seen: self.plan.workers in {1, seen.workers})

    async def _warm_up(self) -> Seen:
        """Connect and disconnect a few clients, so that what the server loads once does not count for each stream."""
        await self._all_workers()
        await self.pen.open(0, min(FEW, self.plan.conns), RAMP_AT_ONCE)
        await self.pen.drop()
        return (await self._seen(lambda seen: seen.streams == 0))[0]

    async def _ramp(self) -> None:
        opened, seconds = await self.pen.open(0, self.plan.conns, RAMP_AT_ONCE)
        wrong = (await self.pen.figures())["wrong"]
        self.ledger.note("ramp", "connects", opened / seconds, "/s")
        self.ledger.promise("ramp", "refused or failed connects", wrong["refused"] + wrong["failed"])

    async def _hold(self, before: Seen) -> None:
        cpu = tree_seconds(self.running.process.pid)
        await asyncio.sleep(self.plan.hold)
        cpu = tree_seconds(self.running.process.pid) - cpu
        seen = await looked(self.running.port, self.running.process.pid)
        self.ledger.note("hold", "memory of a stream", (seen.memory_kib - before.memory_kib) / self.plan.conns, "KiB")
        self.ledger.note("hold", "CPU", 100 * cpu / self.plan.hold, "% of a core")
        heard = await self.pen.figures()
        self.ledger.note("hold", "heartbeats", heard["seen"].get("heartbeat", 0), "")
        self.ledger.promise("hold", "streams cut", heard["wrong"]["cut"])

    async def _publish(self, rate: float) -> None:
        part = f"{rate:g} posts/s"
        last = await self.pen.figures()
        done = asyncio.Event()
        posting = asyncio.create_task(self.press.run(rate, done))
        cpu, start = tree_seconds(self.running.process.pid), time.monotonic()
        await asyncio.sleep(self.plan.seconds)
        done.set()
        reached = await posting
        short = await self._settled()
        cpu, seconds = tree_seconds(self.running.process.pid) - cpu, time.monotonic() - start
        figures = await self.pen.figures()
        self.ledger.note(part, "posts", reached, "/s")
        for name, late in figures["late_ms"].items():
            self.ledger.note(part, f"post to client, {name}", late, "ms")
        self.ledger.note(part, "deliveries", figures["deliveries"] / seconds, "/s")
        self.ledger.note(part, "deliveries", figures["deliveries"] / max(cpu, 0.01), "/server-CPU-s")
        self.ledger.note(part, "server", 100 * cpu / seconds, "% of a core")
        self.ledger.note(part, "clients", 100 * (figures["cpu_s"] - last["cpu_s"]) / seconds, "% of a core")
        self._promises(part, figures, short)

    async def _storm(self, part: str, cut: Callable[[], Awaitable[None]]) -> None:
        """Cut all connections, and let all clients reconnect as fast as they can while posts go on."""
        last = await self.pen.figures()
        done = asyncio.Event()
        loud_seconds = max(1.0, self.plan.conns / STORM_DELIVERIES)
        posting = asyncio.create_task(self.press.run(STORM_RATE, done, loud_seconds))
        await asyncio.sleep(STORM_AROUND_SECONDS)
        await cut()
        start, cpu = time.monotonic(), tree_seconds(self.running.process.pid)
        opened, seconds = await self.pen.open(0, self.plan.conns, self.plan.conns)
        seen, _ = await self._seen(lambda seen: seen.live >= self.plan.conns)
        live, cpu = time.monotonic() - start, tree_seconds(self.running.process.pid) - cpu
        await asyncio.sleep(STORM_AROUND_SECONDS)
        done.set()
        await posting
        short = await self._settled()
        figures = await self.pen.figures()
        wrong = {name: value - last["wrong"][name] for name, value in figures["wrong"].items()}
        self.ledger.note(part, "came back", opened, "")
        self.ledger.note(part, "until all are connected", seconds, "s")
        self.ledger.note(part, LIVE, live, "s")
        self.ledger.note(part, CPU, cpu, "s")
        self.ledger.note(part, "clients", 100 * (figures["cpu_s"] - last["cpu_s"]) / live, "% of a core")
        self.ledger.note(part, "refused connects", wrong["refused"], "")
        self.ledger.note(part, "failed connects", wrong["failed"], "")
        self.ledger.promise(part, "streams that are not live", self.plan.conns - seen.live)
        self._promises(part, figures, short)

    async def _leave(self, part: str, before: Seen | None) -> None:
        """Disconnect all clients. With ``before``, compare what is left with the state before the first of them."""
        await self.pen.drop()
        seen, seconds = await self._seen(lambda seen: seen.streams == 0 and (not before or seen.files <= before.files))
        self.ledger.note(part, "until nothing is left", seconds, "s")
        self.ledger.promise(part, "streams", seen.streams)
        if before:
            self.ledger.note(part, "memory more than before", (seen.memory_kib - before.memory_kib) / 1024, "MiB")
            self.ledger.promise(part, "open files more than before", max(0, seen.files - before.files))
            self.ledger.promise(part, "tasks more than before", max(0.0, seen.tasks - before.tasks))

    def _promises(self, part: str, figures: dict[str, Any], short: mix.Shortfall) -> None:
        self.ledger.promise(part, "posts missed, all clients", short.missing)
        self.ledger.promise(part, "clients without exactly what was due", short.wrong)
        self.ledger.promise(part, "posts twice or out of order", figures["wrong"]["double"])
        self.ledger.promise(part, "gaps told", figures["seen"].get("gap", 0))
        self.ledger.promise(part, "broken messages", figures["wrong"]["broken"])
        self.ledger.promise(part, "streams cut", figures["wrong"]["cut"])

    async def _settled(self) -> mix.Shortfall:
        """Wait until every client has received what is due. Return what is still missing, also after a minute."""
        end = time.monotonic() + SETTLE_SECONDS
        while True:
            short = mix.shortfall(self.askers, await self.pen.tally(), self.oracle)
            if short == (0, 0) or time.monotonic() > end:
                return short
            await asyncio.sleep(0.5)

    async def _seen(self, check: Any) -> tuple[Seen, float]:
        return await until(self.running.port, self.running.process.pid, check, SETTLE_SECONDS)


@asynccontextmanager
async def crowd(site: Site, measured: Restartable, plan: Plan) -> AsyncIterator[Crowd]:
    """Start the clients' process and yield a run that is ready."""
    authors, listeners = site.users("writer", mix.AUTHORS), site.users("listener", LISTENERS)
    oracle = mix.Oracle()
    pen = await Pen.start(measured.running.port, _requests(site, authors, listeners, plan), plan.of_source)
    try:
        yield Crowd(measured, pen, Press(site, authors, oracle), oracle, plan)
    finally:
        await pen.end()


def _requests(site: Site, authors: list[str], listeners: list[str], plan: Plan, path: str = "/v1/stream") -> list[str]:
    """Write the requests of all clients, and return the names of the files: one for each source."""
    tokens = [site.token(uid, "stream firehose") for uid in listeners]
    rows = [
        f"GET {path}?{mix.asker(n).query(n, authors)}\tAuthorization: Bearer {tokens[n % len(tokens)]}"
        for n in range(plan.conns)
    ]
    files = []
    for first in range(0, plan.conns, plan.of_source):
        file = site.folder / f"crowd{first}"
        file.write_text("\n".join(rows[first : first + plan.of_source]) + "\n")
        files.append(str(file))
    return files


class Yardstick(NamedTuple):
    """Seconds in which a bare aiohttp server opens as many connections as return in a storm, and its CPU seconds."""

    seconds: float
    cpu_seconds: float


async def measure_bare(site: Site, plan: Plan) -> Yardstick:
    """Open as many connections of a bare aiohttp server as return in a storm."""
    authors, listeners = site.users("writer", mix.AUTHORS), site.users("listener", LISTENERS)
    with BareServer(site).running() as running:
        requests = _requests(site, authors, listeners, plan, "/stream")
        pen = await Pen.start(running.port, requests, plan.of_source)
        try:
            cpu = cpu_seconds(running.process.pid)
            _, seconds = await pen.open(0, plan.conns, plan.conns)
            cpu = cpu_seconds(running.process.pid) - cpu
        finally:
            await pen.end()
    return Yardstick(seconds, cpu)


async def measure(server: StreamServer, plan: Plan) -> Ledger:
    """Run once and return the figures."""
    measured = Restartable(server, plan.workers)
    try:
        async with crowd(server.site, measured, plan) as made:
            await made.run()
            return made.ledger
    finally:
        measured.end()


async def measure_all(plan: Plan) -> Ledger:
    """Run once, after the yardstick, and return the figures."""
    with site() as shared:
        if plan.workers > 1:
            return await measure(StreamServer(shared), plan)
        bare = await measure_bare(shared, plan)
        ledger = await measure(StreamServer(shared), plan)
    ledger.note("yardstick", "bare aiohttp opens as many", bare.seconds, "s")
    ledger.note("yardstick", "bare aiohttp: CPU", bare.cpu_seconds, "s")
    for part in ("storm", "restart"):
        longer, more = ledger.value(part, LIVE) / bare.seconds, ledger.value(part, CPU) / bare.cpu_seconds
        ledger.note("yardstick", f"{part}, until all are live", longer, "times as long")
        ledger.note("yardstick", f"{part}: CPU", more, "times as much")
    return ledger


def main() -> None:
    """Measure and print the figures."""
    plan = plan_from(sys.argv[1:])
    end_cleanly()
    ledger = asyncio.run(measure_all(plan))
    print(ledger.text(f"{plan.conns} streams on {plan.workers} workers"))
    sys.exit(1 if ledger.broken else 0)


if __name__ == "__main__":
    main()
