"""The connection of an open stream: a small protocol that owns the transport, taken over from the HTTP server.

A waiting HTTP handler costs about 10 KiB for each connection (task, request, parser, headers), and most of it is not
needed again. So the HTTP server gives the transport away after the response head, and only this protocol remains.
"""

import asyncio
import socket
from collections.abc import Callable

from stream_server.web.http.tcp_peer import TcpPeer

LAST_CHUNK = b"0\r\n\r\n"
"""The empty chunk that ends a chunked body."""

HIGH_WATER_BYTES = 65_536
"""Unsent bytes at which catch-up waits for the client. Half of the client's buffer limit applies if that is less."""

LOW_WATER_SHARE = 0.75
"""Share of the high-water mark at which catch-up continues.

It is large, because the hub judges a slow client's progress by the bytes handed to its transport.
"""


class StreamConnection(asyncio.Protocol):
    """The socket of one stream, as the hub's ``Sink``.

    Attributes:
        write: The transport's own method, without a layer between, because it runs once per client and flush.
        buffered_bytes: The transport's own method: bytes that wait in this process.
        kernel_unacked_bytes: Bytes in the kernel's send buffer without acknowledgement; see :class:`TcpPeer`.
        peer_silent_seconds: Seconds without an acknowledgement while some is due; see :class:`TcpPeer`.
        on_lost: Called once when the connection is gone.
    """

    __slots__ = (
        "_chunked", "_full", "_peer", "_transport", "_waiter", "buffered_bytes",
        "kernel_unacked_bytes", "on_lost", "peer_silent_seconds", "write",
    )  # fmt: skip

    def __init__(
        self, transport: asyncio.Transport, *, chunked: bool, buffer_bytes: int, send_buffer_bytes: int
    ) -> None:
        """Take over ``transport`` and set its buffers.

        ``buffer_bytes`` is the hub's limit for bytes in this process. ``send_buffer_bytes`` sizes the kernel's send
        buffer, which Linux doubles for its own records. With 0 the system's size stays, and its bytes are not counted.
        """
        self.write = transport.write
        self.buffered_bytes = transport.get_write_buffer_size
        self._peer = TcpPeer(transport)
        self.kernel_unacked_bytes = self._peer.unacknowledged_bytes
        self.peer_silent_seconds = self._peer.silence_seconds
        self.on_lost: Callable[[], None] = _ignore_close
        self._transport = transport
        self._chunked = chunked
        self._full = False
        self._waiter: asyncio.Future[None] | None = None
        high = min(HIGH_WATER_BYTES, buffer_bytes // 2)
        transport.set_write_buffer_limits(high=high, low=int(high * LOW_WATER_SHARE))
        connection = transport.get_extra_info("socket")
        if send_buffer_bytes and connection is not None:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, send_buffer_bytes)

    def data_received(self, data: bytes) -> None:
        """Drop the data, because a client sends nothing on an open stream."""

    def connection_lost(self, exc: Exception | None) -> None:
        """Wake the waiting writer with an error, and call ``on_lost`` once.

        The callback is dropped afterwards, because it holds a reference to this connection.
        """
        self._peer.forget()
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_exception(exc or ConnectionResetError("the client left"))
        on_lost, self.on_lost = self.on_lost, _ignore_close
        on_lost()

    def pause_writing(self) -> None:
        """Note that the transport holds more than the high-water mark."""
        self._full = True

    def resume_writing(self) -> None:
        """Note that the transport holds less than the low-water mark, and wake the waiting writer."""
        self._full = False
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    @property
    def is_full(self) -> bool:
        """Whether the sink accepts no more bytes: the transport is above the high-water mark, or closing."""
        return self._full or self._transport.is_closing()

    async def wait_writable(self) -> None:
        """Wait until the transport accepts more bytes. Raises ConnectionError if the client has disconnected."""
        if self._transport.is_closing():
            raise ConnectionResetError
        if self._full:
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter

    def finish(self) -> None:
        """Send the end of the body after the bytes already written, then close the connection."""
        if self._chunked and not self._transport.is_closing():
            self._transport.write(LAST_CHUNK)
        self._transport.close()

    def abort(self) -> None:
        """Drop the connection at once, without sending what is still buffered."""
        self._transport.abort()


def _ignore_close() -> None:
    """Do nothing: the connection has no session yet, or no longer."""
