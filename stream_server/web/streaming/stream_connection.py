"""A stream's connection after its head was sent: the transport, taken over from the HTTP server.

A parked handler costs about 10 KiB a connection (task, request, parser, headers), most of it never looked at again.
So the HTTP server lets go of the transport once the head is out, and this protocol is all that is left of the request.
"""

import asyncio
import socket
from collections.abc import Callable

from stream_server.web.http.tcp_peer import TcpPeer

LAST_CHUNK = b"0\r\n\r\n"

HIGH_WATER_BYTES = 65_536
"""Unsent bytes at which catching up waits for the client; half of its bound, if that is less."""

LOW_WATER_SHARE = 0.75
"""It goes on soon after: how far a slow client has come is known by what it was given."""


class StreamConnection(asyncio.Protocol):
    """The socket of one stream, as the hub's ``Sink``.

    ``write`` and ``buffered_bytes`` are the transport's own methods, without a layer between: they run once per client
    and flush. ``kernel_unacked_bytes`` and ``peer_silent_seconds`` are the kernel's word (:class:`TcpPeer`). ``on_lost`` is called once, when the
    connection is gone.

    The kernel's part of a client's bytes is set to ``send_buffer_bytes`` (Linux takes twice that, for its own records;
    0 leaves what the system does, and nothing of it is counted); ours, ``buffer_bytes``, is the hub's to keep.
    """

    __slots__ = (
        "_chunked", "_full", "_peer", "_transport", "_waiter", "buffered_bytes", "kernel_unacked_bytes", "on_lost", "peer_silent_seconds", "write",
    )  # fmt: skip

    def __init__(
        self, transport: asyncio.Transport, *, chunked: bool, buffer_bytes: int, send_buffer_bytes: int
    ) -> None:
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
        """A client has nothing to say on a stream; what it says is dropped."""

    def connection_lost(self, exc: Exception | None) -> None:
        """The client left, or we let it go; who is told is let go of as well, since they hold this connection."""
        self._peer.forget()
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_exception(exc or ConnectionResetError("the client left"))
        on_lost, self.on_lost = self.on_lost, _ignore_close
        on_lost()

    def pause_writing(self) -> None:
        """The transport holds more than the high-water mark."""
        self._full = True

    def resume_writing(self) -> None:
        """The transport is nearly empty again."""
        self._full = False
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    @property
    def is_full(self) -> bool:
        """Whether there is no room, or nobody who takes anything."""
        return self._full or self._transport.is_closing()

    async def wait_writable(self) -> None:
        """Wait until the transport takes more; raises ConnectionError if the client left."""
        if self._transport.is_closing():
            raise ConnectionResetError
        if self._full:
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter

    def finish(self) -> None:
        """End the body after what was handed over, and the connection with it."""
        if self._chunked and not self._transport.is_closing():
            self._transport.write(LAST_CHUNK)
        self._transport.close()

    def abort(self) -> None:
        """Drop the connection at once."""
        self._transport.abort()


def _ignore_close() -> None:
    """Nobody waits for this connection's end yet."""
