"""Reading a body within bounds: of size, of time, of encoding."""

import asyncio
import re

from aiohttp import hdrs, web

from stream_server.errors import BadRequest, TooLarge, UnsupportedMedia

BODY_SECONDS = 15.0
"""A body that is not whole after this long is given up, however busily it trickles."""

MOST_LEVELS = 200
"""Deeper JSON is refused. Python's own limit differs: about a thousand levels, or tens of thousands from 3.14 on."""

_TEXT = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"?', re.DOTALL)

_BRACKET = re.compile(rb"[\[\]{}]")


async def read_body(request: web.Request, most_bytes: int) -> bytes:
    """The body; raises TooLarge before more than ``most_bytes`` are read, chunked ones included.

    Raises UnsupportedMedia for a content coding (a few bytes of gzip can be gigabytes), BadRequest for a body
    that breaks off, is framed wrongly, or takes longer than :data:`BODY_SECONDS`.
    """
    if request.headers.get(hdrs.CONTENT_ENCODING, "identity").lower() != "identity":
        raise UnsupportedMedia("send the body without a content coding", param="Content-Encoding")
    if (request.content_length or 0) > most_bytes:
        raise _too_large(most_bytes)
    try:
        async with asyncio.timeout(BODY_SECONDS):
            return await _read(request, most_bytes)
    except TimeoutError:
        raise BadRequest("the body did not arrive in time", code="malformed_body") from None
    except web.RequestPayloadError:
        raise BadRequest("the body is not framed as HTTP demands", code="malformed_body") from None


async def _read(request: web.Request, most_bytes: int) -> bytes:
    body = bytearray()
    async for part in request.content.iter_any():
        body += part
        if len(body) > most_bytes:
            raise _too_large(most_bytes)
    return bytes(body)


def _too_large(most_bytes: int) -> TooLarge:
    return TooLarge(f"the body may have {most_bytes} bytes")


async def read_json(request: web.Request, most_bytes: int) -> bytes:
    """The body, if its type says that it is JSON in UTF-8; raises UnsupportedMedia otherwise."""
    charset = (request.charset or "utf-8").lower()
    if request.content_type != "application/json" or charset not in {"utf-8", "utf8"}:
        raise UnsupportedMedia("send application/json in UTF-8", param="Content-Type")
    return await read_body(request, most_bytes)


def refuse_deep(body: bytes) -> None:
    """Raises BadRequest for JSON that is nested deeper than :data:`MOST_LEVELS`; few bodies have brackets to count."""
    if body.count(b"[") + body.count(b"{") <= MOST_LEVELS:
        return
    level = 0
    for bracket in _BRACKET.findall(_TEXT.sub(b"", body)):
        level += 1 if bracket in b"[{" else -1
        if level > MOST_LEVELS:
            raise BadRequest("the JSON is nested too deeply", code="malformed_body")
