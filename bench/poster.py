"""Posts over HTTP: at a rate, or as fast as they are answered."""

import asyncio
import itertools
import json
import time
from collections.abc import Awaitable, Callable

from bench.lineup import message
from bench.site import Site


class Connection:
    """One kept-alive connection; the plainest client that there can be, so that little is spent here."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def post(self, token: str, number: int) -> None:
        """Post number so-and-so, with the time in it; raises RuntimeError unless it is created."""
        body = json.dumps({"message": message(number), "meta": {"t": time.monotonic_ns()}}, separators=(",", ":"))
        head = (
            "POST /v1/statuses HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            f"Authorization: Bearer {token}\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        self.writer.write((head + body).encode())
        answer = await self.reader.readuntil(b"\r\n\r\n")
        length = next(row for row in answer.split(b"\r\n") if row.lower().startswith(b"content-length:"))
        said = await self.reader.readexactly(int(length.split(b":")[1]))
        if not answer.startswith(b"HTTP/1.1 201"):
            raise RuntimeError(f"a post was refused: {said[:300]!r}")


async def steadily(site: Site, rate: float, done: asyncio.Event) -> int:
    """Post to the writer ``rate`` times a second until ``done``; gives how many."""
    start, numbers = time.monotonic(), itertools.count()
    authors = itertools.cycle(site.authors)

    async def hand(connection: Connection) -> None:
        while not done.is_set():
            number = next(numbers)
            await asyncio.sleep(max(0.0, start + number / rate - time.monotonic()))
            await connection.post(next(authors), number)

    await _with_hands(site.address, 8, hand)
    return next(numbers)


async def saturated(site: Site, port: int, hands: int, seconds: float) -> float:
    """Posts per second of a server when ``hands`` clients each post as soon as they are answered."""
    end, numbers = time.monotonic() + seconds, itertools.count()
    authors = itertools.cycle(site.authors)

    async def hand(connection: Connection) -> None:
        while time.monotonic() < end:
            await connection.post(next(authors), next(numbers))

    start = time.monotonic()
    await _with_hands(f"http://127.0.0.1:{port}", hands, hand)
    return next(numbers) / (time.monotonic() - start)


async def _with_hands(address: str, count: int, hand: Callable[[Connection], Awaitable[None]]) -> None:
    host, port = address.removeprefix("http://").split(":")
    connections = [Connection(*await asyncio.open_connection(host, int(port))) for _ in range(count)]
    try:
        await asyncio.gather(*(hand(connection) for connection in connections))
    finally:
        for connection in connections:
            connection.writer.close()
