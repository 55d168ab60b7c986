"""The setting ``public_url``: the address at which clients reach the server, if a proxy gives it another one.

A header such as ``X-Forwarded-Prefix`` would say the same, but any client can send it. So only the setting counts.
"""

import re
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import urlsplit

from stream_server.config.origins import parse_origins
from stream_server.config.settings import VARIABLE_PREFIX, InvalidSetting

_PATH = re.compile(r"(/[A-Za-z0-9._~-]+)*/?")
_NAME = f"--public-url ({VARIABLE_PREFIX}PUBLIC_URL)"


class PublicUrl(NamedTuple):
    """An address in its parts.

    Attributes:
        origin: The origin, as a browser sends it; empty if nobody gave an address.
        path: What stands before each path of the server, such as ``/stream``; empty if nothing does.
    """

    origin: str = ""
    path: str = ""


@lru_cache(4)  # of one process there is one
def split_public_url(text: str) -> PublicUrl:
    """Return the parts of an address such as ``https://example.org/stream``, of an empty text empty parts.

    Raises :class:`InvalidSetting` with the reason for an address that cannot stand before the paths of a server.
    """
    if not text:
        return PublicUrl()
    if not re.fullmatch(r"https?://[^\s?#]+", text):
        raise InvalidSetting(f"{_NAME} must be an address such as https://example.org/stream")
    try:
        parts = urlsplit(text)
        origin = parse_origins(f"{parts.scheme}://{parts.netloc}")
    except ValueError:
        origin = ""
    if not origin or "," in origin:
        raise InvalidSetting(f"{_NAME} has no valid host: write it as https://example.org/stream")
    is_plain = _PATH.fullmatch(parts.path) and not {".", ".."}.intersection(parts.path.split("/"))
    if not is_plain:
        raise InvalidSetting(f"{_NAME} may have a path of letters, digits, `-`, `_`, `.`, `~` and `/` behind its host")
    return PublicUrl(origin, parts.path.rstrip("/"))
