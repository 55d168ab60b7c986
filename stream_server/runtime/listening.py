"""Listening sockets: of a single server process, and of several workers that share one port.

A name such as ``localhost`` may have several addresses. The server listens on each of them that this machine has, with
one port, because a client may try any of them first.

On Linux each worker binds its own sockets with SO_REUSEPORT, and the kernel spreads connections evenly over them. The
supervisor binds the port too, to reserve it, but does not listen. On other systems the kernel does not spread
connections, so the supervisor's sockets listen and the workers inherit them (:data:`WORKERS_BIND_SOCKETS` is false).

By TCP's keep-alive the kernel probes the machine of a silent client, and closes the connection if it does not answer.
On Linux, a connection inherits these options from the socket that accepts it. So a listening socket with them saves
eight system calls for each connection.
"""

import errno
import socket
import sys
from collections.abc import Sequence
from typing import NamedTuple, Self

IS_LINUX = sys.platform == "linux"

WORKERS_BIND_SOCKETS = IS_LINUX
"""Whether each worker binds its own socket instead of inheriting the supervisor's."""

LISTEN_BACKLOG = 4096
"""Number of connections that may wait to be accepted; the kernel's ``net.core.somaxconn`` may lower it."""


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


class CannotListen(OSError):
    """The server cannot listen on the address. The message is a sentence for the person who started it."""


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
    """Return sockets bound to one port, one for each address of the host that this machine has.

    With port 0 the system chooses the port. Raises CannotListen if an address cannot be bound, or if there is none.
    """
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
                # A name may have an address that this machine does not have: `localhost` often has one of IPv6.
                if error.errno not in {errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT}:
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
