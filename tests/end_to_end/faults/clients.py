"""HTTP clients over their own sockets. They do what no library does: stall, drip, reset, vanish, stop half-way."""

import asyncio
import ctypes
import socket
import struct
from contextlib import suppress
from typing import Self
from urllib.parse import urlsplit

from tests.waiting import PATIENCE

ATTACH_FILTER = 26
"""SO_ATTACH_FILTER of Linux (asm-generic/socket.h). The socket module has no name for it."""

RETURN_CONSTANT = 0x06
"""The instruction BPF_RET | BPF_K: the number of bytes to keep of a packet. 0 drops it before TCP sees it."""


class RawClient:
    """One connection, made by :meth:`connect`. It sends and receives bytes only when a test calls a method.

    A client that sends a request and calls no read method is a client that never reads. The kernel then accepts up to
    ``receive_bytes`` for it. ``received`` counts the bytes that were read.
    """

    def __init__(self, connection: socket.socket) -> None:
        self.socket = connection
        self.received = 0
        self._host = "{}:{}".format(*connection.getpeername())
        self._dripping: asyncio.Task[None] | None = None

    @classmethod
    async def connect(cls, address: str, *, receive_bytes: int = 0) -> Self:
        """Connect to ``address`` (http://host:port). ``receive_bytes`` sizes the receive buffer, 0 is the default."""
        where = urlsplit(address)
        assert where.hostname is not None
        connection = socket.socket()
        connection.setblocking(False)
        if receive_bytes:  # before connecting, because the handshake fixes the window
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        await asyncio.get_running_loop().sock_connect(connection, (where.hostname, where.port))
        return cls(connection)

    async def ask(self, path: str, token: str, accept: str = "application/x-ndjson") -> None:
        await self.send(self._head(path, token, accept) + b"\r\n")

    async def half_ask(self, path: str, token: str = "") -> None:
        """Send a request head that stops in the middle of a header."""
        await self.send(self._head(path, token, "*/*") + b"X-Unfinis")

    async def send(self, data: bytes) -> None:
        await asyncio.get_running_loop().sock_sendall(self.socket, data)

    async def read(self, most: int = 65_536) -> bytes:
        """Return the next bytes, empty at the end. Raises ConnectionResetError after a reset."""
        data = await asyncio.get_running_loop().sock_recv(self.socket, most)
        self.received += len(data)
        return data

    async def read_until(self, mark: bytes, seconds: float = PATIENCE) -> bytes:
        """Read until ``mark`` and return all of it. Raises AssertionError if the connection ends before that."""
        came = b""
        async with asyncio.timeout(seconds):
            while mark not in came:
                data = await self.read()
                assert data, f"the connection ended after {came[-500:]!r}"
                came += data
        return came

    async def read_to_end(self, seconds: float = PATIENCE) -> bytes:
        """Read until the other side closes or resets the connection."""
        came = b""
        with suppress(ConnectionError):
            async with asyncio.timeout(seconds):
                while data := await self.read():
                    came += data
        return came

    def drip(self, seconds: float = 1.0) -> None:
        """Read one byte every ``seconds`` until the end or :meth:`close`."""
        self._dripping = asyncio.create_task(self._drip(seconds))

    def reset(self) -> None:
        """Close with an RST, which discards all bytes that are on their way."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close()

    def vanish(self) -> None:
        """Become a half-open connection, as if the cable were cut: acknowledge nothing, and tell the peer nothing.

        The socket must stay open, because closing it would send a FIN. This works on Linux only and needs no privilege.
        """
        instruction = ctypes.create_string_buffer(struct.pack("HBBI", RETURN_CONSTANT, 0, 0, 0))
        # `struct sock_fprog`: the number of instructions, and where they are.
        program = struct.pack("HL", 1, ctypes.addressof(instruction))
        self.socket.setsockopt(socket.SOL_SOCKET, ATTACH_FILTER, program)

    def close(self) -> None:
        if self._dripping is not None:
            self._dripping.cancel()
        self.socket.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()
        if self._dripping is not None:
            await asyncio.wait({self._dripping})

    async def _drip(self, seconds: float) -> None:
        with suppress(ConnectionError):
            while await self.read(1):  # noqa: ASYNC110 - the slow pace is the fault
                await asyncio.sleep(seconds)

    def _head(self, path: str, token: str, accept: str) -> bytes:
        lines = [f"GET {path} HTTP/1.1", f"Host: {self._host}", f"Accept: {accept}"]
        if token:
            lines.append(f"Authorization: Bearer {token}")
        return "".join(f"{line}\r\n" for line in lines).encode()


class TcpInfo:
    """The kernel's figures for this end of a connection (TCP_INFO of Linux)."""

    def __init__(self, connection: socket.socket) -> None:
        told = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104)
        self.unacknowledged: int = struct.unpack_from("I", told, 24)[0]
        """Sent segments without an acknowledgement."""
        self.retransmitted: int = struct.unpack_from("I", told, 100)[0]
        """Retransmitted segments since the start of the connection."""
