"""Reads a request body, and the header that says what it is, within limits of size, time and JSON nesting.

Text comes out in one form: line breaks are LF, and a byte order mark is skipped.
"""

import asyncio
import re
from codecs import BOM_UTF8
from collections.abc import Mapping
from functools import lru_cache
from itertools import accumulate
from typing import Any, NamedTuple

import msgspec
from aiohttp import hdrs, web

from stream_server.errors import BadRequest, TooLarge, UnsupportedMediaType
from stream_server.web.http.app_keys import BODY, TURN
from stream_server.web.route import Request

BODY_TIMEOUT_SECONDS = 15.0
"""Seconds within which the whole body must arrive. The server refuses a body that takes longer."""

MAX_BODY_BYTES = 65_536
"""Largest body of a request in bytes: many times the longest status. Streams and lists of rules may have more."""

MAX_JSON_DEPTH = 200
"""Most levels of nesting in JSON that the server reads. Python's own limit is higher: a thousand levels or more."""

MAX_CONTENT_TYPE_CHARS = 256
"""Longest `Content-Type` that the server reads. Real ones have less than a hundred characters."""

_WORD = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_MEDIA_TYPE = re.compile(rf"({_WORD}/{_WORD})[ \t]*")
_PARAMETER = re.compile(rf';[ \t]*(?:({_WORD})=(?:({_WORD})|"((?:[^"\\]|\\.)*)"))?[ \t]*')

_CARRIAGE_RETURN = re.compile(rb"\\(?:r|u000[dD])(?:\\(?:n|u000[aA]))?")
"""CR LF or CR in a JSON string. JSON has no control characters but by escapes (RFC 8259 §7)."""

_TOO_LARGE = "the body may have at most {} bytes"
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_STEPS = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")
"""An opening bracket becomes 1 and a closing one -1, as signed bytes. So their sum is the depth."""


class ContentType(NamedTuple):
    """The media type and the charset of a `Content-Type` header (RFC 9110 §8.3), both in lower case.

    ``charset`` is empty if the header names none.
    """

    media_type: str
    charset: str = ""


NO_CONTENT_TYPE = ContentType("")


def read_content_type(request: Request) -> ContentType:
    """Return the parsed `Content-Type`, :data:`NO_CONTENT_TYPE` without the header.

    The time is linear, and no library reads the header. Raises UnsupportedMediaType for a header that is not of the
    form of RFC 9110 §8.3.1 or has more than :data:`MAX_CONTENT_TYPE_CHARS` characters.
    """
    text = request.headers.get(hdrs.CONTENT_TYPE)
    return NO_CONTENT_TYPE if text is None else _parse_content_type(text)


@lru_cache(64)  # clients send the same few
def _parse_content_type(text: str) -> ContentType:
    malformed = UnsupportedMediaType("send a media type such as application/json", param="Content-Type")
    found = _MEDIA_TYPE.match(text) if len(text) <= MAX_CONTENT_TYPE_CHARS else None
    if found is None:
        raise malformed
    media_type, parameters, end = found[1].lower(), dict[str, str](), found.end()
    while end < len(text):
        parameter = _PARAMETER.match(text, end)
        if parameter is None:
            raise malformed
        if parameter[1]:
            parameters[parameter[1].lower()] = parameter[2] or re.sub(r"\\(.)", r"\1", parameter[3] or "")
        end = parameter.end()
    return ContentType(media_type, parameters.get("charset", "").lower())


def declared_length(headers: Mapping[str, str]) -> int | None:
    """Return the number of bytes that `Content-Length` declares, None without the header.

    The HTTP parser lets through digits only, but any number of zeros before them. Python refuses to read those.
    """
    text = headers.get(hdrs.CONTENT_LENGTH)
    return None if text is None else int(text.lstrip("0") or "0")


def refuse_codings(headers: Mapping[str, str]) -> None:
    """Raise UnsupportedMediaType for a compressed body, because a few bytes of gzip can expand to gigabytes.

    The body may be compressed by a content coding, or by a transfer coding beside `chunked` (RFC 9112 §6.1).
    """
    for name, allowed in (("Content-Encoding", "identity"), ("Transfer-Encoding", "chunked")):
        if headers.get(name, allowed).strip().lower() != allowed:
            raise UnsupportedMediaType("send the body without compression", param=name)


async def read_body(request: Request, max_bytes: int) -> bytes:
    """Read the whole body, chunked or not. Raises TooLarge as soon as the body exceeds ``max_bytes``.

    ``max_bytes`` is at least `MAX_BODY_BYTES`, so a body that came with its head is never too large.

    Raises UnsupportedMediaType for a compressed body. Raises BadRequest for a body that breaks off, has invalid
    framing, or takes longer than :data:`BODY_TIMEOUT_SECONDS`.
    """
    if BODY in request:
        return request[BODY]
    refuse_codings(request.headers)
    if (declared_length(request.headers) or 0) > max_bytes:
        raise TooLarge(_TOO_LARGE.format(max_bytes))
    if TURN not in request:
        return await _receive_body(request, max_bytes)
    async with request[TURN].given_back():  # else four slow senders would hold up all requests of their address
        return await _receive_body(request, max_bytes)


async def _receive_body(request: Request, max_bytes: int) -> bytes:
    assert isinstance(request, web.BaseRequest)  # the body of each other request came with its head
    body = bytearray()
    try:
        async with asyncio.timeout(BODY_TIMEOUT_SECONDS):
            async for part in request.content.iter_any():
                body += part
                if len(body) > max_bytes:
                    raise TooLarge(_TOO_LARGE.format(max_bytes))
    except TimeoutError:
        raise BadRequest("the body did not arrive in time", code="malformed_body") from None
    except web.RequestPayloadError:
        raise BadRequest("the body has invalid HTTP framing", code="malformed_body") from None
    return bytes(body)


async def read_json_body(request: Request, max_bytes: int) -> bytes:
    """Read a body of `application/json` in UTF-8. Raises UnsupportedMediaType for another Content-Type."""
    text = request.headers.get(hdrs.CONTENT_TYPE)
    media_type, charset = NO_CONTENT_TYPE if text is None else _parse_content_type(text)
    if media_type != "application/json" or charset not in {"", "utf-8", "utf8"}:
        raise UnsupportedMediaType("send application/json in UTF-8", param="Content-Type")
    return request[BODY] if BODY in request else await read_body(request, max_bytes)


def normalise_json(body: bytes) -> bytes:
    """Return JSON as the server decodes it: no byte order mark, and each CR LF and CR in a string is LF.

    So lengths are counted, and texts stored, with one character a line break. The JSON is not decoded. Raises
    BadRequest for more than :data:`MAX_JSON_DEPTH` levels of nesting.
    """
    body = body.removeprefix(BOM_UTF8)
    if body.count(b"[") + body.count(b"{") > MAX_JSON_DEPTH:
        # No loop of Python: with one, 64 KiB of brackets would hold the event loop for a tenth of a second.
        unescaped = body.replace(rb"\\", b"").replace(rb"\"", b"")
        outside_strings = b"".join(unescaped.split(b'"')[::2])
        steps = outside_strings.translate(_STEPS, _NO_BRACKETS)
        if max(accumulate(memoryview(steps).cast("b")), default=0) > MAX_JSON_DEPTH:
            raise BadRequest("the JSON is nested too deeply", code="malformed_body")
    if (rb"\r" in body or rb"\u000" in body) and b"\0" not in body:  # JSON with a NUL is invalid
        hidden = body.replace(rb"\\", b"\0")  # else the `\r` of `\\r` would be taken for a line break
        body = _CARRIAGE_RETURN.sub(rb"\\n", hidden).replace(b"\0", rb"\\")
    return body


def decode_object(text: bytes, noun: str) -> dict[str, Any]:
    """Return the JSON object in ``text``, see :func:`normalise_json`.

    Raises BadRequest for any other text. Its message calls the text ``noun``, such as "body".
    """
    try:
        members = msgspec.json.decode(normalise_json(text))
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise BadRequest(f"the {noun} is not JSON", code="malformed_body") from None
    if not isinstance(members, dict):
        raise BadRequest(f"the {noun} must be a JSON object", code="malformed_body")
    return members
