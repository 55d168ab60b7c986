"""The head of a stream's response. It is encoded here, because `hello` leaves in the same write.

aiohttp would need two writes and eight times the work. A test compares the head with the one that aiohttp sends.
"""

from collections.abc import Sequence
from functools import lru_cache

from aiohttp import HttpVersion, hdrs

from stream_server.hub.messages import IDENTITY
from stream_server.web.http.app_keys import CONFIG, REQUEST_ID
from stream_server.web.http.cors import cors_headers, merge_cors_headers
from stream_server.web.http.request_limits import ALLOWANCE, limit_headers
from stream_server.web.http.responses import SAFETY_HEADERS, X_REQUEST_ID, date_header
from stream_server.web.route import Request

STREAM_HEADERS = {
    "Cache-Control": "no-store, no-transform",
    "X-Accel-Buffering": "no",
    **dict(SAFETY_HEADERS),
}
"""Headers of every stream.

`no-transform` stops proxies from compressing the stream, which would hold events back, and `X-Accel-Buffering` stops
nginx from buffering it.
"""

_GAP = "\x00"
"""The place of a value in a pattern. No header contains it."""


def encode_head(request: Request, content_coding: str, content_type: str) -> bytes:
    """Return the head of a stream's answer to a request, in the request's version. The connection ends with the answer.

    All heads of one second are made from a pattern, in which only the request id and the limits differ. To encode each
    head anew would take five times as long.
    """
    config = request.app[CONFIG]
    varies, cors = config.compress_streams == "on", tuple(cors_headers(request).items()) if config.cors_origins else ()
    limits = limit_headers(request) if ALLOWANCE in request else {}
    pattern = _pattern(request.version, content_type, content_coding, varies, cors, tuple(limits), date_header())
    return (pattern % (request[REQUEST_ID], *limits.values())).encode()


def head_fields(content_type: str, content_coding: str, *, varies: bool) -> dict[str, str]:
    """Return the header fields of a stream, without those that each answer has."""
    found = {**STREAM_HEADERS, hdrs.CONTENT_TYPE: content_type}
    if varies:  # whether the body is compressed or not (RFC 9110 §12.5.5)
        found[hdrs.VARY] = hdrs.ACCEPT_ENCODING
    if content_coding != IDENTITY:
        found[hdrs.CONTENT_ENCODING] = content_coding
    return found


@lru_cache(64)  # each second needs new ones, one for each kind of head
def _pattern(
    version: HttpVersion, content_type: str, content_coding: str,
    varies: bool,  # noqa: FBT001 - lru_cache keys positional arguments
    cors: Sequence[tuple[str, str]], limits: Sequence[str], date: str,
) -> str:  # fmt: skip
    """Return the format of a head whose values of the request id and of the headers ``limits`` are left open.

    ``cors`` are the headers for pages of other origins. Raises ValueError if a header has a line break, which would
    begin another.
    """
    fields = {**head_fields(content_type, content_coding, varies=varies), X_REQUEST_ID: _GAP}
    merge_cors_headers(fields, dict(cors))
    fields |= dict.fromkeys(limits, _GAP) | {hdrs.DATE: date}
    if version >= (1, 1):
        fields |= {hdrs.TRANSFER_ENCODING: "chunked", hdrs.CONNECTION: "close"}
    lines = [f"HTTP/{version.major}.{version.minor} 200 OK", *map(": ".join, fields.items()), "", ""]
    head = "\r\n".join(lines)
    if not head.count("\r") == head.count("\n") == len(lines) - 1:
        raise ValueError("a header has a line break")
    return head.replace("%", "%%").replace(_GAP, "%s")
