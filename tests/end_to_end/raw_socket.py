"""A WebSocket by hand: the handshake as bytes, then any bytes. For what no client library sends."""

import asyncio
import json
from typing import Any, Self

from websockets.frames import Opcode

from stream_server.web.websocket.frame_reader import Received
from tests.end_to_end.server import Server
from tests.waiting import PATIENCE

HANDSHAKE = (
    "GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: keep-alive, Upgrade\r\nUpgrade: WebSocket\r\n"
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n{more}\r\n"
)
ACCEPT = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
"""The answer to this key in RFC 6455 §1.3."""


class RawSocket:
    """One connection. ``head`` is the head of the answer."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self.head = ""

    @classmethod
    async def open(cls, server: Server, path: str, more: str = "", *, early: bytes = b"") -> Self:
        """Send the handshake and the ``early`` bytes in one write, and read the head of the answer."""
        host = server.address.removeprefix("http://")
        name, _, port = host.partition(":")
        made = cls(*await asyncio.open_connection(name, int(port)))
        made.writer.write(HANDSHAKE.format(path=path, host=host, more=more).encode() + early)
        made.head = (await made.reader.readuntil(b"\r\n\r\n")).decode()
        return made

    async def read(self, seconds: float = PATIENCE) -> Received:
        """Return the next frame of the server, which must be whole and unmasked."""
        async with asyncio.timeout(seconds):
            first, second = await self.reader.readexactly(2)
            assert first & 0xF0 == 0x80
            assert not second & 0x80
            size = {126: 2, 127: 8}.get(second, 0)
            length = int.from_bytes(await self.reader.readexactly(size)) if size else second
            payload = await self.reader.readexactly(length)
        opcode = Opcode(first & 0x0F)
        if opcode is Opcode.CLOSE:
            return Received(opcode, payload[2:], int.from_bytes(payload[:2]))
        return Received(opcode, payload)

    async def read_message(self) -> dict[str, Any]:
        """Return the next message that is no heartbeat."""
        while True:
            received = await self.read()
            assert received.opcode is Opcode.TEXT, received
            message: dict[str, Any] = json.loads(received.payload)
            if message["kind"] != "heartbeat":
                return message

    async def until_close(self) -> Received:
        """Skip messages up to the close frame."""
        while (received := await self.read()).opcode is not Opcode.CLOSE:
            pass
        return received

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.writer.close()
