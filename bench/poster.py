"""Posts over HTTP at a rate."""

import asyncio
import itertools
import json
import time
import uuid
from collections.abc import Awaitable, Callable
from typing import Any

from bench.lineup import message
from bench.site import Site

ATTEMPTS = 30
"""Most attempts for one post."""

PAUSE_SECONDS = 0.5
"""Seconds between attempts, for a Redis that restarts or a machine that is busy."""


class Connection:
    """One keep-alive connection. The client is as simple as possible, so that it uses little CPU time."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def post(self, token: str, number: int) -> None:
        """Create post ``number`` with the current time in it. Raises RuntimeError unless the server answers 201."""
        await self.send(token, {"message": message(number), "meta": {"t": time.monotonic_ns()}})

    async def send(self, token: str, status: dict[str, Any]) -> bytes:
        """Create a post and return the body of the answer. After a 503, try again with the same idempotency key.

        Raises RuntimeError unless the server answers 201.
        """
        body = json.dumps(status, separators=(",", ":"))
        head = (
            "POST /v1/statuses HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            f"Idempotency-Key: {uuid.uuid4().hex}\r\n"
            f"Authorization: Bearer {token}\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        for _ in range(ATTEMPTS):
            status_line, answer = await self._ask((head + body).encode())
            if b" 503 " not in status_line:
                break
            await asyncio.sleep(PAUSE_SECONDS)
        if b" 201 " not in status_line:
            raise RuntimeError(f"a post was refused: {answer[:300]!r}")
        return answer

    async def delete(self, token: str, status_id: str) -> bool:
        """Delete the user's status. Return False if the server failed and the status may still exist."""
        head = f"DELETE /v1/statuses/{status_id} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\r\n"
        status_line, _ = await self._ask(head.encode())
        return b" 204 " in status_line

    async def _ask(self, request: bytes) -> tuple[bytes, bytes]:
        self.writer.write(request)
        status_line, *rows = (await self.reader.readuntil(b"\r\n\r\n")).split(b"\r\n")
        length = next((row for row in rows if row.lower().startswith(b"content-length:")), b":0")
        return status_line, await self.reader.readexactly(int(length.split(b":")[1]))


async def steadily(site: Site, rate: float, done: asyncio.Event) -> int:
    """Post to the writer ``rate`` times a second until ``done`` is set. Return the number of posts."""
    start, numbers = time.monotonic(), itertools.count()
    authors = itertools.cycle(site.authors)

    async def hand(connection: Connection) -> None:
        while not done.is_set():
            number = next(numbers)
            await asyncio.sleep(max(0.0, start + number / rate - time.monotonic()))
            await connection.post(next(authors), number)

    await with_hands(site.address, 8, hand)
    return next(numbers)


async def with_hands(address: str, count: int, hand: Callable[[Connection], Awaitable[None]]) -> None:
    """Run ``hand`` ``count`` times at once, each with its own connection."""
    host, port = address.removeprefix("http://").split(":")
    connections = [Connection(*await asyncio.open_connection(host, int(port))) for _ in range(count)]
    try:
        await asyncio.gather(*(hand(connection) for connection in connections))
    finally:
        for connection in connections:
            connection.writer.close()
