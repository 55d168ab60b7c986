"""Reads a request body within limits of size, time and JSON nesting."""

import asyncio
import re

from aiohttp import hdrs, web

from stream_server.errors import BadRequest, TooLarge, UnsupportedMediaType

BODY_TIMEOUT_SECONDS = 15.0
"""Seconds until the whole body must have arrived. A body that trickles in more slowly is refused."""

MAX_JSON_DEPTH = 200
"""Deepest nesting of JSON that the server reads.

Python's own limit is about a thousand levels, in 3.14 tens of thousands.
"""

_JSON_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"?', re.DOTALL)

_BRACKET = re.compile(rb"[\[\]{}]")


async def read_body(request: web.Request, max_bytes: int) -> bytes:
    """Read the whole body, also a chunked one, and stop as soon as it exceeds ``max_bytes``.

    Raises:
        TooLarge: The body has more than ``max_bytes`` bytes.
        UnsupportedMediaType: The body has a content coding. A few bytes of gzip can expand to gigabytes.
        BadRequest: The body breaks off, has invalid framing, or takes longer than :data:`BODY_TIMEOUT_SECONDS`.
    """
    if request.headers.get(hdrs.CONTENT_ENCODING, "identity").lower() != "identity":
        raise UnsupportedMediaType("send the body without a content coding", param="Content-Encoding")
    if (request.content_length or 0) > max_bytes:
        raise _too_large(max_bytes)
    try:
        async with asyncio.timeout(BODY_TIMEOUT_SECONDS):
            return await _read_chunks(request, max_bytes)
    except TimeoutError:
        raise BadRequest("the body did not arrive in time", code="malformed_body") from None
    except web.RequestPayloadError:
        raise BadRequest("the body has invalid HTTP framing", code="malformed_body") from None


async def _read_chunks(request: web.Request, max_bytes: int) -> bytes:
    """Join the chunks of the body. Raises TooLarge when they exceed ``max_bytes``."""
    body = bytearray()
    async for part in request.content.iter_any():
        body += part
        if len(body) > max_bytes:
            raise _too_large(max_bytes)
    return bytes(body)


def _too_large(max_bytes: int) -> TooLarge:
    """Build the error for a body of more than ``max_bytes`` bytes."""
    return TooLarge(f"the body may have at most {max_bytes} bytes")


async def read_json_body(request: web.Request, max_bytes: int) -> bytes:
    """Read a body whose Content-Type is `application/json` in UTF-8. Raises UnsupportedMediaType for another type.

    Does not parse the JSON. Raises what :func:`read_body` raises.
    """
    charset = (request.charset or "utf-8").lower()
    if request.content_type != "application/json" or charset not in {"utf-8", "utf8"}:
        raise UnsupportedMediaType("send application/json in UTF-8", param="Content-Type")
    return await read_body(request, max_bytes)


def refuse_deep_json(body: bytes) -> None:
    """Raise BadRequest for JSON that is nested deeper than :data:`MAX_JSON_DEPTH`.

    The check counts brackets outside of strings. Most bodies have too few brackets to need it.
    """
    if body.count(b"[") + body.count(b"{") <= MAX_JSON_DEPTH:
        return
    depth = 0
    for bracket in _BRACKET.findall(_JSON_STRING.sub(b"", body)):
        depth += 1 if bracket in b"[{" else -1
        if depth > MAX_JSON_DEPTH:
            raise BadRequest("the JSON is nested too deeply", code="malformed_body")
