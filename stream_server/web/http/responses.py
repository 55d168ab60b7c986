"""JSON answers, the id and the time of each answer, and the shape of all errors.

An error is `{"error": {"code", "message", "param"?, "column"?, "retry_after"?}}`.
"""

import math
import os
import re
import secrets
import time
from collections.abc import Iterable
from email.utils import formatdate
from functools import lru_cache

import msgspec
from aiohttp import hdrs, web
from multidict import CIMultiDict

from stream_server.errors import ApiError, BadRequest, MethodNotAllowed, NotFound, TooLarge
from stream_server.events.one_line import keep_on_one_line
from stream_server.store.pagination import Page

SERVER_NAME = "stream-server"
"""Value of the `Server` header, and the realm of the bearer challenge."""

X_REQUEST_ID = "X-Request-Id"

SAFETY_HEADERS = (
    (hdrs.SERVER, SERVER_NAME),
    ("X-Content-Type-Options", "nosniff"),
    ("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'"),
)
"""Headers of every answer: a browser must not run, frame or reinterpret what the server sends."""

JSON_HEADERS = CIMultiDict(
    ((hdrs.CONTENT_TYPE, "application/json; charset=utf-8"), (hdrs.CACHE_CONTROL, "no-store"), *SAFETY_HEADERS)
)
WEBSOCKET_VERSION = "13"
"""The version of the WebSocket protocol that the server speaks (RFC 6455)."""

_REQUEST_ID_PATTERN = re.compile(r"[A-Za-z0-9-]{1,64}")

_unused_ids: list[str] = []
os.register_at_fork(after_in_child=_unused_ids.clear)  # else two processes would give the same ids


def read_request_id(sent: str | None = None) -> str:
    """Return the id that the client sent, if it is valid.

    Else return a new id: 16 hexadecimal digits from the system's secure random source.
    """
    if sent is not None and _REQUEST_ID_PATTERN.fullmatch(sent):
        return sent
    if not _unused_ids:
        # One system call makes 256 ids of 8 bytes. It costs 5 µs and more, whatever the number.
        digits = secrets.token_hex(256 * 8)
        _unused_ids.extend(digits[at : at + 16] for at in range(0, len(digits), 16))
    return _unused_ids.pop()


def date_header() -> str:
    """Return the present time as in a `Date` header. Requests of the same second share the text."""
    return _format_date(int(time.time()))


@lru_cache(1)
def _format_date(unix_seconds: int) -> str:
    return formatdate(unix_seconds, usegmt=True)


class _CreatedObject(msgspec.Struct):
    id: str


class OpenedStream(web.StreamResponse):
    """Stands for the response of a stream that has left the HTTP server, which must not touch it any more."""

    @property
    def prepared(self) -> bool:
        """Whether the head has been sent."""
        return True


OPENED = OpenedStream()
"""The response that the handler of a stream returns. It has no state, so all streams share it."""


def json_response(body: bytes, *, status: int = 200) -> web.Response:
    """Return an HTTP answer with JSON that is already encoded."""
    text = body if body.isascii() else keep_on_one_line(body)
    return web.Response(body=text, status=status, headers=JSON_HEADERS)


def created_response(body: bytes, path: str) -> web.Response:
    """Return status 201 with a new object in JSON. The `Location` header is ``path`` followed by the object's id."""
    response = json_response(body, status=201)
    response.headers[hdrs.LOCATION] = path + msgspec.json.decode(body, type=_CreatedObject).id
    return response


def encode_response(value: object, *, status: int = 200) -> web.Response:
    """Return an HTTP answer with ``value`` encoded as JSON."""
    return json_response(msgspec.json.encode(value), status=status)


def list_response(member: str, items: Iterable[bytes]) -> web.Response:
    """Return the answer ``{member: [...]}``. The items are JSON objects, already encoded."""
    return json_response(b'{"%b":[%b]}' % (member.encode(), b",".join(items)))


def page_response(member: str, page: Page, **others: int) -> web.Response:
    """Return the answer for one page of a list: ``{member: [...], next, prev}``, and ``others`` as further members."""
    rest = msgspec.json.encode({"next": page.next, "prev": page.prev, **others})[1:]
    return json_response(b'{"%b":[%b],%b' % (member.encode(), page.body, rest))


def error_response(error: ApiError, *, token_sent: bool = True) -> web.Response:
    """Return the answer for ``error``. A 401's `WWW-Authenticate` names the error only if the request had a token."""
    response = encode_response(error.body(), status=error.status)
    if error.status == 401 or error.error_code == "insufficient_scope":
        challenge = f'Bearer realm="{SERVER_NAME}"'  # RFC 6750 §3
        if token_sent:
            name = "invalid_token" if error.status == 401 else "insufficient_scope"
            description = error.message.replace("\\", "").replace('"', "'")
            challenge += f', error="{name}", error_description="{description}"'
        response.headers[hdrs.WWW_AUTHENTICATE] = challenge
    if error.status in {429, 503}:
        response.headers[hdrs.RETRY_AFTER] = str(math.ceil(error.retry_after or 1))
    if error.status == 426:  # RFC 6455 §4.4, RFC 9110 §15.5.22
        response.headers[hdrs.SEC_WEBSOCKET_VERSION] = WEBSOCKET_VERSION
        response.headers[hdrs.UPGRADE] = "websocket"
    return response


def http_exception_to_api_error(method: str, error: web.HTTPException) -> ApiError | None:
    """Map an HTTP error that aiohttp raised to an ApiError. Return None for a 5xx, which is an internal error."""
    if error.status == 404:
        return NotFound("no resource at this path")
    if error.status == 405:
        return MethodNotAllowed(f"this path does not allow {method}"[:64], code="method_not_allowed")
    if error.status == 413:
        return TooLarge("the request is too large")
    if error.status == 417:
        return BadRequest("only the expectation 100-continue is supported", param="Expect")
    return BadRequest("the request is malformed", code="malformed_body") if error.status < 500 else None
