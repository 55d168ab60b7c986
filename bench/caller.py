"""One keep-alive connection that makes requests and counts their bytes, and a connection of a stream."""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

HANDS = 16
"""Connections that make requests at the same time."""

READ_BYTES = 1 << 16


class Traffic:
    """Bytes of requests and of answers, with their heads."""

    def __init__(self) -> None:
        self.sent = self.received = 0


class Caller:
    """One connection to a server. It makes one request at a time."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, traffic: Traffic) -> None:
        self._reader, self._writer, self._traffic = reader, writer, traffic

    async def call(self, token: str, method: str, path: str, body: object = None) -> Any:
        """Make a request and return the JSON of the answer. Raises RuntimeError if the answer is no 2xx."""
        data = b"" if body is None else json.dumps(body, separators=(",", ":")).encode()
        rows = [f"{method} {path} HTTP/1.1", "Host: localhost", f"Authorization: Bearer {token}"]
        if data:
            rows += ["Content-Type: application/json", f"Content-Length: {len(data)}"]
        request = "\r\n".join([*rows, "\r\n"]).encode() + data
        self._writer.write(request)
        head = await self._reader.readuntil(b"\r\n\r\n")
        lengths = [row for row in head.lower().split(b"\r\n") if row.startswith(b"content-length:")]
        answer = await self._reader.readexactly(int(lengths[0].split(b":")[1]) if lengths else 0)
        self._traffic.sent += len(request)
        self._traffic.received += len(head) + len(answer)
        if not head.startswith(b"HTTP/1.1 2"):
            raise RuntimeError(f"{method} {path} was refused: {head[:60]!r} {answer[:300]!r}")
        return json.loads(answer) if answer else None

    def close(self) -> None:
        """Close the connection."""
        self._writer.close()


async def in_turn(
    address: str, count: int, deed: Callable[[Caller, int], Awaitable[object]], hands: int = HANDS, rate: float = 0,
    due: Sequence[float] = (),
) -> Traffic:  # fmt: skip
    """Call ``deed`` with the numbers from 0 to ``count``, on several connections at once. Return the bytes.

    ``rate`` is the number of calls a second. ``due`` has the time of each call instead, in seconds from the start.
    Without both, each connection calls again as soon as it has its answer.
    """
    start = time.monotonic()
    traffic, numbers = Traffic(), iter(range(count))
    host, port = address.removeprefix("http://").split(":")

    async def hand(caller: Caller) -> None:
        for number in numbers:
            if due or rate:
                seconds = due[number] if due else number / rate
                await asyncio.sleep(max(0.0, start + seconds - time.monotonic()))
            await deed(caller, number)

    opened = [Caller(*await asyncio.open_connection(host, int(port)), traffic) for _ in range(min(hands, count))]
    try:
        await asyncio.gather(*(hand(caller) for caller in opened))
    finally:
        for caller in opened:
            caller.close()
    return traffic


class OpenStream:
    """One stream, whose bytes are read and counted. ``received`` are the bytes after the head."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.received = 0
        self._writer = writer
        self._reading = asyncio.create_task(self._read(reader))

    @classmethod
    async def open(cls, address: str, token: str, query: str) -> "OpenStream":
        """Open a stream. Raises RuntimeError if it is refused."""
        host, port = address.removeprefix("http://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(f"GET /v1/stream?{query} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\r\n".encode())
        head = await reader.readuntil(b"\r\n\r\n")
        if b" 200 " not in head.split(b"\r\n", 1)[0]:
            raise RuntimeError(f"the stream was refused: {head[:200]!r}")
        return cls(reader, writer)

    def close(self) -> None:
        """Close the connection."""
        self._reading.cancel()
        self._writer.close()

    async def _read(self, reader: asyncio.StreamReader) -> None:
        while data := await reader.read(READ_BYTES):
            self.received += len(data)
