"""What the kernel knows of the machine at the other end of a connection: its silence and its missing acknowledgements.

Works with TCP on Linux. On other systems only the unsent bytes of this process are known. There a dead machine is found
by the system's own timeouts, after minutes or hours.
"""

import asyncio
import fcntl
import socket
import struct
import sys
import termios

IS_LINUX = sys.platform == "linux"
"""Whether this system offers the socket options that the module needs."""

MAX_KEEPALIVE_IDLE_SECONDS = 32_767
"""Largest idle time before probes that Linux accepts (MAX_TCP_KEEPIDLE).

A larger value fails, and the connection would hang.
"""

MAX_KEEPALIVE_PROBES = 127
"""Largest number of probes that Linux accepts (MAX_TCP_KEEPCNT)."""

_LAST_ACK_OFFSET_BYTES = 56
"""Offset of `tcpi_last_ack_recv` in `struct tcp_info`, in bytes. The field is in milliseconds."""

_INT_BUFFER = bytes(4)
"""Space for the C int that TIOCOUTQ returns."""


class TcpPeer:
    """The machine at the other end of a transport, as the kernel sees it. Each question costs a system call.

    TCP_USER_TIMEOUT cannot replace this. For Linux a closed receive window counts as silence even while the peer
    answers the probes, so that option would reset a client that only reads slowly.
    """

    __slots__ = ("_socket",)

    def __init__(self, transport: asyncio.BaseTransport) -> None:
        """Take the socket of ``transport``.

        Sockets other than TCP, and systems other than Linux, give no information.
        """
        connection = transport.get_extra_info("socket")
        known = IS_LINUX and connection is not None and connection.family in (socket.AF_INET, socket.AF_INET6)
        self._socket = connection if known else None

    def forget(self) -> None:
        """Forget the socket after the connection is lost, because the system reuses its file descriptor."""
        self._socket = None

    def unacknowledged_bytes(self) -> int:
        """Return the bytes in the kernel's send buffer that the peer has not acknowledged.

        Return 0 if that is unknown.
        """
        if self._socket is None:
            return 0
        try:
            queued = fcntl.ioctl(self._socket.fileno(), termios.TIOCOUTQ, _INT_BUFFER)
        except (OSError, ValueError):
            return 0  # already closed; asyncio reports that itself
        return int.from_bytes(queued, sys.byteorder)

    def silence_seconds(self) -> float:
        """Return the seconds since the peer last acknowledged data or a window probe.

        Return 0 if the peer has acknowledged all data, or if the kernel does not say.
        """
        if self._socket is None or not self.unacknowledged_bytes():
            return 0.0
        info = self._socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _LAST_ACK_OFFSET_BYTES + 4)
        milliseconds: int = struct.unpack_from("I", info, _LAST_ACK_OFFSET_BYTES)[0]
        return milliseconds / 1000

    def enable_keepalive(self, idle_seconds: float, timeout_seconds: float) -> None:
        """Let the kernel probe the peer each second, after ``idle_seconds`` without data from it.

        The kernel closes the connection after ``timeout_seconds`` without an answer. Probes run only while all sent
        data is acknowledged.
        """
        if self._socket is not None:
            idle = max(1, round(min(idle_seconds, MAX_KEEPALIVE_IDLE_SECONDS)))
            probes = max(1, round(min(timeout_seconds, MAX_KEEPALIVE_PROBES)))
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, idle)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 1)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, probes)
