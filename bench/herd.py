"""The crowd's clients in one process: thousands of streams in one epoll set, controlled by lines on standard input.

    python -m bench.herd --source ADDRESS --port PORT --requests FILE

Each command is a line of JSON, ``{"do": …}``, and gets one line of JSON as an answer.

``open``     connect the clients from ``first`` to ``last``, ``at_once`` of them at a time; those that were connected
             before send their cursor
``drop``     close all connections without notice
``figures``  what was delivered since the last ``figures``, and with what delay
``tally``    what each client has received so far: [count, sum of the squares of the posts' numbers]

A client remembers only the cursor of the last complete message, as a real client does. The server sends again what
came after it.
"""

import argparse
import errno
import json
import os
import re
import resource
import select
import socket
import sys
import time
from array import array
from collections import Counter, deque
from pathlib import Path
from typing import Any

BIND_WITHOUT_PORT = 24
"""IP_BIND_ADDRESS_NO_PORT of Linux: the port is chosen at the connect, so it may serve several servers."""

QUANTILES = 1000
"""The delays are told as this many quantiles and the greatest, so that those of several processes can be joined."""

READ_BYTES = 1 << 18
"""Most bytes of one read."""

AGAIN_SECONDS = 0.2
"""Seconds until a failed connect is repeated."""

MESSAGE = re.compile(rb'\{"kind":"(\w+)","cursor":"(\d+-\d+\.(\d+))"')
MARK = re.compile(rb'"t":(\d+),"k":(\d+)\}')


class Client:
    """One client: its request, its state, and what it has received."""

    __slots__ = ("carry", "count", "cursor", "n", "number", "open", "request", "socket", "squares")

    def __init__(self, number: int, request: bytes) -> None:
        self.number = number
        self.request = request
        self.socket: socket.socket | None = None
        self.open = False
        self.carry = self.cursor = b""
        self.n = self.count = self.squares = 0


class Herd:
    """All clients of the process.

    Attributes:
        seen: Number of messages by kind, without posts.
        wrong: Number of errors by kind.
    """

    def __init__(self, source: str, port: int, requests: list[bytes]) -> None:
        self.source, self.address = (source, 0), ("127.0.0.1", port)
        self.clients = [Client(number, request) for number, request in enumerate(requests)]
        self.by_file: dict[int, Client] = {}
        self.epoll = select.epoll()
        self.waiting: deque[Client] = deque()
        self.again: deque[tuple[float, Client]] = deque()
        self.at_once = self.under_way = self.opened = 0
        self.seen: Counter[str] = Counter()
        self.wrong: Counter[str] = Counter(cut=0, refused=0, failed=0, double=0, broken=0)
        self.delays = array("q")

    # Connecting and disconnecting.

    def open(self, first: int, last: int, at_once: int) -> None:
        """Start to connect clients. :meth:`step` continues it."""
        self.waiting.extend(self.clients[first:last])
        self.at_once = at_once

    @property
    def opening(self) -> bool:
        """Whether some clients are not connected yet."""
        return bool(self.waiting or self.again or self.under_way)

    def drop(self) -> None:
        """Close all connections at once, without reading what is pending."""
        for client in self.by_file.values():
            assert client.socket is not None
            client.socket.close()
            client.socket, client.open, client.carry = None, False, b""
        self.by_file.clear()
        self.opened = 0

    def step(self, seconds: float) -> None:
        """Do one round of work: start connects that are due, and read what has arrived."""
        now = time.monotonic()
        while self.again and self.again[0][0] <= now:
            self.waiting.append(self.again.popleft()[1])
        while self.waiting and self.under_way < self.at_once:
            self._connect(self.waiting.popleft())
        for number, events in self.epoll.poll(seconds):
            client = self.by_file.get(number)
            if client is not None and events & select.EPOLLOUT:
                self._ask(client)
            elif client is not None:
                self._read(client)

    def _connect(self, client: Client) -> None:
        client.socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        client.socket.setsockopt(socket.IPPROTO_IP, BIND_WITHOUT_PORT, 1)
        client.socket.bind(self.source)
        self.by_file[client.socket.fileno()] = client
        self.under_way += 1
        if client.socket.connect_ex(self.address) in {0, errno.EINPROGRESS}:
            self.epoll.register(client.socket, select.EPOLLOUT)
        else:
            self._lose(client, "failed")

    def _ask(self, client: Client) -> None:
        assert client.socket is not None
        if client.socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            self._lose(client, "failed")
            return
        since = b"&since=" + client.cursor if client.cursor else b""
        client.socket.send(client.request.replace(b" HTTP/1.1", since + b" HTTP/1.1", 1))
        self.epoll.modify(client.socket, select.EPOLLIN)

    def _lose(self, client: Client, why: str) -> None:
        """Handle a lost connection. A client that was still connecting tries again soon."""
        assert client.socket is not None
        self.wrong[why] += 1
        del self.by_file[client.socket.fileno()]
        client.socket.close()
        client.socket = None
        if client.open:
            client.open, self.opened = False, self.opened - 1
        else:
            self.under_way -= 1
            self.again.append((time.monotonic() + AGAIN_SECONDS, client))
        client.carry = b""

    # Reading.

    def _read(self, client: Client) -> None:
        assert client.socket is not None
        try:
            data = client.socket.recv(READ_BYTES)
        except BlockingIOError:
            return
        except ConnectionError:
            data = b""
        if not data:
            self._lose(client, "cut" if client.open else "failed")
        elif client.open:
            self._lines(client, data)
        else:
            self._head(client, client.carry + data)

    def _head(self, client: Client, data: bytes) -> None:
        head, end, rest = data.partition(b"\r\n\r\n")
        if not end:
            client.carry = data
        elif b" 200 " in head.split(b"\r\n", 1)[0]:
            client.open, client.carry = True, b""
            self.opened += 1
            self.under_way -= 1
            self._lines(client, rest)
        else:
            self._lose(client, "refused")

    def _lines(self, client: Client, data: bytes) -> None:
        """Split the data into lines. Messages are whole lines; lines with chunk sizes are skipped."""
        now = time.monotonic_ns()
        lines = (client.carry + data).split(b"\n")
        client.carry = lines.pop()
        for line in lines:
            if line.startswith(b"{"):
                self._message(client, line, now)

    def _message(self, client: Client, line: bytes, now: int) -> None:
        said = MESSAGE.match(line)
        if said is None or not line.endswith(b"}"):
            self.wrong["broken"] += 1
            return
        kind, n = said[1], int(said[3])
        client.cursor = said[2]
        if kind != b"post":
            self.seen[kind.decode()] += 1
            return
        mark = MARK.search(line, line.rfind(b'"meta":'))
        if mark is None or n <= client.n:
            self.wrong["double" if mark else "broken"] += 1
            return
        client.n = n
        number = int(mark[2])
        client.count += 1
        client.squares += number * number
        self.delays.append(now - int(mark[1]))

    # Answers.

    def figures(self) -> dict[str, Any]:
        """Return what was delivered since the last call, and all errors so far."""
        delays = sorted(self.delays)
        self.delays = array("q")
        late = [delays[(len(delays) - 1) * at // QUANTILES] for at in range(QUANTILES + 1)] if delays else []
        used = resource.getrusage(resource.RUSAGE_SELF)
        return {
            "late": late, "deliveries": len(delays), "seen": dict(self.seen), "wrong": dict(self.wrong),
            "opened": self.opened, "cpu_s": used.ru_utime + used.ru_stime,
        }  # fmt: skip

    def tally(self) -> list[tuple[int, int]]:
        """Return what each client has received: the count, and the sum of the squares of the posts' numbers."""
        return [(client.count, client.squares) for client in self.clients]


class Orders:
    """Reads commands from standard input and answers them."""

    def __init__(self, herd: Herd) -> None:
        self.herd = herd
        self.began: float | None = None
        self._rest = b""

    def run(self) -> None:
        """Work until standard input ends."""
        poller = select.poll()
        poller.register(sys.stdin.fileno(), select.POLLIN)
        while True:
            self.herd.step(0.005)
            self._tell_opening()
            if poller.poll(0) and not self._obey():
                return

    def _obey(self) -> bool:
        data = os.read(sys.stdin.fileno(), 65536)  # a buffered read would wait for more input
        if not data:
            return False
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._do(json.loads(line))
        return True

    def _do(self, order: dict[str, Any]) -> None:
        if order["do"] == "open":
            self.began = time.monotonic()
            self.herd.open(order["first"], order["last"], order["at_once"])
        elif order["do"] == "drop":
            self.herd.drop()
            _say({"dropped": True})
        elif order["do"] == "figures":
            _say(self.herd.figures())
        else:
            _say({"tally": self.herd.tally()})

    def _tell_opening(self) -> None:
        if self.began is not None and not self.herd.opening:
            _say({"opened": self.herd.opened, "seconds": time.monotonic() - self.began})
            self.began = None


def requests_of(path: str, port: int) -> list[bytes]:
    """Read requests from a file, one a line: method and path, then headers, each after a tab."""
    rows = [line.split("\t") for line in Path(path).read_text(encoding="utf-8").splitlines()]
    host = f"Host: 127.0.0.1:{port}"
    return [("\r\n".join([f"{start} HTTP/1.1", host, *more]) + "\r\n\r\n").encode() for start, *more in rows]


def _say(message: dict[str, Any]) -> None:
    print(json.dumps(message), flush=True)


def main() -> None:
    """Run the process."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--source", required=True, help="address from which the clients come")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--requests", required=True, help="file with the requests, one a client")
    options = parser.parse_args()
    Orders(Herd(options.source, options.port, requests_of(options.requests, options.port))).run()


if __name__ == "__main__":
    main()
