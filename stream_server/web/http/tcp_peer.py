"""What the kernel knows of the machine at a connection's other end: what it has not acknowledged, and for how long.

By Linux' TCP. Elsewhere nothing is known: only bytes unsent in this process can be looked at, and a machine that is
gone is found by the system's own time-outs, which are minutes or hours.
"""

import asyncio
import fcntl
import socket
import struct
import sys
import termios

IS_LINUX = sys.platform == "linux"

MAX_KEEPALIVE_IDLE_SECONDS = 32_767
"""Linux refuses more (MAX_TCP_KEEPIDLE), and a connection whose options are refused would hang."""

MAX_KEEPALIVE_PROBES = 127
"""The same (MAX_TCP_KEEPCNT)."""

_LAST_ACK_OFFSET_BYTES = 56
"""Where `struct tcp_info` has `tcpi_last_ack_recv`, in milliseconds."""

_INT_BUFFER = bytes(4)


class TcpPeer:
    """The other end of a transport, as the kernel tells of it.

    TCP_USER_TIMEOUT would be no help: Linux counts a closed window as silence, though the probes are answered, and so
    it resets who only reads slowly.
    """

    __slots__ = ("_socket",)

    def __init__(self, transport: asyncio.BaseTransport) -> None:
        connection = transport.get_extra_info("socket")
        known = IS_LINUX and connection is not None and connection.family in (socket.AF_INET, socket.AF_INET6)
        self._socket = connection if known else None

    def forget(self) -> None:
        """The connection is lost: its descriptor will be another's."""
        self._socket = None

    def unacknowledged_bytes(self) -> int:
        """Bytes that the kernel has and the client's machine has not acknowledged; 0 where that is not known."""
        if self._socket is None:
            return 0
        try:
            told = fcntl.ioctl(self._socket.fileno(), termios.TIOCOUTQ, _INT_BUFFER)
        except (OSError, ValueError):
            return 0  # it is closed already, which is noticed by itself
        return int.from_bytes(told, sys.byteorder)

    def silence_seconds(self) -> float:
        """Seconds since anything was acknowledged, a window's probe included; 0 if nothing is to be, or not known."""
        if self._socket is None or not self.unacknowledged_bytes():
            return 0.0
        told = self._socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _LAST_ACK_OFFSET_BYTES + 4)
        milliseconds: int = struct.unpack_from("I", told, _LAST_ACK_OFFSET_BYTES)[0]
        return milliseconds / 1000

    def enable_keepalive(self, idle_seconds: float, timeout_seconds: float) -> None:
        """Have its machine asked whether it is there when nothing came of it for so long, and each second then.

        The connection ends after ``timeout_seconds`` without an answer. Only while nothing is unacknowledged.
        """
        if self._socket is not None:
            idle = max(1, round(min(idle_seconds, MAX_KEEPALIVE_IDLE_SECONDS)))
            probes = max(1, round(min(timeout_seconds, MAX_KEEPALIVE_PROBES)))
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, idle)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 1)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, probes)
