"""The connection of an open stream: a small asyncio protocol that takes the transport over from the HTTP server.

A waiting HTTP handler costs about 10 KiB for each connection (task, request, parser, headers), and most of it is not
needed again. So the HTTP server gives the transport away after the response head, and only this protocol remains.
"""

import asyncio
from typing import Protocol

from stream_server.hub.client import NO_DESCRIPTOR, Outlet
from stream_server.hub.disconnect import DisconnectReason
from stream_server.runtime.event_loop import TurnQueue
from stream_server.web.http.connection_timeouts import LOST_PEER, TcpPeer

LAST_CHUNK = b"0\r\n\r\n"
HIGH_WATER_BYTES = 65_536
"""Unsent bytes at which catch-up waits for the client. Half of the client's buffer limit applies if that is less."""

LOW_WATER_SHARE = 0.75
"""Share of the high-water mark at which catch-up continues. Large, because the hub judges progress by bytes sent."""


class Listener(Protocol):
    """The stream on a connection, which hears of the end of the connection."""

    def stop(self) -> None:
        """Write nothing more: the client has ended the stream, and its connection is about to close."""

    def connection_lost(self) -> None:
        """Give back what the stream holds, because its connection is closed. It is called once."""


class StreamConnection(asyncio.Protocol):
    """The socket of one open stream, to which the hub writes.

    Attributes:
        write: The transport's own method that sends bytes. The hub calls it so often that a wrapper would cost time.
        listener: The stream on this connection. None before it starts, and after the connection was lost.
    """

    __slots__ = (
        "_borrower", "_chunked", "_departures", "_descriptor", "_high_water", "_peer", "_transport", "_waiter",
        "listener", "write",
    )  # fmt: skip

    def __init__(
        self, transport: asyncio.Transport, *, chunked: bool, buffer_bytes: int, departures: TurnQueue
    ) -> None:
        """Use ``transport`` for this stream.

        ``buffer_bytes`` is the hub's limit for a client's unsent bytes in this process. ``departures`` closes the
        transports of the clients that leave.
        """
        self._departures = departures
        self.write = transport.write
        self._peer: TcpPeer | None = None
        self.listener: Listener | None = None
        self._transport = transport
        self._chunked = chunked
        self._high_water = min(HIGH_WATER_BYTES, buffer_bytes // 2)
        self._waiter: asyncio.Future[None] | None = None
        self._borrower: Outlet | None = None
        self._descriptor = NO_DESCRIPTOR
        self.lend_descriptor(None)

    def buffered_bytes(self) -> int:
        """Return the number of unsent bytes in this process, 0 after the connection was lost."""
        return 0 if self._peer is LOST_PEER else self._transport.get_write_buffer_size()

    def lend_descriptor(self, borrower: Outlet | None) -> None:
        """Keep the socket's descriptor in ``borrower.descriptor`` whenever nothing is unsent, until the next call.

        None ends the loan.

        For a borrower the transport reports its first unsent byte instead of its high-water mark. It calls its protocol
        before it closes the descriptor. So nothing is lent before it has this protocol (see `Connection.detach`).
        """
        if self._borrower is not None:
            self._borrower.descriptor = NO_DESCRIPTOR
        self._borrower, transport = None, self._transport
        if transport.is_closing():
            return
        self._borrower = borrower
        high = self._high_water if borrower is None else 0
        transport.set_write_buffer_limits(high=high, low=int(high * LOW_WATER_SHARE))
        if borrower is not None and transport.get_extra_info("sslcontext") is None:
            self._descriptor = transport.get_extra_info("socket").fileno()
            if transport.get_protocol() is self and not self.buffered_bytes():
                borrower.descriptor = self._descriptor

    def kernel_unacked_bytes(self) -> float:
        """Return the bytes in the kernel's send buffer that the client has not acknowledged (a system call)."""
        return self._known_peer().unacknowledged_bytes()

    def peer_silent_seconds(self) -> float:
        """Return the seconds since the client acknowledged bytes, 0 if it has acknowledged all (a system call)."""
        return self._known_peer().silence_seconds()

    def _known_peer(self) -> TcpPeer:
        if self._peer is None:  # most streams never need it
            self._peer = TcpPeer(self._transport)
        return self._peer

    def data_received(self, data: bytes) -> None:
        """Ignore what the client sends: a client has nothing to send on an open stream."""

    def eof_received(self) -> bool:
        """Abort the transport in turn, because thousands may leave at once. Return that it must not close itself."""
        self._departures.run_in_turn(self._close)
        return True

    def _close(self) -> None:
        """Abort the transport, which drops what is written to it from now on. So take the descriptor back.

        The stream stops here, in its turn, and so does everything that limits how long its client may take no byte. So
        nothing waits for unsent bytes: a client that reads no more would keep its connection for good. What is left to
        do when the connection is lost needs no turn of its own.
        """
        self._transport.abort()
        self.lend_descriptor(None)
        if self.listener is not None:
            self.listener.stop()

    def connection_lost(self, exc: Exception | None) -> None:
        """Raise an error in the task that waits in ``wait_writable``, if any. Tell the listener."""
        if self._borrower is not None:
            self.lend_descriptor(None)
        self._peer = LOST_PEER
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_exception(exc or ConnectionResetError("the client left"))
        listener, self.listener = self.listener, None
        if listener is not None:
            listener.connection_lost()

    def pause_writing(self) -> None:
        """Take the descriptor back: bytes that are sent by it would overtake the unsent ones."""
        if self._borrower is not None:
            self._borrower.descriptor = NO_DESCRIPTOR

    def resume_writing(self) -> None:
        """Wake the task in ``wait_writable``. The transport calls this when its buffer is below the low-water mark."""
        if self._borrower is not None:
            self._borrower.descriptor = self._descriptor
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    @property
    def is_full(self) -> bool:
        """Whether the caller must not write now: the unsent bytes are above the high-water mark, or it is closing."""
        return self._transport.is_closing() or self.buffered_bytes() > self._high_water

    async def wait_writable(self) -> None:
        """Wait until the transport accepts more bytes. Raises ConnectionError if the client has disconnected."""
        if self._transport.is_closing():
            raise ConnectionResetError
        if self.is_full:
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter

    def finish(self, reason: DisconnectReason) -> None:  # noqa: ARG002 - HTTP has no place for it; `goodbye` told it
        """Close the connection after all written bytes and the end of the HTTP body are sent."""
        if self._chunked and not self._transport.is_closing():
            self._transport.write(LAST_CHUNK)
        self._transport.close()

    def abort(self) -> None:
        """Close the connection at once. Bytes that are still in the buffer are lost."""
        self._transport.abort()

    def fail(self) -> None:
        """Close the connection at once, because the server failed."""
        self.abort()
