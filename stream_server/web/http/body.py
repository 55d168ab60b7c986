"""Reading a body within bounds: of size, of time, of encoding."""

import asyncio
import re

from aiohttp import hdrs, web

from stream_server.errors import BadRequest, TooLarge, UnsupportedMediaType

BODY_TIMEOUT_SECONDS = 15.0
"""A body that is not whole after this long is given up, however busily it trickles."""

MAX_JSON_DEPTH = 200
"""Deepest JSON that the server reads. Python's own limit is about a thousand levels, and tens of thousands in 3.14."""

_JSON_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"?', re.DOTALL)

_BRACKET = re.compile(rb"[\[\]{}]")


async def read_body(request: web.Request, max_bytes: int) -> bytes:
    """The body; raises TooLarge before more than ``max_bytes`` are read, chunked ones included.

    Raises UnsupportedMedia for a content coding (a few bytes of gzip can be gigabytes), BadRequest for a body
    that breaks off, is framed wrongly, or takes longer than :data:`BODY_TIMEOUT_SECONDS`.
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
        raise BadRequest("the body is not framed as HTTP demands", code="malformed_body") from None


async def _read_chunks(request: web.Request, max_bytes: int) -> bytes:
    body = bytearray()
    async for part in request.content.iter_any():
        body += part
        if len(body) > max_bytes:
            raise _too_large(max_bytes)
    return bytes(body)


def _too_large(max_bytes: int) -> TooLarge:
    return TooLarge(f"the body may have {max_bytes} bytes")


async def read_json_body(request: web.Request, max_bytes: int) -> bytes:
    """The body, if its type says that it is JSON in UTF-8; raises UnsupportedMedia otherwise."""
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
