"""The time limits of a connection, and what the kernel knows of the client's machine.

`TcpPeer` asks the kernel how long the machine was silent, and how many sent bytes it has not acknowledged. It works
with TCP on Linux. On other systems, only the system's own timeouts find a dead machine, in minutes or hours.
"""

import asyncio
import fcntl
import math
import socket
import struct
import sys
import termios
from typing import NamedTuple

from stream_server.runtime.listening import IS_LINUX, TcpKeepalive

LINGER_SECONDS = 2.0
"""Seconds in which the server reads and drops the rest of a refused body, so that its sender can read the refusal."""

EVICTED_AFTER_SECONDS = 5.0
"""Seconds for which the kernel must have had bytes of an answer left, or for which nothing of a body has come, before
a connection may be closed to make room."""

MIN_BYTES_PER_SECOND = 1024
"""Least speed at which a client must take an answer. A slower one could hold its slot in the table for hours."""


_LAST_ACK_OFFSET_BYTES = 56
"""Offset of `tcpi_last_ack_recv` in `struct tcp_info`, in bytes. The field is in milliseconds."""


class ConnectionTimeouts(NamedTuple):
    """Time limits of an HTTP connection, in seconds.

    Attributes:
        write_seconds: Time in which a client must take some bytes of a pending answer, else the server disconnects it.
        probe_seconds: Silence after which the kernel probes the client's machine. It is a stream's default heartbeat
            interval.
        idle_seconds: Time without a request, and without a byte of a body. It is longer than proxies keep their
            connections, up to 900 s: else one sends a request in the moment of the close.
        header_seconds: Time to receive a whole request head, from the start of the connection or the first byte of a
            later request.
        request_seconds: Time to answer a request that has come wholly: twice the longest poll. Only an error of the
            server takes longer.
        linger_seconds: Time in which bytes are dropped behind an answer that came before the request was whole.
    """

    write_seconds: float = 30.0
    probe_seconds: float = 15.0
    idle_seconds: float = 920.0
    header_seconds: float = 15.0
    request_seconds: float = 120.0
    linger_seconds: float = LINGER_SECONDS

    @property
    def keepalive(self) -> TcpKeepalive:
        """The times at which the kernel probes the client's machine."""
        return TcpKeepalive.of_timeouts(self.probe_seconds, self.write_seconds)


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

    def unacknowledged_bytes(self) -> int:
        """Return the bytes in the kernel's send buffer that the peer has not acknowledged, or 0 if that is unknown."""
        if self._socket is None:
            return 0
        try:
            queued = fcntl.ioctl(self._socket.fileno(), termios.TIOCOUTQ, b"\0\0\0\0")
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


LOST_PEER = TcpPeer(asyncio.BaseTransport())
"""The peer of a lost connection, of which the kernel knows nothing."""


class WriteDeadline:
    """Drops a connection whose backlog (bytes that the client has not taken) shrinks too slowly.

    A slow client stays connected if it takes :data:`MIN_BYTES_PER_SECOND`. The backlog includes the kernel's send
    buffer, because the kernel takes more bytes from this process only when a third of that buffer is empty: a slow
    client would seem stalled until then.

    Attributes:
        began_at: Time of the loop since which the kernel takes no more bytes.
    """

    __slots__ = ("_loop", "_peer", "_seconds", "_timer", "_transport", "began_at")

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop, seconds: float) -> None:
        """Check the backlog every ``seconds``, until :meth:`stop`."""
        self._transport = transport
        self._loop = loop
        self._seconds = seconds
        self._peer = TcpPeer(transport)
        self.began_at = loop.time()
        self._timer: asyncio.TimerHandle | None = None
        self._check(math.inf)

    def _check(self, previous_backlog: float) -> None:
        backlog = self._transport.get_write_buffer_size() + self._peer.unacknowledged_bytes()
        if previous_backlog - backlog < self._seconds * MIN_BYTES_PER_SECOND:
            self._transport.abort()
        else:
            self._timer = self._loop.call_later(self._seconds, self._check, backlog)

    def stop(self) -> None:
        """Check no more: the kernel has taken all pending bytes, or the connection is gone."""
        if self._timer is not None:
            self._timer.cancel()
