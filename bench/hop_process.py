"""A process of `bench.hop`: the relay, or a worker that hears.

It says ``ready``, and answers each line on its standard input with what it has handed over since: a line of JSON.
"""

import argparse
import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

import uvloop

from bench.shared_ring import RingReader, RingWriter
from stream_server.events.bus_signature import BusSignature
from stream_server.feed.relay.distribution import Distribution
from stream_server.feed.relay.lines import END, LineSplitter
from stream_server.feed.relay.relay_link import RelayLink
from stream_server.store.store import Store

KEY = b"a key of the bus"

WAYS = ("redis", "socket", "stubs", "shared")
"""How workers hear: from Redis itself, from a relay over a socket, over a socket with stubs, or by shared memory."""

TIMEOUT_SECONDS = 10.0


class Heard:
    """Counts the entries of a worker, and how long ago each was published. The id of an entry is that time."""

    def __init__(self) -> None:
        self.delays_ns: list[int] = []

    def take(self, line: bytes) -> None:
        """Count an entry."""
        self.delays_ns.append(time.monotonic_ns() - int(line[: line.index(b"-")]))

    def report(self) -> dict[str, float]:
        """Return the number of entries and the delays in µs, and start again."""
        found, self.delays_ns = sorted(self.delays_ns), []
        count = len(found)
        delays = {"p50_us": found[count // 2] / 1000, "p99_us": found[count * 99 // 100] / 1000} if found else {}
        return {"entries": count, **delays}


class StubDistribution(Distribution):
    """Hands over entries for named users without their bodies."""

    def take(self, message: bytes) -> None:
        """Put a message into the batch, as a stub if it is for a named user."""
        super().take(message)
        head = self.newest.split(b" ", 4)[:4]
        if head[3:] != [b"public"]:
            self._lines[-1] = b" ".join(head)


class SharedDistribution(Distribution):
    """Writes the batch into shared memory."""

    def __init__(self, signature: BusSignature, writer: RingWriter) -> None:
        super().__init__(signature)
        self._writer = writer

    def flush(self) -> None:
        """Hand the batch to all workers."""
        if self._lines:
            self._lines.append(b"")
            self._writer.write(END.join(self._lines))
            self._lines.clear()


async def run_relay(way: str, url: str, path: Path, wake_fds: list[int]) -> None:
    """Hear Redis and hand over the entries until cancelled."""
    signature = BusSignature(KEY)
    made: Distribution
    server: asyncio.Server | None = None
    if way == "shared":
        made = SharedDistribution(signature, RingWriter(path, wake_fds))
    else:
        made = StubDistribution(signature) if way == "stubs" else Distribution(signature)
        server = await asyncio.get_running_loop().create_unix_server(made.make_link, str(path))
    subscription = await Store(url, timeout_seconds=TIMEOUT_SECONDS).log.subscribe()
    made.begin()

    def take(message: bytes) -> None:
        made.take(message)

    await _until_end(subscription.deliver(take, made.flush), lambda: {"entries": made.entries, "lost": made.lost})
    if server is not None:
        server.close()


async def run_worker(way: str, url: str, path: Path, wake_fds: list[int]) -> None:
    """Hear until cancelled."""
    heard, signature = Heard(), BusSignature(KEY)
    if way == "shared":
        splitter = LineSplitter()

        def split(data: bytes) -> None:
            for line in splitter.split(data):
                heard.take(line)

        asyncio.get_running_loop().add_reader(wake_fds[0], RingReader(path, wake_fds[0], split).read)
        await _until_end(asyncio.sleep(3600), heard.report)
    elif way == "redis":
        subscription = await Store(url, timeout_seconds=TIMEOUT_SECONDS).log.subscribe()
        await _until_end(subscription.deliver(partial(_take_signed, heard, signature)), heard.report)
    else:
        link = await RelayLink.connect(path, lambda _: None, lambda _: None)
        await link.wait_ready()
        await _until_end(link.deliver(heard.take), heard.report)


def _take_signed(heard: Heard, signature: BusSignature, message: bytes) -> None:
    plain = signature.open(message)
    assert plain is not None
    heard.take(plain)


async def _until_end(work: Awaitable[None], report: Callable[[], dict[str, float]]) -> None:
    """Answer the parent until it closes the pipe, while ``work`` runs."""
    running = asyncio.ensure_future(work)
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    print("ready", flush=True)
    while await reader.readline():
        print(json.dumps(report()), flush=True)
    running.cancel()


def main() -> None:
    """Run one process."""
    parser = argparse.ArgumentParser()
    parser.add_argument("role", choices=("relay", "worker"))
    parser.add_argument("way", choices=WAYS)
    parser.add_argument("url")
    parser.add_argument("path", type=Path)
    parser.add_argument("wake_fds", type=int, nargs="*")
    given = parser.parse_args()
    run = run_relay if given.role == "relay" else run_worker
    uvloop.run(run(given.way, given.url, given.path, given.wake_fds))


if __name__ == "__main__":
    main()
