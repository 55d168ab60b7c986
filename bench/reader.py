"""The clients in Python, for a machine without a C compiler. Options and output equal those of ``load.c``.

    python -m bench.reader streams|requests --port P --pid SERVER --requests FILE --conns N ...

The mark ``"t":<digits>`` identifies an event; the digits are the CLOCK_MONOTONIC nanoseconds of its post. If another
server opens a WebSocket (101), the mark is ``"time_us":<digits>``, microseconds of the wall clock, as Jetstream sends.

Python reads about 100,000 events a second, and sends about 20,000 requests. If this process is saturated, it measures
its own delay, and not that of the server.
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

WEBSOCKET_MARK = b'"time_us":'
"""The bytes before the time of an event in a WebSocket frame. The frames of a server are not masked."""

OWN_SERVER = b"Server: stream-server"
"""The header of our server, whose events have one mark in all framings."""

OPENING_AT_ONCE = 128
"""Connections that are opening at the same time."""

READ_BYTES = 1 << 18
"""Most bytes of one read."""

DIGITS = 19
"""Digits of a mark that the end of a read may cut."""

CONNECT_SECONDS = 60
"""Longest time in seconds until all connections are open."""


class Client:
    """One connection: its state, the next request, and the end of what it has read."""

    __slots__ = ("carry", "missing", "next", "open", "sent", "socket", "was_open")

    def __init__(self, port: int, first: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), 10)
        self.next = first
        self.open = self.was_open = False
        self.carry = b""
        self.missing = 0
        self.sent = 0

    def ask(self, requests: list[bytes], step: int) -> None:
        """Send the next request."""
        self.socket.setblocking(True)
        self.socket.sendall(requests[self.next % len(requests)])
        self.socket.setblocking(False)
        self.sent, self.next, self.open = time.monotonic_ns(), self.next + step, False


class Clients:
    """All connections. ``count``, ``reads``, ``bytes`` and ``delays`` count only while ``measuring``."""

    def __init__(self, port: int, requests: list[bytes], conns: int, *, streaming: bool) -> None:
        self.port, self.requests, self.conns, self.streaming = port, requests, conns, streaming
        self.epoll = select.epoll()
        self.clients: dict[int, Client] = {}
        self.opened = self.closed = self.refused = 0
        self.count = self.reads = self.bytes = 0
        self.delays = array("q")
        self.measuring = False
        self.mark, self.ending, self.clock, self.nanoseconds = MARK, b"}", time.monotonic_ns, 1

    def connect(self) -> float:
        """Open all connections. Return the seconds it took."""
        start = time.monotonic()
        while self.opened + self.refused < self.conns and time.monotonic() < start + CONNECT_SECONDS:
            while len(self.clients) < self.conns and len(self.clients) - self.opened < OPENING_AT_ONCE:
                self._start()
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

    def _start(self) -> None:
        client = Client(self.port, len(self.clients))
        self.clients[client.socket.fileno()] = client
        client.ask(self.requests, self.conns)
        self.epoll.register(client.socket, select.EPOLLIN)

    def _read(self, number: int, client: Client) -> None:
        try:
            data = client.socket.recv(READ_BYTES)
        except BlockingIOError:
            return
        except ConnectionError:
            data = b""
        if self.measuring:
            self.reads, self.bytes = self.reads + 1, self.bytes + len(data)
        if not data:
            self.epoll.unregister(number)
            self.closed += 1
        elif not client.open:
            self._open(client, client.carry + data)
        else:
            self._body(client, data)

    def _open(self, client: Client, data: bytes) -> None:
        head, end, body = data.partition(b"\r\n\r\n")
        if not end:
            client.carry = data
            return
        accepted = head[9:10] == b"2" or head[9:12] == b"101"
        if head[9:12] == b"101" and OWN_SERVER not in head:
            self.mark, self.ending, self.clock, self.nanoseconds = WEBSOCKET_MARK, b",", time.time_ns, 1000
        self.refused += not accepted
        self.opened += not client.was_open and accepted
        client.open = client.was_open = True
        client.carry = b""
        client.missing = _length(head)
        self._body(client, body)

    def _body(self, client: Client, data: bytes) -> None:
        if self.streaming:
            self._count(client, client.carry + data)
            return
        client.missing -= len(data)
        if client.missing <= 0:
            if self.measuring:
                self.count += 1
                self.delays.append(time.monotonic_ns() - client.sent)
            client.ask(self.requests, self.conns)

    def _count(self, client: Client, data: bytes) -> None:
        now = self.clock()
        first, *rest = data.split(self.mark)
        last = rest[-1] if rest else first
        # The end of a read may cut a mark. Its beginning waits for the next read.
        if rest and self.ending not in last[: DIGITS + 1]:
            client.carry = self.mark + rest.pop()
        else:
            client.carry = last[-len(self.mark) + 1 :]
        if self.measuring:
            self.count += len(rest)
            for part in rest:
                self.delays.append(now - self.nanoseconds * int(part[: part.find(self.ending)]))


def requests_of(path: str, port: int) -> list[bytes]:
    """Read requests from a file, one a line, in the format of `lineup`."""
    made = []
    with open(path, encoding="utf-8") as lines:  # noqa: PTH123 - a path from the command line
        for line in lines:
            start, *parts = line.rstrip("\n").split("\t")
            body = "".join(part[1:] for part in parts if part.startswith("@"))
            rows = [f"{start} HTTP/1.1", f"Host: 127.0.0.1:{port}", *(part for part in parts if part[:1] != "@")]
            if body:
                rows.append(f"Content-Length: {len(body.encode())}")
            made.append(("\r\n".join(rows) + f"\r\n\r\n{body}").encode())
    return made


def quantile_ms(delays: list[int], share: float) -> float:
    """Return the delay in ms that a ``share`` of the deliveries did not exceed."""
    return delays[int(share * (len(delays) - 1))] / 1e6 if delays else 0.0


def measure(options: argparse.Namespace) -> dict[str, float]:
    """Connect, stay idle, warm up, measure, and return the figures."""
    requests = requests_of(options.requests, options.port)
    clients = Clients(options.port, requests, options.conns, streaming=options.mode == "streams")
    before, opening, own = memory_kib(options.pid), cpu_seconds(options.pid), time.process_time()
    connecting = clients.connect()
    opening, own = cpu_seconds(options.pid) - opening, time.process_time() - own
    clients.run(options.settle)
    idle = memory_kib(options.pid)
    print(f"ready {clients.opened} of {options.conns}", file=sys.stderr, flush=True)
    clients.run(options.warmup)
    cpu, busy, clients.measuring = cpu_seconds(options.pid), time.process_time(), True
    seconds = clients.run(options.duration)
    cpu, busy, delays = cpu_seconds(options.pid) - cpu, time.process_time() - busy, sorted(clients.delays)
    return {
        "opened": clients.opened,
        "refused": clients.refused,
        "closed_early": clients.closed,
        "open_per_s": clients.opened / connecting,
        "open_cpu_s": opening,
        "open_client_share": own / connecting,
        "kib_per_idle_conn": (idle - before) / max(1, clients.opened),
        "seconds": seconds,
        "count": clients.count,
        "server_cpu_s": cpu,
        "p50_ms": quantile_ms(delays, 0.50),
        "p99_ms": quantile_ms(delays, 0.99),
        "joined": clients.count / max(1, clients.reads),
        "bytes": clients.bytes,
        "client_cpu_share": busy / seconds if options.duration else 0.0,
    }


def _length(head: bytes) -> int:
    rows = (row.partition(b":") for row in head.split(b"\r\n"))
    return next((int(value) for name, _, value in rows if name.lower() == b"content-length"), 0)


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("mode", choices=("streams", "requests"))
    for name in ("port", "conns", "pid"):
        parser.add_argument(f"--{name}", type=int, required=True)
    parser.add_argument("--requests", required=True, help="file with the requests, used in turn")
    for name in ("duration", "warmup", "settle"):
        parser.add_argument(f"--{name}", type=float, default=0.0, help="seconds")
    print(json.dumps(measure(parser.parse_args())))


if __name__ == "__main__":
    main()
