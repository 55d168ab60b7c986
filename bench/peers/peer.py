"""The interface that the benchmark needs of a peer, and the events that peers get over HTTP."""

import asyncio
import itertools
import json
import time
import urllib.request
from typing import Any, ClassVar

from bench.lineup import Kind, Running, Server, words_of
from bench.poster import Connection, message, with_hands
from bench.site import Site

HANDS = 8
"""Connections that send events in turn."""

LINES_AT_MOST = 100
"""Lines of the stream that may come before the event."""


class Peer(Server):
    """A server that streams events to clients.

    Attributes:
        column: The title of its column.
        clients: The protocol of its clients.
        chooses: How a client chooses what it receives, for each kind that the peer can do.
        settings: One sentence on its configuration, for the notes below the table.
    """

    column: str
    clients: ClassVar[str] = "SSE"
    chooses: ClassVar[dict[Kind, str]]
    settings: ClassVar[str]

    def version(self) -> str:
        """Return the version that the program tells."""
        raise NotImplementedError


class Event:
    """Makes events that equal those of this server in size and form. They carry the time of their post."""

    def __init__(self, sent: dict[str, Any]) -> None:
        self._sent = sent

    def number(self, number: int) -> bytes:
        """Return event ``number`` with the present time."""
        status = self._sent["status"]
        status["message"], status["meta"] = message(number), {"t": time.monotonic_ns()}
        return json.dumps(self._sent, separators=(",", ":")).encode()


class HttpPeer(Peer):
    """A peer that gets each event by a POST."""

    chooses: ClassVar = {"firehose": "one channel", "topic": "one channel of ten"}

    def __init__(self, site: Site, event: Event) -> None:
        super().__init__(site)
        self.event = event

    def publication(self, channel: str, event: bytes) -> tuple[str, bytes, str]:
        """Return path, body and headers of the request that publishes an event. Each header ends a line."""
        raise NotImplementedError

    async def feed(self, running: Running, kind: Kind, rate: float, done: asyncio.Event) -> None:
        """Publish events at a rate until ``done`` is set. Raises RuntimeError if one is refused."""
        start, numbers = time.monotonic(), itertools.count()

        async def hand(connection: Connection) -> None:
            while not done.is_set():
                number = next(numbers)
                await asyncio.sleep(max(0.0, start + number / rate - time.monotonic()))
                path, body, headers = self.publication(channel_of(kind, number), self.event.number(number))
                head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(body)}\r\n{headers}\r\n"
                status, answer = await connection.send_bytes(head.encode() + body)
                if status >= 300 or b'"error"' in answer:
                    raise RuntimeError(f"an event was refused: {status} {answer[:300]!r}")

        await with_hands(f"http://127.0.0.1:{running.port}", HANDS, hand)


def channel_of(kind: Kind, number: int) -> str:
    """Return the channel of event or client ``number``."""
    return words_of(kind, number) or "all"


def sampled(site: Site) -> Event:
    """Post once, and return what a stream of this server receives. Raises RuntimeError if it receives nothing."""
    headers = {
        "Accept": "text/event-stream",
        "Authorization": f"Bearer {site.token(site.admin, 'stream firehose')}",
    }
    request = urllib.request.Request(f"{site.address}/v1/stream?firehose=true", headers=headers)
    with urllib.request.urlopen(request, timeout=10) as stream:
        asyncio.run(with_hands(site.address, 1, lambda connection: connection.post(site.authors[0], 0)))
        for _ in range(LINES_AT_MOST):
            line = stream.readline()
            if line.startswith(b"data: ") and b'"t":' in line:
                return Event(json.loads(line.removeprefix(b"data: ")))
    raise RuntimeError("the stream did not receive the post")
