"""The address of a client. One header tells it, which a setting names, and only if a trusted proxy has sent it.

Anybody can send such a header, and a proxy passes on the headers that it does not set itself. So the server believes
no other header. It reads the header from the right, and stops at the first address that is not that of a trusted
proxy. What stands before it may be invented.
"""

import ipaddress
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

from multidict import MultiMapping

from stream_server.config.settings import InvalidSetting

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

MAX_FORWARDED_ADDRESSES = 20
"""Number of addresses that are read from a header, from the right. More proxies than this stand in no row."""

UNKNOWN = "unknown"
"""Stands for the address of a client that connects by a unix socket."""

_NAME = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_FORWARDED_PAIR = re.compile(
    rf"[ \t]*(?:(?P<name>{_NAME})="
    r'(?:"(?P<quoted>[^"\\]*(?:\\.[^"\\]*)*)"|(?P<plain>[^\s";,]+))[ \t]*)?(?P<end>[;,]|$)'
)
"""One pair of an element of ``Forwarded`` (RFC 7239 §4), or an empty place, with the mark that ends it.

Some proxies leave out the quotation marks around a port or an IPv6 address.
"""

_PORT = re.compile(r"^(\d+\.\d+\.\d+\.\d+):\d+$")


def read_networks(setting: str, flag: str) -> list[Network]:
    """Return the addresses and networks in a setting, with commas between them.

    Raises `InvalidSetting`, which names ``flag``, if a part is no address or network.
    """
    networks = list[Network]()
    for text in filter(None, map(str.strip, setting.split(","))):
        try:
            networks.append(ipaddress.ip_network(text, strict=False))
        except ValueError:
            raise InvalidSetting(f"{flag} holds {text[:64]!r}, which is no address or network") from None
    return networks


class TrustedProxies:
    """The proxies that may say for whom they ask, by their networks, and the header in which they say it."""

    def __init__(self, setting: str, header: str = "X-Forwarded-For") -> None:
        """``setting`` has the addresses or networks of the trusted proxies, separated by commas.

        ``header`` is the name of the header in which a proxy tells the client's address. Raises `InvalidSetting` if a
        part of ``setting`` is no address or network, or if ``header`` cannot be the name of a header.
        """
        self._networks = read_networks(setting, "--trusted-proxies")
        self._header = header.strip()
        if not re.fullmatch(_NAME, self._header):
            raise InvalidSetting(f"--forwarded-header holds {header[:64]!r}, which is no name of a header")

    def __contains__(self, address: Address) -> bool:
        return any(address in network for network in self._networks)

    def is_trusted(self, peer: str) -> bool:
        """Return whether ``peer``, the address at the other end of a connection, is that of a trusted proxy."""
        address = _parse_address(peer)
        return address is not None and address in self

    def client_address(self, peer: str, forwarded: Iterable[str]) -> str:
        """Return the subject that stands for a client: an IPv4 address, or an IPv6 network of 64 bits.

        ``peer`` is the address at the other end of the connection. ``forwarded`` has the addresses that the header
        names, from the nearest proxy on.
        """
        current = _parse_address(peer)
        if current is None:
            return UNKNOWN
        for text in forwarded:
            if current not in self:
                break
            earlier = _parse_address(text) if len(text) <= 80 else None  # IPv6 with brackets, zone and port is shorter
            if earlier is None:
                break
            current = earlier
        return _subject_of(current)

    def request_address(self, peer: str, headers: MultiMapping[str]) -> str:
        """Return :meth:`client_address` for a request from ``peer``. Only headers of a trusted proxy are read."""
        if not self._networks or self._header not in headers or not self.is_trusted(peer):
            return subject_of_peer(peer)
        return self.client_address(peer, self.read_header(headers.getall(self._header)))

    def read_header(self, lines: Sequence[str]) -> list[str]:
        """Return the addresses that the lines of the header name, from the nearest proxy on.

        ``Forwarded`` is read by RFC 7239 §4, and any other header as addresses that commas separate. A text that names
        no address, such as ``_hidden``, stays in its place, and stands for all places of an invalid line.
        """
        read = _read_forwarded if self._header.lower() == "forwarded" else _read_list
        addresses: list[str] = []
        for line in reversed(lines):
            addresses += read(line)
            if len(addresses) >= MAX_FORWARDED_ADDRESSES:
                break
        return addresses[:MAX_FORWARDED_ADDRESSES]


def _read_list(line: str) -> list[str]:
    """Return the addresses between commas, from the right. Only the end of a long line is divided."""
    return [text.strip() for text in reversed(line.rsplit(",", MAX_FORWARDED_ADDRESSES)[-MAX_FORWARDED_ADDRESSES:])]


def _read_forwarded(line: str) -> list[str]:
    """Return the value of ``for`` of each element, from the right: an empty text for an element without it.

    A line that is not by the grammar names nobody, for otherwise the text of a client could hide that of a proxy.
    """
    if len(line) > 4096:
        return [""]
    found, current, at = [], "", 0
    while True:
        pair = _FORWARDED_PAIR.match(line, at)
        if pair is None:
            return [""]
        if (pair["name"] or "").lower() == "for":
            current = pair["quoted"] or pair["plain"] or ""
        if pair["end"] != ";":
            found.append(current)
            current = ""
        if not pair["end"]:
            return found[::-1]
        at = pair.end()


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
        return str(address)
    # A person with IPv6 usually has a whole network of this size, so its addresses count together.
    return str(ipaddress.ip_network((address, 64), strict=False))
