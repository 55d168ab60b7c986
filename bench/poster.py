"""Requests over keep-alive connections: at a rate, or each as soon as the one before it is answered."""

import asyncio
import itertools
import json
import time
import uuid
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from bench.site import Site

T = TypeVar("T")

TOPICS = 10
"""Number of topics. Each post has one, so a client that waits for one receives 10 % of the posts."""

HANDS = 16
"""Connections that make requests at the same time, unless another number is said."""

ATTEMPTS = 30
"""Most attempts for one post."""

PAUSE_SECONDS = 0.5
"""Seconds between attempts, for a Redis that restarts or a machine that is busy."""


def message(number: int) -> str:
    """Return a post of usual length about one topic, with a tag, a mention and a link."""
    return (
        f"topic{number % TOPICS} is what everyone at the gate talks about while they wait for flight {number} to "
        f"board, says @author{number % 7} #delayed http://example.com/flights/{number}"
    )


def track_of(number: int) -> str:
    """Return a track parameter: one topic of the posts, and a word that only this client uses."""
    return f"topic{number % TOPICS},nobody{number}says"


class Connection:
    """One keep-alive connection. The client is as simple as possible, so that it uses little CPU time.

    Attributes:
        received: Bytes of all answers, with their heads.
    """

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self.received = 0

    async def ask(self, method: str, path: str, token: str, body: object = None, more: str = "") -> tuple[int, bytes]:
        """Make a request and return status and body of the answer. ``more`` are further lines of the head."""
        data = b"" if body is None else json.dumps(body, separators=(",", ":")).encode()
        content = f"Content-Type: application/json\r\nContent-Length: {len(data)}\r\n" if data else ""
        head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n{content}{more}\r\n"
        return await self.send_bytes(head.encode() + data)

    async def send_bytes(self, request: bytes) -> tuple[int, bytes]:
        """Send a whole request and return status and body of the answer."""
        self.writer.write(request)
        answer = await self.reader.readuntil(b"\r\n\r\n")
        rows = answer.lower().split(b"\r\n")
        length = next((row for row in rows if row.startswith(b"content-length:")), b":0")
        content_bytes = await self.reader.readexactly(int(length.split(b":")[1]))
        self.received += len(answer) + len(content_bytes)
        return int(answer[9:12]), content_bytes

    async def call(self, method: str, path: str, token: str, body: object = None) -> Any:
        """Make a request and return the JSON of the answer. Raises RuntimeError if the answer is no 2xx."""
        status, answer = await self.ask(method, path, token, body)
        if status >= 300:
            raise RuntimeError(f"{method} {path} was refused: {status} {answer[:300]!r}")
        return json.loads(answer) if answer else None

    async def post(self, token: str, number: int) -> None:
        """Create post ``number`` with the current time in it. Raises RuntimeError unless the server answers 201."""
        await self.send(token, {"message": message(number), "meta": {"t": time.monotonic_ns()}})

    async def send(self, token: str, status: dict[str, Any]) -> str:
        """Create a post and return its id. After a 503, try again with the same idempotency key.

        Raises RuntimeError unless the server answers 201.
        """
        key = f"Idempotency-Key: {uuid.uuid4().hex}\r\n"
        for _ in range(ATTEMPTS):
            code, answer = await self.ask("POST", "/v1/statuses", token, status, key)
            if code != 503:
                break
            await asyncio.sleep(PAUSE_SECONDS)
        if code != 201:
            raise RuntimeError(f"a post was refused: {answer[:300]!r}")
        return str(json.loads(answer)["id"])


async def in_turn(
    address: str, count: int, deed: Callable[[Connection, int], Awaitable[object]], hands: int = HANDS
) -> int:
    """Call ``deed`` with the numbers from 0 to ``count`` on several connections. Return the bytes of the answers."""
    numbers = iter(range(count))

    async def hand(connection: Connection) -> int:
        for number in numbers:
            await deed(connection, number)
        return connection.received

    return sum(await with_hands(address, min(hands, count), hand))


async def steadily(
    address: str, rate: float, done: asyncio.Event, deed: Callable[[Connection, int], Awaitable[object]],
    hands: int = 8,
) -> None:  # fmt: skip
    """Call ``deed`` with the numbers from 0, ``rate`` times a second, on ``hands`` connections, until ``done``."""
    start, numbers = time.monotonic(), itertools.count()

    async def hand(connection: Connection) -> None:
        while not done.is_set():
            number = next(numbers)
            await asyncio.sleep(max(0.0, start + number / rate - time.monotonic()))
            await deed(connection, number)

    await with_hands(address, hands, hand)


async def post_steadily(site: Site, rate: float, done: asyncio.Event) -> None:
    """Post to the writer ``rate`` times a second until ``done`` is set, as all authors in turn."""
    authors = itertools.cycle(site.authors)
    await steadily(site.address, rate, done, lambda connection, number: connection.post(next(authors), number))


async def post_to_rooms(site: Site, rate: float, done: asyncio.Event) -> None:
    """Post ``rate`` times a second until ``done`` is set, as all authors in turn, each in a room of its own."""

    async def post(connection: Connection, number: int) -> None:
        room = number % len(site.authors)
        meta = {"t": time.monotonic_ns(), "room": room}
        await connection.send(site.authors[room], {"message": message(number), "meta": meta})

    await steadily(site.address, rate, done, post)


async def with_hands(address: str, count: int, hand: Callable[[Connection], Awaitable[T]]) -> list[T]:
    """Run ``hand`` ``count`` times at once, each with its own connection."""
    host, port = address.removeprefix("http://").split(":")
    connections = [Connection(*await asyncio.open_connection(host, int(port))) for _ in range(count)]
    try:
        return await asyncio.gather(*(hand(connection) for connection in connections))
    finally:
        for connection in connections:
            connection.writer.close()
