"""A stream's socket: live frames go straight to the transport, catching up waits for room."""

import asyncio
import socket

from aiohttp import web
from aiohttp.abc import AbstractStreamWriter


class TransportSink:
    """The socket of one prepared response.

    ``write`` and ``backlog`` are the transport's own methods, without a layer between: they run once per
    client and flush. Both ways write whole chunks, so they may take turns.
    """

    def __init__(self, transport: asyncio.Transport, writer: AbstractStreamWriter) -> None:
        self.write = transport.write
        self.backlog = transport.get_write_buffer_size
        self.abort = transport.abort
        self._transport = transport
        self._writer = writer

    async def send(self, data: bytes) -> None:
        """Write one chunk and wait until the transport is below its high-water mark."""
        if self._transport.is_closing():
            raise ConnectionResetError
        await self._writer.write(data)
        await self._writer.drain()


async def prepare(request: web.Request, response: web.StreamResponse, send_buffer_bytes: int) -> TransportSink:
    """Get the response ready and bound the kernel's buffer; raises ConnectionResetError if the client left."""
    writer = await response.prepare(request)
    transport = request.transport
    if transport is None or writer is None:
        raise ConnectionResetError
    connection = transport.get_extra_info("socket")
    if send_buffer_bytes and connection is not None:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, send_buffer_bytes)
    return TransportSink(transport, writer)
