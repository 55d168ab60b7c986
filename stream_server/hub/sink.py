"""The part of a client's socket that a stream uses. The server's connections implement it."""

from typing import Protocol

from stream_server.hub.disconnect import DisconnectReason


class Sink(Protocol):
    """The part of a client's socket that the hub uses. The hub passes bytes that `Framing.wrap` has wrapped already."""

    def write(self, data: bytes) -> None:
        """Hand bytes to the transport. Never waits."""

    def buffered_bytes(self) -> float:
        """Return the number of bytes that were passed to `write` and that the kernel has not taken yet."""

    def kernel_unacked_bytes(self) -> float:
        """Return the number of bytes in the kernel that the peer has not acknowledged, 0 if unknown."""

    def peer_silent_seconds(self) -> float:
        """Return the seconds since the peer acknowledged anything. 0 if all bytes are acknowledged, or if unknown."""

    @property
    def is_full(self) -> bool:
        """Whether the caller should wait for room before it hands over more bytes."""

    async def wait_writable(self) -> None:
        """Wait until there is room for more bytes. Raises `ConnectionError` if the client closed the connection."""

    def finish(self, reason: DisconnectReason) -> None:
        """End the stream after the bytes that were passed to `write`. ``reason`` is that of the `goodbye`."""

    def abort(self) -> None: ...

    def fail(self) -> None:
        """Close the connection because of a fault of the server."""
