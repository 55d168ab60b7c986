"""The clients of `bench.compression`: N streams in one process, plain or with gzip.

All clients count bytes. Only some of them, the *witnesses*, decode what they read and measure how old each post is.
If all decoded, the reading process would be the bottleneck and the latency its own.
"""

import argparse
import json
import select
import socket
import sys
import time
import zlib

from bench.process import cpu_seconds
from bench.reader import quantile_ms, requests_of

MARK = b'"t":'
"""The bytes before the time of a post, in nanoseconds of CLOCK_MONOTONIC."""

READ_BYTES = 1 << 18
"""Most bytes of one read."""

OPENING_AT_ONCE = 64
"""Connections that are opening at the same time."""


class Decoder:
    """Takes the chunks of HTTP/1.1 and, if the response says so, gzip away. Expects whole chunk heads in ``feed``."""

    def __init__(self, *, gzip: bool) -> None:
        self._inflate = zlib.decompressobj(16 + zlib.MAX_WBITS) if gzip else None
        self._pending = b""
        self._events = b""

    def feed(self, data: bytes) -> list[bytes]:
        """Return the messages that are now complete."""
        self._pending += data
        while (head := self._pending.find(b"\r\n")) >= 0:
            size = int(self._pending[:head], 16)
            if len(self._pending) < head + size + 4:
                break
            chunk = self._pending[head + 2 : head + 2 + size]
            self._pending = self._pending[head + size + 4 :]
            self._events += self._inflate.decompress(chunk) if self._inflate else chunk
        *whole, self._events = self._events.split(b"\n\n")
        return whole


class Stream:
    """One connection. ``decoder`` is None unless it is a witness."""

    __slots__ = ("decoder", "head", "is_witness", "socket")

    def __init__(self, port: int, request: bytes, *, is_witness: bool) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), 10)
        self.socket.sendall(request)
        self.socket.setblocking(False)
        self.is_witness = is_witness
        self.decoder: Decoder | None = None
        self.head: bytes | None = b""


class Streams:
    """All connections. Only while ``measuring``, bytes, events and delays are counted."""

    def __init__(self, port: int, requests: list[bytes], witness_step: int) -> None:
        self.port, self.requests, self.witness_step = port, requests, witness_step
        self.epoll = select.epoll()
        self.streams: dict[int, Stream] = {}
        self.opened = self.closed = self.bytes = self.events = 0
        self.delays: list[int] = []
        self.measuring = False

    def connect(self, seconds: float) -> None:
        """Open one stream for each request. Raises RuntimeError if that takes longer."""
        end = time.monotonic() + seconds
        waiting = list(enumerate(self.requests))
        while self.opened < len(self.requests):
            if time.monotonic() > end or self.closed:
                raise RuntimeError(f"{self.opened} of {len(self.requests)} streams opened, {self.closed} were closed")
            while waiting and len(self.streams) - self.opened < OPENING_AT_ONCE:
                number, request = waiting.pop()
                stream = Stream(self.port, request, is_witness=number % self.witness_step == 0)
                self.streams[stream.socket.fileno()] = stream
                self.epoll.register(stream.socket, select.EPOLLIN)
            self.poll(0.05)

    def run(self, seconds: float) -> float:
        """Read for ``seconds``. Return the actual duration."""
        start = time.monotonic()
        while time.monotonic() < start + seconds:
            self.poll(0.02)
        return time.monotonic() - start

    def poll(self, seconds: float) -> None:
        """Read what has arrived, first at the witnesses."""
        ready = [(number, self.streams[number]) for number, _ in self.epoll.poll(seconds)]
        for number, stream in sorted(ready, key=lambda one: not one[1].is_witness):
            self._read(number, stream)

    def _read(self, number: int, stream: Stream) -> None:
        try:
            data = stream.socket.recv(READ_BYTES)
        except BlockingIOError:
            return
        except ConnectionError:
            data = b""
        if not data:
            self.epoll.unregister(number)
            self.closed += 1
            return
        if stream.head is not None:
            data = self._open(stream, stream.head + data)
        self.bytes += len(data) * self.measuring
        if stream.decoder is not None:
            self._count(stream.decoder.feed(data))

    def _open(self, stream: Stream, data: bytes) -> bytes:
        head, end, body = data.partition(b"\r\n\r\n")
        if not end:
            stream.head = data
            return b""
        if b" 200 " not in head.split(b"\r\n", 1)[0]:
            raise RuntimeError(f"refused: {data[:300]!r}")
        stream.head = None
        self.opened += 1
        if stream.is_witness:
            stream.decoder = Decoder(gzip=b"content-encoding: gzip" in head.lower())
        return body

    def _count(self, messages: list[bytes]) -> None:
        now = time.monotonic_ns()
        for message in messages:
            _, mark, rest = message.partition(MARK)
            if mark and self.measuring:
                self.events += 1
                self.delays.append(now - int(rest[: rest.find(b"}")]))


def measure(options: argparse.Namespace) -> dict[str, float]:
    """Connect, warm up, measure, and return the figures. The events are those of the witnesses."""
    streams = Streams(options.port, requests_of(options.requests, options.port), options.witness_step)
    streams.connect(60)
    print("ready", file=sys.stderr, flush=True)
    streams.run(options.warmup)
    cpu, streams.measuring = cpu_seconds(options.pid), True
    seconds = streams.run(options.duration)
    cpu = cpu_seconds(options.pid) - cpu
    delays = sorted(streams.delays)
    share = sum(stream.is_witness for stream in streams.streams.values()) / len(streams.streams)
    deliveries = streams.events / share
    return {
        "seconds": seconds,
        "deliveries": deliveries,
        "bytes_per_delivery": streams.bytes / max(1.0, deliveries),
        "cpu_us_per_delivery": cpu / max(1.0, deliveries) * 1e6,
        "core_share": cpu / seconds,
        "p50_ms": quantile_ms(delays, 0.50),
        "p99_ms": quantile_ms(delays, 0.99),
    }


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("port", "pid", "witness-step"):
        parser.add_argument(f"--{name}", type=int, required=True)
    parser.add_argument("--requests", required=True, help="file with the requests, one a line")
    for name in ("duration", "warmup"):
        parser.add_argument(f"--{name}", type=float, required=True, help="seconds")
    print(json.dumps(measure(parser.parse_args())))


if __name__ == "__main__":
    main()
