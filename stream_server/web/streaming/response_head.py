"""The head of a stream's response. It is encoded here, because `hello` leaves in the same write.

aiohttp would need two writes and eight times the work. A test compares the head with the one that aiohttp sends.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from aiohttp import HttpVersion, hdrs

from stream_server.hub.framing import IDENTITY
from stream_server.web.http.cors import merge_cors_headers
from stream_server.web.http.middleware import X_REQUEST_ID
from stream_server.web.http.responses import SAFETY_HEADERS, date_header

STREAM_HEADERS = {
    "Cache-Control": "no-store, no-transform",
    "X-Accel-Buffering": "no",
    **dict(SAFETY_HEADERS),
}
"""Headers of every stream.

`no-transform` stops proxies from compressing the stream, which would hold events back, and `X-Accel-Buffering` stops
nginx from buffering it.
"""

MAX_PATTERNS = 64
"""Number of patterns that are kept. Each second needs new ones, one for each kind of head."""

_GAP = "\x00"
"""The place of a value in a pattern. No header contains it."""


class HeadKind(NamedTuple):
    """The parts that the heads of many streams have in common.

    Attributes:
        version: The HTTP version of the request.
        content_type: Value of `Content-Type`.
        content_coding: The coding of the body.
        varies: Whether the answer depends on `Accept-Encoding`.
        cors: The headers for pages of other origins.
    """

    version: HttpVersion
    content_type: str
    content_coding: str
    varies: bool
    cors: tuple[tuple[str, str], ...]

    def headers(self, request_id: str, first: Mapping[str, str], last: Mapping[str, str]) -> dict[str, str]:
        """Return all headers of a head, in their order. ``first`` and ``last`` are headers of this stream only."""
        found = {**STREAM_HEADERS, **first, hdrs.CONTENT_TYPE: self.content_type, X_REQUEST_ID: request_id}
        if self.varies:  # whether the body is compressed or not (RFC 9110 §12.5.5)
            found[hdrs.VARY] = hdrs.ACCEPT_ENCODING
        merge_cors_headers(found, dict(self.cors))
        found.update(last)
        if self.content_coding != IDENTITY:
            found[hdrs.CONTENT_ENCODING] = self.content_coding
        return found


def encode_usual_head(kind: HeadKind, request_id: str, last: Mapping[str, str]) -> bytes:
    """Return `encode_head` of a stream that has only usual headers, by filling the gaps of a pattern.

    ``last`` are headers of this stream, such as ``RateLimit-Remaining``. The caller guarantees that no value has a line
    break. Encoding a head anew takes five times as long.
    """
    return (head_pattern(kind, tuple(last), date_header()) % (request_id, *last.values())).encode()


@lru_cache(MAX_PATTERNS)
def head_pattern(kind: HeadKind, last: Sequence[str], date: str) -> str:
    """Return the format of a head whose values of the request id and of the headers ``last`` are left open."""
    headers = kind.headers(_GAP, {}, dict.fromkeys(last, _GAP))
    return encode_head(kind.version, headers, date).decode().replace("%", "%%").replace(_GAP, "%s")


def encode_head(version: HttpVersion, headers: Mapping[str, str], date: str) -> bytes:
    """Return the head of a response 200 in the request's version, with ``headers``, a date and the fields of its body.

    The connection ends with the response. Raises ValueError if a header has a line break, which would begin another.
    """
    fields = {**headers, hdrs.DATE: date}
    if version >= (1, 1):
        fields |= {hdrs.TRANSFER_ENCODING: "chunked", hdrs.CONNECTION: "close"}
    lines = [f"HTTP/{version.major}.{version.minor} 200 OK", *map(": ".join, fields.items()), "", ""]
    head = "\r\n".join(lines)
    if not head.count("\r") == head.count("\n") == len(lines) - 1:
        raise ValueError("a header has a line break")
    return head.encode()
