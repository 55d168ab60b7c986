"""The clients: N streaming connections in one process with one epoll set.

The mark ``"t":<digits>`` identifies an event; the digits are the CLOCK_MONOTONIC nanoseconds of its post. Options and
output equal those of a load generator in C that can replace this program (see the README here).

Python reads about 100,000 events a second. If this process is saturated, the latency is its own.
"""

import argparse
import json
import select
import socket
import sys
import time
from array import array

from bench.process import cpu_seconds, memory_kib

MARK = b'"t":'
"""The bytes before the time of a post."""

OPENING_AT_ONCE = 128
"""Connections that are opening at the same time."""

READ_BYTES = 1 << 18
"""Most bytes of one read."""

DIGITS = 19
"""Digits of a mark that the end of a read may cut."""


class Client:
    """One connection: its state, and the end of what it has read."""

    __slots__ = ("carry", "open", "socket")

    def __init__(self, port: int, request: bytes) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), 10)
        self.socket.sendall(request)
        self.socket.setblocking(False)
        self.open = False
        self.carry = b""


class Clients:
    """All connections. ``events`` and ``delays`` count only while ``measuring``."""

    accepted = b" 200 "
    """The status of an answer that opens a stream."""

    def __init__(self, port: int, requests: list[bytes], count: int) -> None:
        self.port, self.requests, self.count = port, requests, count
        self.epoll = select.epoll()
        self.clients: dict[int, Client] = {}
        self.opened = self.closed = self.refused = 0
        self.events = 0
        self.delays = array("q")
        self.measuring = False

    def connect(self, seconds: float) -> float:
        """Open all connections. Return the seconds it took."""
        start = time.monotonic()
        while self.opened + self.refused < self.count and time.monotonic() < start + seconds:
            while len(self.clients) < self.count and len(self.clients) - self.opened < OPENING_AT_ONCE:
                self._start(self.requests[len(self.clients) % len(self.requests)])
            self.poll(0.05)
        return time.monotonic() - start

    def run(self, seconds: float) -> float:
        """Read for ``seconds``. Return the actual duration."""
        start = time.monotonic()
        while time.monotonic() < start + seconds:
            self.poll(0.02)
        return time.monotonic() - start

    def poll(self, seconds: float) -> None:
        """Read what has arrived."""
        for number, _ in self.epoll.poll(seconds):
            self._read(number, self.clients[number])

    def _start(self, request: bytes) -> None:
        client = Client(self.port, request)
        self.clients[client.socket.fileno()] = client
        self.epoll.register(client.socket, select.EPOLLIN)

    def _read(self, number: int, client: Client) -> None:
        try:
            data = client.socket.recv(READ_BYTES)
        except BlockingIOError:
            return
        except ConnectionError:
            data = b""
        if not data:
            self.epoll.unregister(number)
            self.closed += 1
        elif client.open:
            self._count(client, client.carry + data)
        else:
            self._open(client, client.carry + data)

    def _open(self, client: Client, data: bytes) -> None:
        head, end, body = data.partition(b"\r\n\r\n")
        if not end:
            client.carry = data
        elif self.accepted in head.split(b"\r\n", 1)[0]:
            client.open, self.opened = True, self.opened + 1
            self._count(client, body)
        else:
            self.refused += 1

    def _count(self, client: Client, data: bytes) -> None:
        now = time.monotonic_ns()
        first, *rest = data.split(MARK)
        last = rest[-1] if rest else first
        # The end of a read may cut a mark. Its beginning waits for the next read.
        if rest and last[:DIGITS].isdigit():
            client.carry = MARK + rest.pop()
        else:
            client.carry = last[-len(MARK) + 1 :]
        if self.measuring:
            self.events += len(rest)
            for part in rest:
                self.delays.append(now - int(part[: part.find(b"}")]))


def requests_of(path: str, port: int) -> list[bytes]:
    """Read requests from a file, one a line: the path, then headers, separated by tabs."""
    made = []
    with open(path, encoding="utf-8") as lines:  # noqa: PTH123 - a path from the command line
        for line in lines:
            target, *headers = line.rstrip("\n").split("\t")
            rows = [f"GET {target} HTTP/1.1", f"Host: 127.0.0.1:{port}", *headers]
            made.append(("\r\n".join(rows) + "\r\n\r\n").encode())
    return made


def quantile_ms(delays: list[int], share: float) -> float:
    """Return the delay in ms that a ``share`` of the deliveries did not exceed."""
    return delays[int(share * (len(delays) - 1))] / 1e6 if delays else 0.0


def measure(options: argparse.Namespace, kind: type[Clients]) -> dict[str, float]:
    """Connect, stay idle, warm up, measure, and return the figures."""
    clients = kind(options.port, requests_of(options.requests, options.port), options.conns)
    before = memory_kib(options.pid)
    opening = clients.connect(60)
    clients.run(options.settle)
    idle = memory_kib(options.pid)
    print(f"ready {clients.opened} of {options.conns}", file=sys.stderr, flush=True)
    clients.run(options.warmup)
    cpu, clients.measuring = cpu_seconds(options.pid), True
    seconds = clients.run(options.duration)
    cpu, delays = cpu_seconds(options.pid) - cpu, sorted(clients.delays)
    return {
        "opened": clients.opened,
        "bad_status": clients.refused,
        "closed_early": clients.closed,
        "open_per_s": clients.opened / opening,
        "kib_per_idle_conn": (idle - before) / max(1, clients.opened),
        "seconds": seconds,
        "deliveries": clients.events,
        "deliveries_per_s": clients.events / seconds if seconds else 0.0,
        "server_cpu_s": cpu,
        "deliveries_per_server_cpu_s": clients.events / cpu if cpu else 0.0,
        "p50_ms": quantile_ms(delays, 0.50),
        "p99_ms": quantile_ms(delays, 0.99),
    }


def main(kind: type[Clients] = Clients) -> None:
    """Run the command with this kind of clients."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("port", "conns", "pid"):
        parser.add_argument(f"--{name}", type=int, required=True)
    parser.add_argument("--requests", required=True, help="file with the requests, used in turn")
    for name in ("duration", "warmup", "settle"):
        parser.add_argument(f"--{name}", type=float, required=True, help="seconds")
    print(json.dumps(measure(parser.parse_args(), kind)))


if __name__ == "__main__":
    main()
