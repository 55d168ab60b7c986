"""Reading a body within bounds: of size, of time, of encoding."""

import asyncio

from aiohttp import hdrs, web

from stream_server.errors import BadRequest, TooLarge, UnsupportedMediaType

BODY_TIMEOUT_SECONDS = 15.0
"""A body that is not whole after this long is given up, however busily it trickles."""


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
