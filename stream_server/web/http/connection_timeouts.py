"""The time limits of an HTTP connection."""

from typing import NamedTuple

from stream_server.runtime.tcp_keepalive import TcpKeepalive

HEADER_TIMEOUT_SECONDS = 15.0
"""Seconds to receive a whole request head, from the start of the connection or the first byte of a later request."""

WRITE_TIMEOUT_SECONDS = 30.0
"""Seconds in which a client must take at least one byte of a pending answer, else the server drops the connection."""

KEEPALIVE_IDLE_SECONDS = 15.0
"""Seconds of silence before the kernel probes the client's machine, equal to a stream's default heartbeat interval."""


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
