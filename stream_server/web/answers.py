"""JSON answers, and the one shape of refusals."""

import math
from collections.abc import Iterable

import msgspec
from aiohttp import hdrs, web

from stream_server.errors import ApiError

REALM = "stream-server"

HEADERS = {
    hdrs.CONTENT_TYPE: "application/json; charset=utf-8",
    hdrs.CACHE_CONTROL: "no-store",
    "X-Content-Type-Options": "nosniff",
    hdrs.SERVER: REALM,
}

BEARER_ERRORS = {401: "invalid_token", 403: "insufficient_scope"}
"""What RFC 6750 §3.1 calls our refusals, by status."""


class _Created(msgspec.Struct):
    id: str


def json_answer(body: bytes, *, status: int = 200) -> web.Response:
    """An answer of JSON that is encoded already; what the store gives is passed on byte for byte."""
    return web.Response(body=body, status=status, headers=HEADERS)


def created(body: bytes, path: str) -> web.Response:
    """201 for a new thing, encoded already; it can be found at ``path`` and its id."""
    response = json_answer(body, status=201)
    response.headers[hdrs.LOCATION] = path + msgspec.json.decode(body, type=_Created).id
    return response


def encoded(value: object, *, status: int = 200) -> web.Response:
    """An answer of ``value`` as JSON."""
    return json_answer(msgspec.json.encode(value), status=status)


def listed(noun: str, items: Iterable[bytes]) -> web.Response:
    """``{noun: [...]}`` of JSON objects that are encoded already."""
    return json_answer(b'{"%b":[%b]}' % (noun.encode(), b",".join(items)))


def page(noun: str, items: Iterable[bytes], older: str | None, newer: str | None) -> web.Response:
    """A piece of a list with the cursors of its neighbours: ``{noun: [...], next, prev}``."""
    ends = msgspec.json.encode({"next": older, "prev": newer})[1:]
    return json_answer(b'{"%b":[%b],%b' % (noun.encode(), b",".join(items), ends))


def refusal(error: ApiError, *, challenged: bool = True) -> web.Response:
    """The answer for ``error``; ``challenged`` says that the request did carry a token."""
    response = encoded(error.body(), status=error.status)
    if error.status == 401 or error.error_code == "insufficient_scope":
        response.headers[hdrs.WWW_AUTHENTICATE] = _challenge(error, challenged=challenged)
    if error.status in {429, 503}:
        response.headers[hdrs.RETRY_AFTER] = str(math.ceil(error.retry_after or 1))
    return response


def _challenge(error: ApiError, *, challenged: bool) -> str:
    """RFC 6750 §3: who showed no token at all is told no error, only what is asked for."""
    if not challenged:
        return f'Bearer realm="{REALM}"'
    told = error.message.replace("\\", "").replace('"', "'")
    return f'Bearer realm="{REALM}", error="{BEARER_ERRORS[error.status]}", error_description="{told}"'
