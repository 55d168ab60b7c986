"""Thousands of streams of one server, over sockets that cost the test little."""

import asyncio
import json
from typing import Any, Self
from urllib.parse import urlsplit

from tests.waiting import PATIENCE

LAST_CHUNK = b"\r\n0\r\n\r\n"

AT_ONCE = 100
"""The most connection attempts at a time. More would only wait in the server's queue."""


class RawStream(asyncio.Protocol):
    """A connection that sends one request and keeps all bytes. ``reset`` is true if it did not end properly."""

    def __init__(self, request: bytes) -> None:
        self.received = bytearray()
        self.reset = False
        self.ended = asyncio.Event()
        self.began = asyncio.Event()
        self.transport: asyncio.Transport | None = None
        self._request = request

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        self.received += data
        if b'"hello"' in self.received:
            self.began.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self.reset = exc is not None
        self.ended.set()
        self.began.set()

    @property
    def whole(self) -> bool:
        return self.received.endswith(LAST_CHUNK) and not self.reset

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The messages of the stream, in either framing. No message of these tests is split."""
        return [
            json.loads(line.removeprefix(b"data: "))
            for line in bytes(self.received).split(b"\n")
            if line.startswith((b"{", b"data: {"))
        ]

    @property
    def retry_ms(self) -> int:
        return int(bytes(self.received).rpartition(b"retry: ")[2].partition(b"\n")[0])


class ManyStreams:
    """``count`` streams, half of them server-sent events. The connections are closed at the end."""

    def __init__(self, address: str, token: str, count: int, query: str) -> None:
        where = urlsplit(address)
        assert where.hostname is not None
        assert where.port is not None
        self._where = (where.hostname, where.port)
        told = {"Host": where.netloc, "Authorization": f"Bearer {token}"}
        self._head = f"GET /v1/stream?{query} HTTP/1.1\r\n"
        self._head += "".join(f"{name}: {value}\r\n" for name, value in told.items())
        self.sse = [self._stream("text/event-stream") for _ in range(count // 2)]
        self.lines = [self._stream("application/x-ndjson") for _ in range(count - count // 2)]

    def _stream(self, accept: str) -> RawStream:
        return RawStream(f"{self._head}Accept: {accept}\r\n\r\n".encode())

    @property
    def all(self) -> list[RawStream]:
        return [*self.sse, *self.lines]

    async def __aenter__(self) -> Self:
        turns = asyncio.Semaphore(AT_ONCE)
        async with asyncio.timeout(PATIENCE):
            await asyncio.gather(*(self._come(one, turns) for one in self.all))
        return self

    async def __aexit__(self, *_: object) -> None:
        for one in self.all:
            if one.transport is not None:
                one.transport.abort()

    async def ended(self, seconds: float = PATIENCE) -> None:
        async with asyncio.timeout(seconds):
            for one in self.all:
                await one.ended.wait()

    async def _come(self, one: RawStream, turns: asyncio.Semaphore) -> None:
        async with turns:
            loop = asyncio.get_running_loop()
            await loop.create_connection(lambda: one, *self._where)
            await one.began.wait()
        assert one.received.startswith(b"HTTP/1.1 200 "), bytes(one.received)
