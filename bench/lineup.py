"""The measured servers: how each one starts, and the requests of its clients.

A request is a line of text: method and path separated by a blank, then headers, each after a tab. A last part that
begins with ``@`` is the body.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Literal, NamedTuple, Protocol
from urllib.parse import quote

from bench.process import end, first_core, pin, wait_for_line
from bench.site import Site

TOPICS = 10
"""Number of topics.

Each post has one topic and each tracking client waits for one, so it receives 10 % of the posts.
"""

HANDSHAKE = (
    "Connection: Upgrade\tUpgrade: websocket\tSec-WebSocket-Version: 13\tSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA=="
)
"""The headers that ask for a WebSocket."""

BODIES = 500
"""Number of different posts that the clients of the requests send in turn."""

Kind = Literal["firehose", "tracks"]
"""The posts that the clients receive: every post, or each client the posts of its own filter."""


class Running(NamedTuple):
    """A measured server: its only process and its port."""

    process: "subprocess.Popen[bytes]"
    port: int


class Server(Protocol):
    """A measured server. ``column`` names it in the results."""

    column: str
    site: Site

    def running(self) -> AbstractContextManager[Running]: ...

    def streams(self, kind: Kind, count: int) -> list[str]: ...


class StreamServer:
    """Our server, with one worker process, on the writer's Redis."""

    def __init__(self, site: Site, column: str = "ours") -> None:
        self.site = site
        self.column = column

    @contextmanager
    def running(self, port: int = 0) -> Iterator[Running]:
        """Start a fresh server on the first core, and stop it at the end."""
        process, address = self.site.serve("measured", "--redis", f"unix://{self.site.redis_socket}", port=port)
        yield from _kept(process, address)

    def streams(self, kind: Kind, count: int) -> list[str]:
        """Return the requests of ``count`` clients that share one token."""
        token = self.site.token(self.site.admin, "stream firehose")
        return [_stream(kind, n, token) for n in range(count)]

    def openings(self, count: int) -> list[tuple[str, list[str]]]:
        """Return the requests whose connects are measured, by name."""
        tokens = [self.site.token(uid, "stream firehose") for uid in self.site.users("listener", count)]
        different = [_stream("tracks", n, token) for n, token in enumerate(tokens)]
        alike = self.streams("firehose", count)
        return [("different", different), ("different again", different), ("one token", alike)]

    def calls(self) -> dict[str, list[str]]:
        """Return the requests whose rate is measured, by name."""
        readers = [self.site.token(uid, "read") for uid in self.site.readers]
        return {
            "me": [f"GET /v1/users/me\tAuthorization: Bearer {token}" for token in readers],
            "home": [f"GET /v1/timelines/home?count=30\tAuthorization: Bearer {token}" for token in readers],
            "post": _posts("/v1/statuses", self.site.authors),
        }


class WebSocketServer(StreamServer):
    """Our server, whose clients receive the same messages over WebSocket."""

    def streams(self, kind: Kind, count: int) -> list[str]:
        """Return the handshakes of ``count`` clients that share one token."""
        return [f"{request}\t{HANDSHAKE}" for request in super().streams(kind, count)]


class SseServer(StreamServer):
    """Our server with Server-Sent Events, with which its WebSockets are compared."""

    def __init__(self, site: Site) -> None:
        super().__init__(site, "sse")


class QueueServer:
    """An ordinary aiohttp server, with a queue for each client."""

    column = "queue"

    def __init__(self, site: Site) -> None:
        self.site = site

    @contextmanager
    def running(self) -> Iterator[Running]:
        """Start a fresh server on the first core, and stop it at the end."""
        command = [sys.executable, "-m", "bench.queue_server", "--socket", self.site.redis_socket]
        yield from _started(self.site, self.column, command)

    def streams(self, kind: Kind, count: int) -> list[str]:
        """Return the same clients' requests in the format of this server."""
        return [f"GET /sub?track={quote(track_of(n))}" if kind == "tracks" else "GET /sub" for n in range(count)]


class Floor:
    """The C program that does the least. With ``batch`` it joins the events of one read from Redis."""

    def __init__(self, site: Site, program: str, *, batch: bool = False) -> None:
        self.site = site
        self.column = "floor batch" if batch else "floor"
        self._command = [program, "--socket", site.redis_socket, *(["--batch"] if batch else [])]

    @contextmanager
    def running(self) -> Iterator[Running]:
        """Start it on the first core, and stop it at the end."""
        yield from _started(self.site, "floor", self._command)

    def streams(self, kind: Kind, count: int) -> list[str]:
        """Return the same clients' requests. The floor reads only the topic in them."""
        return [f"GET /{track_of(n)}" if kind == "tracks" else "GET /" for n in range(count)]


class BareServer:
    """An aiohttp server that does nothing else than the protocol."""

    column = "bare"

    def __init__(self, site: Site) -> None:
        self.site = site

    @contextmanager
    def running(self) -> Iterator[Running]:
        """Start a fresh server on the first core, and stop it at the end."""
        yield from _started(self.site, self.column, [sys.executable, "-m", "bench.bare_server"])

    def streams(self, kind: Kind, count: int) -> list[str]:
        """Return requests of the same length as those of our server."""
        token = self.site.token(self.site.admin, "stream firehose")
        return [_stream(kind, n, token).replace("/v1/stream", "/stream", 1) for n in range(count)]

    def openings(self, count: int) -> list[tuple[str, list[str]]]:
        """Return the requests whose connects are measured, by name."""
        return [("bare", self.streams("tracks", count))]

    def calls(self) -> dict[str, list[str]]:
        """Return the requests whose rate is measured, by name."""
        return {"echo": _posts("/echo", self.site.authors)}


def track_of(number: int) -> str:
    """Return a track parameter: one topic of the posts, and a word that only this client uses."""
    return f"topic{number % TOPICS},nobody{number}says"


def message(number: int) -> str:
    """Return a post of usual length about one topic, with a tag, a mention and a link."""
    return (
        f"topic{number % TOPICS} is what everyone at the gate talks about while they wait for flight {number} to "
        f"board, says @author{number % 7} #delayed http://example.com/flights/{number}"
    )


def _stream(kind: Kind, number: int, token: str) -> str:
    query = f"track={quote(track_of(number))}" if kind == "tracks" else "firehose=true"
    return f"GET /v1/stream?{query}\tAccept: text/event-stream\tAuthorization: Bearer {token}"


def _posts(path: str, tokens: list[str]) -> list[str]:
    """Return requests that post, each with one of the tokens in turn."""
    bodies = (json.dumps({"message": message(n), "meta": {"t": n}}, separators=(",", ":")) for n in range(BODIES))
    return [
        f"POST {path}\tContent-Type: application/json\tAuthorization: Bearer {tokens[n % len(tokens)]}\t@{body}"
        for n, body in enumerate(bodies)
    ]


def _started(site: Site, name: str, command: list[str]) -> Iterator[Running]:
    process = site.start(name, command)
    address = wait_for_line(site.folder / f"{name}.out", "listening on ", process)
    yield from _kept(process, address)


def _kept(process: "subprocess.Popen[bytes]", address: str) -> Iterator[Running]:
    try:
        pin(process.pid, first_core())
        yield Running(process, int(address.rpartition(":")[2]))
    finally:
        end(process)
