"""Listening sockets: of a single server process, and of several workers that share one port.

A name such as ``localhost`` may have several addresses. The server listens on each of them that this machine has, with
one port, because a client may try any of them first.

On Linux each worker binds its own sockets with SO_REUSEPORT, and the kernel spreads connections evenly over them. The
supervisor binds the port too, to reserve it, but does not listen. On other systems the kernel does not spread
connections, so the supervisor's sockets listen and the workers inherit them (:data:`WORKERS_BIND_SOCKETS` is false).
"""

import errno
import socket
import sys
from collections.abc import Sequence
from typing import Self

from stream_server.runtime.tcp_keepalive import TcpKeepalive

WORKERS_BIND_SOCKETS = sys.platform == "linux"
"""Whether each worker binds its own socket instead of inheriting the supervisor's."""

LISTEN_BACKLOG = 4096
"""Number of connections that may wait to be accepted; the kernel's ``net.core.somaxconn`` may lower it."""


class CannotListen(OSError):
    """The server cannot listen on the address. The message is a sentence for the person who started it."""


ABSENT_ADDRESS = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)
"""Errors of an address that this machine does not have. ``localhost`` often has an IPv6 address without IPv6."""


class Listeners:
    """Sockets on one port, one for each address. Use them in a ``with`` block, or close them."""

    def __init__(self, sockets: Sequence[socket.socket]) -> None:
        self.sockets = tuple(sockets)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def port(self) -> int:
        """The TCP port on which all sockets listen."""
        port: int = self.sockets[0].getsockname()[1]
        return port

    def close(self) -> None:
        """Close all sockets."""
        for each in self.sockets:
            each.close()


def reserve_port(host: str, port: int, *, workers_bind_sockets: bool = WORKERS_BIND_SOCKETS) -> Listeners:
    """Bind ``port`` (0: any free port) for the workers and return the bound sockets.

    If ``workers_bind_sockets`` is true, the sockets only reserve the port. Otherwise they listen, and the workers
    inherit them. Raises :class:`CannotListen` if another server uses the port. SO_REUSEPORT alone would not tell: two
    servers of one user could share the port, and each would receive half of the connections.
    """
    if not workers_bind_sockets:
        return listen_alone(host, port)
    if port:
        _bind_all(host, port, reuse_port=False).close()
    return _bind_all(host, port, reuse_port=True)


def listen_as_worker(
    host: str, port: int, inherited_fds: Sequence[int] = (), keepalive: TcpKeepalive | None = None
) -> Listeners:
    """Return a worker's listening sockets: the inherited ones or, if ``inherited_fds`` is empty, new ones.

    The connections of new ones inherit ``keepalive``.
    """
    if not inherited_fds:
        return _bind_all(host, port, reuse_port=True, listen=True, keepalive=keepalive)
    inherited = [socket.socket(fileno=descriptor) for descriptor in inherited_fds]
    for each in inherited:
        each.set_inheritable(False)
    return Listeners(inherited)


def listen_alone(host: str, port: int, keepalive: TcpKeepalive | None = None) -> Listeners:
    """Return the listening sockets of a single server process; raises :class:`CannotListen` if the port is in use.

    Their connections inherit ``keepalive``.
    """
    return _bind_all(host, port, reuse_port=False, listen=True, keepalive=keepalive)


def _bind_all(
    host: str, port: int, *, reuse_port: bool, listen: bool = False, keepalive: TcpKeepalive | None = None
) -> Listeners:
    """Bind every address of the host that this machine has, to one port."""
    wanted, bound = port, list[socket.socket]()
    absent: OSError | None = None
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        places = list(dict.fromkeys((family, address) for family, _, _, _, address in found))
        has_both = len({family for family, _ in places}) > 1
        for family, address in places:
            try:
                each = _bind(family, (address[0], port, *address[2:]), reuse_port=reuse_port, is_alone=not has_both)
            except OSError as error:
                if error.errno not in ABSENT_ADDRESS:
                    raise
                absent = error
                continue
            bound.append(each)
            port = port or each.getsockname()[1]
            if keepalive is not None:  # before the socket listens, so that each connection has it
                keepalive.set_on(each)
            if listen:
                each.listen(LISTEN_BACKLOG)
                each.setblocking(False)
        if not bound and absent is not None:
            raise absent
    except OSError as error:
        Listeners(bound).close()
        if bound and not wanted and error.errno == errno.EADDRINUSE:  # free on one address and not on another one
            return _bind_all(host, 0, reuse_port=reuse_port, listen=listen, keepalive=keepalive)
        other = " (choose another --port; 0 takes a free one)" if error.errno == errno.EADDRINUSE else ""
        raise CannotListen(f"cannot listen on {host} port {port}: {error.strerror}{other}") from None
    return Listeners(bound)


def _bind(family: int, address: tuple[str | int, ...], *, reuse_port: bool, is_alone: bool) -> socket.socket:
    """Return a socket that is bound to one address. With ``is_alone`` an IPv6 socket may take IPv4 connections, too."""
    bound = socket.socket(family, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if reuse_port:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        if family == socket.AF_INET6 and not is_alone:
            bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        bound.bind(address)
    except OSError:
        bound.close()
        raise
    return bound
