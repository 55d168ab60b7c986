"""The head of a stream's response. It is encoded here, because `hello` leaves in the same write.

aiohttp would need two writes and eight times the work. A test compares the head with the one that aiohttp sends.
"""

import time
from collections.abc import Mapping
from email.utils import formatdate
from functools import lru_cache

from aiohttp import HttpVersion, hdrs, web


def encode_head(version: HttpVersion, headers: Mapping[str, str]) -> bytes:
    """Return the head of a response 200 in the request's version, with ``headers``, a date and the fields of its body.

    The connection ends with the response. Raises ValueError if a header has a line break, which would begin another.
    """
    fields = {**headers, hdrs.DATE: _http_date(int(time.time()))}
    if version >= (1, 1):
        fields |= {hdrs.TRANSFER_ENCODING: "chunked", hdrs.CONNECTION: "close"}
    lines = [f"HTTP/{version.major}.{version.minor} 200 OK", *map(": ".join, fields.items()), "", ""]
    head = "\r\n".join(lines)
    if not head.count("\r") == head.count("\n") == len(lines) - 1:
        raise ValueError("a header has a line break")
    return head.encode()


@lru_cache(2)
def _http_date(seconds: int) -> str:
    """Return a Unix time as a date of HTTP. The same second is asked for by each stream that opens in it."""
    return formatdate(seconds, usegmt=True)


class OpenedStream(web.StreamResponse):
    """Stands for the response of a stream that has left the HTTP server, which must not touch it any more."""

    @property
    def prepared(self) -> bool:
        """Whether the head has been sent."""
        return True


OPENED = OpenedStream()
"""What the handler of a stream returns. It has no state, so all streams share it."""
