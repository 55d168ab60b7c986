"""Listening sockets: of a single server process, and of several workers that share one port.

On Linux each worker binds its own socket with SO_REUSEPORT, and the kernel spreads connections evenly over them. The
supervisor binds the port too, to reserve it, but does not listen. On other systems the kernel does not spread
connections, so the supervisor's socket listens and the workers inherit it (:data:`WORKERS_BIND_SOCKETS` is false).
"""

import errno
import socket
import sys

from stream_server.runtime.tcp_keepalive import TcpKeepalive

WORKERS_BIND_SOCKETS = sys.platform == "linux"
"""Whether each worker binds its own socket instead of inheriting the supervisor's."""

LISTEN_BACKLOG = 4096
"""Number of connections that may wait to be accepted; the kernel's ``net.core.somaxconn`` may lower it."""


class CannotListen(OSError):
    """The server cannot listen on the address. The message is a sentence for the person who started it."""


def reserve_port(host: str, port: int, *, workers_bind_sockets: bool = WORKERS_BIND_SOCKETS) -> socket.socket:
    """Bind ``port`` (0: any free port) for the workers and return the bound socket.

    If ``workers_bind_sockets`` is true, the socket only reserves the port. Otherwise it listens, and the workers
    inherit it. Raises :class:`CannotListen` if another server uses the port. SO_REUSEPORT alone would not tell: two
    servers of one user could share the port, and each would receive half of the connections.
    """
    if not workers_bind_sockets:
        return listen_alone(host, port)
    if port:
        _bind(host, port, reuse_port=False).close()
    return _bind(host, port, reuse_port=True)


def listen_as_worker(
    host: str, port: int, inherited_fd: int | None = None, keepalive: TcpKeepalive | None = None
) -> socket.socket:
    """Return a worker's listening socket: the inherited one (``inherited_fd``) or, if that is None, a new one.

    The connections of a new one inherit ``keepalive``.
    """
    if inherited_fd is None:
        return _bind(host, port, reuse_port=True, listen=True, keepalive=keepalive)
    inherited = socket.socket(fileno=inherited_fd)
    inherited.set_inheritable(False)
    return inherited


def listen_alone(host: str, port: int, keepalive: TcpKeepalive | None = None) -> socket.socket:
    """Return the listening socket of a single server process; raises :class:`CannotListen` if the port is in use.

    Its connections inherit ``keepalive``.
    """
    return _bind(host, port, reuse_port=False, listen=True, keepalive=keepalive)


def _bind(
    host: str, port: int, *, reuse_port: bool, listen: bool = False, keepalive: TcpKeepalive | None = None
) -> socket.socket:
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        bound = socket.socket(family, socket.SOCK_STREAM)
        try:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if reuse_port:
                bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            if keepalive is not None:  # before the socket listens, so that each connection has it
                keepalive.set_on(bound)
            bound.bind(address)
            if listen:
                bound.listen(LISTEN_BACKLOG)
                bound.setblocking(False)
        except OSError:
            bound.close()
            raise
    except OSError as error:
        other = " (choose another --port; 0 takes a free one)" if error.errno == errno.EADDRINUSE else ""
        raise CannotListen(f"cannot listen on {host} port {port}: {error.strerror}{other}") from None
    return bound
