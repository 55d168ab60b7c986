"""The addresses to which the server connects for its users: public ones, and those that the operator allows.

Else a user could reach what only this machine can reach: other services beside it, the metadata of its cloud. The check
stands where a socket is made. So it sees the address to which the socket connects, whether it came from a name, which
may have changed since an earlier look-up, or from a URL, in whatever form.
"""

import ipaddress
import socket
from collections.abc import Sequence

from aiohttp import AddrInfoType

from stream_server.web.limits.client_address import Address, Network

_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
"""IPv6 addresses that a gateway turns into the IPv4 address in their last four bytes (RFC 6052)."""

_TRANSITIONAL = ipaddress.IPv6Network("2002::/16"), ipaddress.IPv6Network("2001::/32")
"""6to4 and Teredo: IPv6 addresses that have an IPv4 address inside. No endpoint needs them any more (RFC 7526)."""

RECEIVE_BUFFER_BYTES = 8 * 1024
"""Bytes that the kernel keeps of what an endpoint sends; Linux doubles this. One read brings no more."""


class AddressRefused(OSError):
    """The server does not connect to this address for its users. The text does not name it: a user may not learn it."""

    def __init__(self) -> None:
        super().__init__("this address is not allowed")


class AddressGuard:
    """Makes the sockets to endpoints of users, or refuses their addresses.

    ``allowed`` are the networks that the operator allows. With ``only_allowed``, no others are reached: that is for
    requests without TLS.
    """

    def __init__(self, allowed: Sequence[Network], *, only_allowed: bool) -> None:
        self._allowed = allowed
        self._only_allowed = only_allowed

    def make_socket(self, info: AddrInfoType) -> socket.socket:
        """Make a socket for the address in ``info``, as aiohttp found it. Raises `AddressRefused`."""
        family, kind, protocol, _, target = info
        if not self.allows(str(target[0])):
            raise AddressRefused
        made = socket.socket(family, kind, protocol)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER_BYTES)
        return made

    def allows(self, text: str) -> bool:
        """Return whether the server connects to this IP address."""
        address: Address = ipaddress.ip_address(text.partition("%")[0])
        if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
            address = address.ipv4_mapped  # the socket reaches the IPv4 address
        if any(address in network for network in self._allowed):
            return True
        return not self._only_allowed and _is_public(address)


def _is_public(address: Address) -> bool:
    if address in _NAT64:
        return _is_public(ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF))
    if not address.is_global or address.is_multicast or address.is_reserved:
        return False
    is_site_local = isinstance(address, ipaddress.IPv6Address) and address.is_site_local
    return not is_site_local and not any(address in network for network in _TRANSITIONAL)
