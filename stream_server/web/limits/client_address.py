"""The address of a client. A header tells it only if a trusted proxy has sent the header.

Anybody can send ``X-Forwarded-For`` or ``Forwarded`` (RFC 7239), so the server reads them from the right, and stops at
the first address that is not that of a trusted proxy. What stands before it may be invented.
"""

import ipaddress
import re
import sys
from collections.abc import Iterable
from functools import lru_cache

from aiohttp import web

from stream_server.config.settings import InvalidSetting

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Address = ipaddress.IPv4Address | ipaddress.IPv6Address

MAX_FORWARDED_ADDRESSES = 20
"""Number of addresses that are read from a header, from the right. More proxies than this stand in no row."""

UNKNOWN = "unknown"
"""Stands for the address of a client that connects by a unix socket."""

IPV6_PREFIX_BITS = 64
"""A person with IPv6 usually has a whole network of this size, so its addresses count together."""

_FORWARDED_FOR = re.compile(r'for="?(\[[0-9A-Fa-f:.]+\]|[^",;\s\]\[]+)', re.IGNORECASE)
_PORT = re.compile(r"^(\d+\.\d+\.\d+\.\d+):\d+$")


class TrustedProxies:
    """The networks whose proxies are believed."""

    def __init__(self, setting: str) -> None:
        """``setting`` has addresses or networks, separated by commas. Raises `InvalidSetting` for anything else."""
        self._networks: tuple[Network, ...] = tuple(_parse_network(text) for text in setting.split(",") if text.strip())

    def __contains__(self, address: Address) -> bool:
        return any(address in network for network in self._networks)

    def is_trusted(self, peer: str) -> bool:
        """Return whether ``peer``, the address at the other end of a connection, is that of a trusted proxy."""
        address = _parse_address(peer)
        return address is not None and address in self

    def client_address(self, peer: str, forwarded: Iterable[str]) -> str:
        """Return the subject that stands for a client: an IPv4 address, or an IPv6 network of 64 bits.

        ``peer`` is the address at the other end of the connection. ``forwarded`` has the addresses that the headers
        name, from the nearest proxy on.
        """
        current = _parse_address(peer)
        if current is None:
            return UNKNOWN
        for text in forwarded:
            if current not in self:
                break
            earlier = _parse_address(text)
            if earlier is None:
                break
            current = earlier
        return _subject_of(current)

    def request_address(self, request: web.Request) -> str:
        """Return :meth:`client_address` for a request. Only a request from a trusted proxy has its headers read."""
        peer = request.transport.get_extra_info("peername") if request.transport is not None else None
        host = peer[0] if isinstance(peer, tuple) else ""
        is_forwarded = "Forwarded" in request.headers or "X-Forwarded-For" in request.headers
        if not is_forwarded or not self._networks or not self.is_trusted(host):
            return subject_of_peer(host)
        return self.client_address(host, _forwarded_addresses(request))


def _forwarded_addresses(request: web.Request) -> list[str]:
    """Return the addresses in ``Forwarded`` or, without it, in ``X-Forwarded-For``, from the nearest proxy on."""
    if "Forwarded" in request.headers:
        elements = ",".join(request.headers.getall("Forwarded")).split(",")
        found = [(_FORWARDED_FOR.search(element) or ("", ""))[1] for element in elements]
    else:
        found = ",".join(request.headers.getall("X-Forwarded-For", [])).split(",")
    return [text.strip() for text in reversed(found[-MAX_FORWARDED_ADDRESSES:])]


@lru_cache(4096)
def _parse_address(text: str) -> Address | None:
    """Return the address in ``text``, with or without port and brackets; None if there is none (such as `_hidden`)."""
    text = _PORT.sub(r"\1", text.strip())
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address


def _parse_network(text: str) -> Network:
    try:
        return ipaddress.ip_network(text.strip(), strict=False)
    except ValueError:
        raise InvalidSetting(f"--trusted-proxies holds {text.strip()[:64]!r}, which is no address or network") from None


@lru_cache(4096)
def subject_of_peer(peer: str) -> str:
    """Return the subject for a client that no proxy stands before: an IPv4 address or an IPv6 network of 64 bits.

    ``peer`` is the address at the other end of a connection. A request asks several times for it.
    """
    address = _parse_address(peer)
    return UNKNOWN if address is None else _subject_of(address)


@lru_cache(4096)
def _subject_of(address: Address) -> str:
    if isinstance(address, ipaddress.IPv4Address):
        return sys.intern(str(address))
    return sys.intern(str(ipaddress.ip_network((address, IPV6_PREFIX_BITS), strict=False)))
