"""TCP's keep-alive: the kernel probes the machine of a silent client, and closes the connection if it does not answer.

On Linux, a connection inherits these options from the socket that accepts it. So a listening socket with them saves
eight system calls for each connection.
"""

import socket
import sys
from typing import NamedTuple

IS_LINUX = sys.platform == "linux"

MAX_IDLE_SECONDS = 32_767
"""Longest silence in seconds before the first probe that Linux accepts (MAX_TCP_KEEPIDLE). A longer one is an error."""

MAX_PROBES = 127
"""Largest number of unanswered probes that Linux accepts (MAX_TCP_KEEPCNT)."""


class TcpKeepalive(NamedTuple):
    """Probes of a silent client by the kernel: after ``idle_seconds``, then each second, at most ``probes`` times."""

    idle_seconds: int
    probes: int

    @classmethod
    def of_timeouts(cls, idle_seconds: float, timeout_seconds: float) -> "TcpKeepalive":
        """Probe after ``idle_seconds``, and close a connection whose client is silent for ``timeout_seconds`` more."""
        return cls(max(1, round(min(idle_seconds, MAX_IDLE_SECONDS))), max(1, round(min(timeout_seconds, MAX_PROBES))))

    def set_on(self, target: socket.socket) -> None:
        """Set the options of a TCP socket, and TCP_NODELAY, so that no short write waits for an acknowledgement."""
        if target.family not in (socket.AF_INET, socket.AF_INET6):
            return
        target.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if IS_LINUX:
            target.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            target.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, self.idle_seconds)
            target.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 1)
            target.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, self.probes)


def inherited_keepalive(listener: socket.socket) -> TcpKeepalive | None:
    """Return the options that connections inherit from a listening socket, or None if they do not inherit all."""
    if not IS_LINUX or listener.family not in (socket.AF_INET, socket.AF_INET6):
        return None
    if not listener.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE):
        return None
    if not listener.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY):
        return None
    if listener.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL) != 1:
        return None
    idle_seconds = listener.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE)
    return TcpKeepalive(idle_seconds, listener.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT))
