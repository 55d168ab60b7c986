"""The `Idempotency-Key` header, which makes a repeated write take effect once, and how handlers of writes use it."""

import re

from aiohttp import web

from stream_server.errors import BadRequest
from stream_server.store.idempotency import IdempotencyKey
from stream_server.web.http.app_keys import CLAIMS
from stream_server.web.http.validation import BodyType, read_body_as

IDEMPOTENCY_KEY_HEADER = "Idempotency-Key"

_KEY_PATTERN = re.compile(r"[A-Za-z0-9_\-.:]{1,64}")


def read_idempotency_key(request: web.Request, body: bytes = b"") -> IdempotencyKey:
    """Return the key of the `Idempotency-Key` header, or a new random key if the request has no such header.

    A client's key belongs to one request: Redis refuses the key if the same user sends it with another method, URL or
    body. Raises BadRequest if the header is invalid.
    """
    key = request.headers.get(IDEMPOTENCY_KEY_HEADER)
    if key is None:
        return IdempotencyKey.generate()
    if not _KEY_PATTERN.fullmatch(key):
        raise BadRequest("1 to 64 letters, digits or _-.:", param=IDEMPOTENCY_KEY_HEADER)
    target = f"{request.method} {request.rel_url.raw_path_qs}\n".encode("utf-8", "surrogateescape")
    return IdempotencyKey.from_client(request[CLAIMS].sub, key, target + body)


async def read_keyed_body(body_type: type[BodyType], request: web.Request) -> tuple[BodyType, IdempotencyKey]:
    """Return the request's body as a ``body_type``, and its idempotency key. Raises ApiError if either is invalid."""
    parsed, body = await read_body_as(body_type, request)
    return parsed, read_idempotency_key(request, body)
