"""Finds the HTTP proxy through which a server is reached: what the variables of the environment say.

aiohttp would read them with ``trust_env``, but then it also takes passwords from ``~/.netrc``, and refuses each request
that has a token.
"""

from ipaddress import ip_address
from socket import inet_aton
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from aiohttp import ClientHttpProxyError, ClientResponseError

from stream_server.client.errors import InvalidAddress, Unreachable


def proxy_for(url: str) -> str | None:
    """Return the URL of the proxy for the server at ``url``, with the proxy's password. None connects directly.

    That is ``http_proxy`` or ``https_proxy`` in the environment, by the scheme of ``url``; in upper case, too. Without
    them, macOS and Windows have settings of the system. ``no_proxy`` lists hosts, ``host:port`` and domains to connect
    to directly. This machine itself never has a proxy. The server's host name is not looked up.

    Raises :class:`InvalidAddress` if the variable is not the address of an HTTP proxy, without showing it.
    """
    server = urlsplit(url)
    host = server.hostname or ""
    port = server.port or (443 if server.scheme == "https" else 80)
    if _is_this_machine(host) or proxy_bypass(host) or proxy_bypass(f"{host}:{port}"):
        return None
    given = getproxies().get(server.scheme)
    if not given:
        return None
    proxy = given if "://" in given else f"http://{given}"
    try:
        parts = urlsplit(proxy)
        is_valid = bool(parts.hostname) and parts.scheme in {"http", "https"} and parts.port != 0
    except ValueError:
        is_valid = False
    if not is_valid:
        name = f"{server.scheme}_proxy"
        raise InvalidAddress(f"{name} is not the address of an HTTP proxy, such as http://proxy.example.org:3128")
    return proxy


def unreachable_by_answer(url: str, error: ClientResponseError) -> Unreachable:
    """Return the failure of a request whose answer is no HTTP, or for which the proxy made no connection.

    In the second case nothing was sent. The text of ``error`` has the password of the proxy, so the caller raises the
    result ``from None``.
    """
    if isinstance(error, ClientHttpProxyError):
        refusal = f"the HTTP proxy answers {error.status} {error.message}"
        return Unreachable(f"{url} gave no answer: {refusal}", may_have_happened=False)
    return Unreachable(f"{url} gave no answer: {' '.join(error.message.split())}")


def _is_this_machine(host: str) -> bool:
    """Whether the host is a name or an address of this machine, or stands for all its addresses."""
    host = host.removesuffix(".")  # which only says that no domain is added
    # These names are in the files of hosts of usual systems.
    if host in {"localhost", "localhost.localdomain", "ip6-localhost", "ip6-loopback"} or host.endswith(".localhost"):
        return True
    try:
        address = ip_address(host if ":" in host else inet_aton(host))  # which also reads 127.1 and 0x7f000001
    except (ValueError, OSError):
        return False
    address = getattr(address, "ipv4_mapped", None) or address
    return address.is_loopback or address.is_unspecified
