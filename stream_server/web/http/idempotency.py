"""The `Idempotency-Key` header, by which a repeated write takes effect once."""

import re

from aiohttp import web

from stream_server.errors import BadRequest
from stream_server.store.idempotency import IdempotencyKey
from stream_server.web.http.app_keys import CLAIMS

IDEMPOTENCY_KEY_HEADER = "Idempotency-Key"

_KEY_PATTERN = re.compile(r"[A-Za-z0-9_\-.:]{1,64}")


def read_idempotency_key(request: web.Request, body: bytes = b"") -> IdempotencyKey:
    """Return the key of the `Idempotency-Key` header, or a new random key if the request has no such header.

    The client's key is bound to its user, and to the method, URL and body of the request. Raises BadRequest if the
    header is invalid.
    """
    key = request.headers.get(IDEMPOTENCY_KEY_HEADER)
    if key is None:
        return IdempotencyKey.generate()
    if not _KEY_PATTERN.fullmatch(key):
        raise BadRequest("1 to 64 letters, digits or _-.:", param=IDEMPOTENCY_KEY_HEADER)
    target = f"{request.method} {request.rel_url.raw_path_qs}\n".encode("utf-8", "surrogateescape")
    return IdempotencyKey.from_client(request[CLAIMS].sub, key, target + body)
