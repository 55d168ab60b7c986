"""``python -m bench.hop``: what it costs the processes of a host to hear, each by itself or one for all.

Real subscriptions, signatures and links: Redis publishes, and four workers hear, each from Redis, from a relay over
its unix socket, from a relay that sends stubs of entries for named users, or from a relay by shared memory. A row
is CPU time for one entry, and the time from just before PUBLISH to the worker.
"""

import argparse
import asyncio
import hmac
import json
import os
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

from redis.asyncio import Redis
from rich.console import Console
from rich.table import Table

from bench.hop_process import KEY, WAYS
from bench.process import cpu_seconds, end_cleanly
from bench.shared_ring import make_ring
from bench.unit_site import OPTIONS, free_port
from stream_server.events.bus_signature import MAC_PREFIX
from stream_server.runtime.embedded_redis import EmbeddedRedis
from stream_server.store import keys

BODY_BYTES = {"public": 750, "1795507484287": 1000}
"""Size of the body by audience: a post for all, and a notification for one user with the post in it."""

READ_BODIES = 300


class Load(NamedTuple):
    """One kind of load: the audience of its entries, the entries of one read, and the reads a second."""

    name: str
    audience: str
    batch: int
    per_second: float


LOADS = (
    Load("posts, 1 a read", "public", 1, 100),
    Load("posts, 10 a read", "public", 10, 50),
    Load("posts, 100 a read", "public", 100, 10),
    Load("for one user, 100 a read", "1795507484287", 100, 10),
)


class Row(NamedTuple):
    """CPU time in µs for one entry, and delays in µs at the workers."""

    redis: float
    relay: float
    worker: float
    p50: float
    p99: float


class Child:
    """A process of the run."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self.pid = process.pid

    @classmethod
    async def start(cls, *arguments: str, fds: tuple[int, ...] = ()) -> "Child":
        """Start it and wait until it is ready."""
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "bench.hop_process", *arguments, stdin=pipe, stdout=pipe, pass_fds=fds
        )
        made = cls(process)
        assert process.stdout is not None
        if await process.stdout.readline() != b"ready\n":
            raise RuntimeError(f"{' '.join(arguments[:2])} did not start")
        return made

    async def report(self) -> dict[str, float]:
        """Return what it has heard since the last report."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(b"\n")
        found: dict[str, float] = json.loads(await self._process.stdout.readline())
        return found

    async def end(self) -> None:
        """Let it end."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        await self._process.wait()


class Host:
    """Redis, the workers and their relay, if they have one."""

    def __init__(self, embedded: EmbeddedRedis, url: str, relay: Child | None, workers: list[Child]) -> None:
        self._redis_pid, self._url = embedded.redis_pid, url
        self._relay, self._workers = relay, workers

    async def measure(self, load: Load, seconds: float) -> Row:
        """Publish for ``seconds``. Raises RuntimeError if a worker did not get all."""
        before, ready = self._spent(), [await worker.report() for worker in self._workers]
        assert len(ready) == len(self._workers)
        count = await publish(self._url, load, seconds)
        after = self._spent()
        reports = [await worker.report() for worker in self._workers]
        if any(report["entries"] != count for report in reports):
            raise RuntimeError(f"{[report['entries'] for report in reports]} of {count} entries came")
        redis, relay, *workers = (1e6 * (late - early) / count for early, late in zip(before, after, strict=True))
        p50, p99 = (sum(report[name] for report in reports) / len(reports) for name in ("p50_us", "p99_us"))
        return Row(redis, relay, sum(workers) / len(workers), p50, p99)

    def _spent(self) -> list[float]:
        relay = cpu_seconds(self._relay.pid) if self._relay else 0.0
        return [cpu_seconds(self._redis_pid), relay, *(cpu_seconds(worker.pid) for worker in self._workers)]


@asynccontextmanager
async def host(way: str, count: int, folder: Path, embedded: EmbeddedRedis, url: str) -> AsyncIterator[Host]:
    """Start the processes that hear in one way."""
    path = folder / way
    fds = [os.eventfd(0, os.EFD_NONBLOCK) for _ in range(count)] if way == "shared" else []
    if way == "shared":
        path = Path("/dev/shm") / f"{folder.name}-ring"
        make_ring(path)
    relay = None
    if way != "redis":
        relay = await Child.start("relay", way, url, str(path), *map(str, fds), fds=tuple(fds))
    wakes = [[str(fd)] for fd in fds] or [[]] * count
    workers = [await Child.start("worker", way, url, str(path), *wake, fds=tuple(map(int, wake))) for wake in wakes]
    try:
        yield Host(embedded, url, relay, workers)
    finally:
        for child in (*workers, *([relay] if relay else ())):
            await child.end()
        for fd in fds:
            os.close(fd)
        path.unlink(missing_ok=True)


async def publish(url: str, load: Load, seconds: float) -> int:
    """Publish the entries of a load. Return the number of entries."""
    body = b'{"wire":"%b"' % (b"x" * BODY_BYTES[load.audience])
    start, reads = time.monotonic(), round(seconds * load.per_second)
    async with Redis.from_url(url) as redis:
        for number in range(reads):
            await asyncio.sleep(max(0.0, start + number / load.per_second - time.monotonic()))
            async with redis.pipeline(transaction=True) as commands:
                for _ in range(load.batch):
                    head = b"%d-0 %d post %b " % (time.monotonic_ns(), number, load.audience.encode())
                    commands.publish("events:post", signed(head + body))
                await commands.execute()
        await asyncio.sleep(0.3)
    return reads * load.batch


def signed(begun: bytes) -> bytes:
    """Return a message with its signature. ``begun`` lacks the last brace."""
    mac = hmac.digest(KEY, begun + b"}", "sha1").hex().encode()
    return begun + MAC_PREFIX + mac + b'"}'


async def body_us(embedded: EmbeddedRedis, url: str) -> tuple[float, float]:
    """Return what it costs a process and Redis to read the body of one entry from the log, in µs of CPU time."""
    async with Redis.from_url(url) as redis:
        body = "x" * BODY_BYTES["1795507484287"]
        row = await redis.xadd(keys.LOG, {"n": 1, "k": "notification", "a": "1795507484287", "e": body})
        before = cpu_seconds(os.getpid()), cpu_seconds(embedded.redis_pid)
        for _ in range(READ_BODIES):
            await redis.xrange(keys.LOG, row, row)
        after = cpu_seconds(os.getpid()), cpu_seconds(embedded.redis_pid)
    own, others = (1e6 * (late - early) / READ_BODIES for early, late in zip(before, after, strict=True))
    return own, others


async def measure(workers: int, seconds: float) -> tuple[dict[tuple[str, str], Row], tuple[float, float]]:
    """Measure all ways and loads. Return the rows, and the cost of reading one body."""
    found = {}
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="stream-server-bench-") as folder:
        embedded = await EmbeddedRedis.start(None, extra=[*OPTIONS, "--port", str(port)])
        url = f"redis://127.0.0.1:{port}"
        try:
            for way in WAYS:
                async with host(way, workers, Path(folder), embedded, url) as made:
                    await made.measure(LOADS[0], 0.3)
                    found |= {(load.name, way): await made.measure(load, seconds) for load in LOADS}
            return found, await body_us(embedded, url)
        finally:
            await embedded.stop()


def table(rows: dict[tuple[str, str], Row], workers: int) -> Table:
    """Return the table of all rows."""
    made = Table(title=f"one entry, {workers} workers", title_justify="left")
    columns = ("Redis µs", "relay µs", "each worker µs", "host µs", "p50 µs", "p99 µs")
    for column in ("what is published", "heard", *columns):
        made.add_column(column, justify="right" if column in columns else "left")
    for load, way in sorted(rows, key=lambda key: [one.name for one in LOADS].index(key[0])):
        row = rows[load, way]
        host_us = row.relay + workers * row.worker
        cells = (row.redis, row.relay, row.worker, host_us, row.p50, row.p99)
        made.add_row(load, way, *(f"{cell:,.1f}" if cell < 1000 else f"{cell:,.0f}" for cell in cells))
    return made


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(prog="python -m bench.hop", description=__doc__)
    parser.add_argument("--workers", type=int, default=4, help="processes that hear (4)")
    parser.add_argument("--seconds", type=float, default=3.0, help="length of each measurement (3)")
    given = parser.parse_args()
    end_cleanly()
    rows, (own, redis) = asyncio.run(measure(given.workers, given.seconds))
    console = Console(width=None if Console().is_terminal else 140)
    console.print(table(rows, given.workers))
    console.print(f"to read the body of a stub from the log: {own:.0f} µs in the process and {redis:.0f} µs in Redis")


if __name__ == "__main__":
    main()
