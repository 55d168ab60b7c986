"""The time limits of an HTTP connection."""

import asyncio
import math
from typing import NamedTuple

from stream_server.runtime.listening import TcpKeepalive
from stream_server.web.http.tcp_peer import TcpPeer

HEADER_TIMEOUT_SECONDS = 15.0
"""Seconds to receive a whole request head, from the start of the connection or the first byte of a later request."""

WRITE_TIMEOUT_SECONDS = 30.0
"""Seconds in which a client must take at least one byte of a pending answer, else the server drops the connection."""

KEEPALIVE_IDLE_SECONDS = 15.0
"""Seconds of silence before the kernel probes the client's machine, equal to a stream's default heartbeat interval."""


MIN_BYTES_PER_SECOND = 1024
"""Least speed at which a client must take an answer. A slower one could hold its place in the table for hours."""


class ConnectionTimeouts(NamedTuple):
    """Time limits of an HTTP connection, in seconds.

    Attributes:
        write_seconds: Time in which a client must take some bytes of a pending answer, else the server disconnects it.
        probe_seconds: Silence after which the kernel probes the client's machine.
        header_seconds: Time to receive a whole request head.
    """

    write_seconds: float = WRITE_TIMEOUT_SECONDS
    probe_seconds: float = KEEPALIVE_IDLE_SECONDS
    header_seconds: float = HEADER_TIMEOUT_SECONDS

    @property
    def keepalive(self) -> TcpKeepalive:
        """The times at which the kernel probes the client's machine."""
        return TcpKeepalive.of_timeouts(self.probe_seconds, self.write_seconds)


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
