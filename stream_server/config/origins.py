"""The setting ``cors_origins``: each origin as a browser sends it, or a refusal of what no browser ever sends.

A browser sends scheme and host in lower case, an international name in ASCII, an address in its shortest form, and no
default port and no path (WHATWG HTML, "ASCII serialization of an origin"). The server compares origins byte for byte.
"""

import re
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from urllib.parse import SplitResult, urlsplit

import idna

from stream_server.config.settings import VARIABLE_PREFIX, InvalidSetting

ANY_ORIGIN = "*"

DEFAULT_PORTS = {"http": 80, "https": 443}

_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*")
_HOST = re.compile(r"[a-z0-9_~-]+(\.[a-z0-9_~-]+)*\.?")
_NUMBER = re.compile(r"(\d+|0x[0-9a-f]*)\.?")


def parse_origins(text: str) -> str:
    """Return the origins in ``text`` as browsers send them, separated by commas: ``*`` alone stands for all.

    Raises :class:`InvalidSetting` with the reason for a text that no browser sends.
    """
    origins = [each.strip() for each in text.split(",") if each.strip()]
    if origins == [ANY_ORIGIN]:
        return ANY_ORIGIN
    return ",".join(dict.fromkeys(map(_parse_origin, origins)))


def _parse_origin(text: str) -> str:
    if "*" in text:
        raise _refusal(text, "has a wildcard: name each origin, or give * alone for all")
    if text.lower() == "null":
        raise _refusal(text, "stands for pages of any file and any sandbox, so it cannot be allowed")
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError as error:
        raise _refusal(text, f"is no origin: {error}") from None
    if "://" not in text or not _SCHEME.fullmatch(parts.scheme):
        raise _refusal(text, f"needs a scheme, such as https://{text}")
    if parts.path not in {"", "/"} or parts.query or parts.fragment or "@" in parts.netloc:
        raise _refusal(text, "must be an origin: a scheme, a host and perhaps a port, without a path or a user")
    written_port = "" if port in {None, DEFAULT_PORTS.get(parts.scheme)} else f":{port}"
    return f"{parts.scheme}://{_parse_host(text, parts)}{written_port}"


def _parse_host(text: str, parts: SplitResult) -> str:
    host = parts.hostname or ""
    try:
        if ":" in host:
            return f"[{IPv6Address(host)}]"
        name = host if host.isascii() else idna.encode(host, uts46=True).decode()
        if _NUMBER.fullmatch(name.removesuffix(".").rpartition(".")[2]):  # a browser takes such a host for an address
            return str(IPv4Address(name))
    except (AddressValueError, idna.IDNAError) as error:
        raise _refusal(text, f"has no valid host: {error}") from None
    if not _HOST.fullmatch(name):
        raise _refusal(text, "has no valid host")
    return name


def _refusal(text: str, reason: str) -> InvalidSetting:
    shown = re.sub("//.*@", "//…@", text)  # a password
    return InvalidSetting(f"--cors-origins ({VARIABLE_PREFIX}CORS_ORIGINS): {shown} {reason}")
