"""JSON answers, and the one shape of refusals."""

import math
from collections.abc import Iterable
from typing import Annotated

import msgspec
from aiohttp import hdrs, web
from msgspec import UNSET, Meta, UnsetType

from stream_server.errors import (
    STATUS_BY_CODE,
    ApiError,
    BadRequest,
    MethodNotAllowed,
    NotFound,
    TooLarge,
)

SERVER_NAME = "stream-server"

JSON_HEADERS = {
    hdrs.CONTENT_TYPE: "application/json; charset=utf-8",
    hdrs.CACHE_CONTROL: "no-store",
    "X-Content-Type-Options": "nosniff",
    hdrs.SERVER: SERVER_NAME,
}

BEARER_ERRORS = {401: "invalid_token", 403: "insufficient_scope"}
"""What RFC 6750 §3.1 calls our refusals, by status."""


class ErrorDetail(msgspec.Struct):
    """What was wrong: ``code`` is for programs, ``message`` for people; ``param`` names who is at fault."""

    code: Annotated[str, Meta(extra_json_schema={"enum": list(STATUS_BY_CODE)})]
    message: str
    param: Annotated[str, Meta(description="a query parameter, a body member or a header")] | UnsetType = UNSET
    column: Annotated[int, Meta(ge=1, description="where in a rule, in code points")] | UnsetType = UNSET


class ErrorResponse(msgspec.Struct):
    """Every answer that is not 2xx."""

    error: ErrorDetail


class _CreatedObject(msgspec.Struct):
    id: str


def json_response(body: bytes, *, status: int = 200) -> web.Response:
    """An answer of JSON that is encoded already; what the store gives is passed on byte for byte."""
    return web.Response(body=body, status=status, headers=JSON_HEADERS)


def created_response(body: bytes, path: str) -> web.Response:
    """201 for a new thing, encoded already; it can be found at ``path`` and its id."""
    response = json_response(body, status=201)
    response.headers[hdrs.LOCATION] = path + msgspec.json.decode(body, type=_CreatedObject).id
    return response


def encode_response(value: object, *, status: int = 200) -> web.Response:
    """An answer of ``value`` as JSON."""
    return json_response(msgspec.json.encode(value), status=status)


def list_response(member: str, items: Iterable[bytes]) -> web.Response:
    """``{noun: [...]}`` of JSON objects that are encoded already."""
    return json_response(b'{"%b":[%b]}' % (member.encode(), b",".join(items)))


def page_response(
    member: str, items: Iterable[bytes], next_cursor: str | None, prev_cursor: str | None
) -> web.Response:
    """A piece of a list with the cursors of its neighbours: ``{noun: [...], next, prev}``."""
    ends = msgspec.json.encode({"next": next_cursor, "prev": prev_cursor})[1:]
    return json_response(b'{"%b":[%b],%b' % (member.encode(), b",".join(items), ends))


def error_response(error: ApiError, *, token_sent: bool = True) -> web.Response:
    """The answer for ``error``; ``token_sent`` says that the request did carry a token."""
    response = encode_response(error.body(), status=error.status)
    if error.status == 401 or error.error_code == "insufficient_scope":
        response.headers[hdrs.WWW_AUTHENTICATE] = _bearer_challenge(error, token_sent=token_sent)
    if error.status in {429, 503}:
        response.headers[hdrs.RETRY_AFTER] = str(math.ceil(error.retry_after or 1))
    return response


def _bearer_challenge(error: ApiError, *, token_sent: bool) -> str:
    """RFC 6750 §3: who showed no token at all is told no error, only what is asked for."""
    if not token_sent:
        return f'Bearer realm="{SERVER_NAME}"'
    told = error.message.replace("\\", "").replace('"', "'")
    return f'Bearer realm="{SERVER_NAME}", error="{BEARER_ERRORS[error.status]}", error_description="{told}"'


def http_exception_to_api_error(method: str, error: web.HTTPException) -> ApiError | None:
    """Our name for what aiohttp refuses by itself; None for a 5xx."""
    if error.status == 404:
        return NotFound("there is nothing at this path")
    if error.status == 405:
        return MethodNotAllowed(f"{method} is not possible here"[:64], code="method_not_allowed")
    if error.status == 413:
        return TooLarge("the request is too large")
    if error.status == 417:
        return BadRequest("only 100-continue can be expected", param="Expect")
    return BadRequest("the request cannot be understood", code="malformed_body") if error.status < 500 else None
