"""Asks the kernel about the client's machine: how long it was silent, and how many sent bytes it has not acknowledged.

Works with TCP on Linux. On other systems, only the system's own timeouts find a dead machine, in minutes or hours.
"""

import asyncio
import fcntl
import socket
import struct
import sys
import termios

IS_LINUX = sys.platform == "linux"

_LAST_ACK_OFFSET_BYTES = 56
"""Offset of `tcpi_last_ack_recv` in `struct tcp_info`, in bytes. The field is in milliseconds."""

_INT_BUFFER = bytes(4)


class TcpPeer:
    """Asks the kernel whether the machine at the other end of a transport still answers.

    Each method makes a system call.

    The socket option TCP_USER_TIMEOUT cannot replace this class: with it, Linux also resets a client that reads slowly.
    """

    __slots__ = ("_socket",)

    def __init__(self, transport: asyncio.BaseTransport) -> None:
        """Use the socket of ``transport``. If it is not a TCP socket on Linux, the methods return 0 or do nothing."""
        connection = transport.get_extra_info("socket")
        known = IS_LINUX and connection is not None and connection.family in (socket.AF_INET, socket.AF_INET6)
        self._socket = connection if known else None

    def forget(self) -> None:
        """Forget the socket of a lost connection, because the system reuses its descriptor for other connections."""
        self._socket = None

    def unacknowledged_bytes(self) -> int:
        """Return the bytes in the kernel's send buffer that the peer has not acknowledged, or 0 if that is unknown."""
        if self._socket is None:
            return 0
        try:
            queued = fcntl.ioctl(self._socket.fileno(), termios.TIOCOUTQ, _INT_BUFFER)
        except (OSError, ValueError):
            return 0  # already closed; asyncio reports that itself
        return int.from_bytes(queued, sys.byteorder)

    def silence_seconds(self) -> float:
        """Return the seconds since the peer's last acknowledgement, or 0 if all data is acknowledged or if unknown."""
        if self._socket is None or not self.unacknowledged_bytes():
            return 0.0
        info = self._socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _LAST_ACK_OFFSET_BYTES + 4)
        milliseconds: int = struct.unpack_from("I", info, _LAST_ACK_OFFSET_BYTES)[0]
        return milliseconds / 1000
