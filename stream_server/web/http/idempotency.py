"""The key under which a write is done once, however often it is sent."""

import re

from aiohttp import web

from stream_server.errors import BadRequest
from stream_server.store.idempotency import IdempotencyKey
from stream_server.web.http.app_keys import CLAIMS

IDEMPOTENCY_KEY_HEADER = "Idempotency-Key"

_KEY_PATTERN = re.compile(r"[A-Za-z0-9_\-.:]{1,64}")


def read_idempotency_key(request: web.Request, body: bytes = b"") -> IdempotencyKey:
    """The client's key, bound to its user and to what it asks, else a new one for this request alone.

    Raises BadRequest for a key that is none.
    """
    key = request.headers.get(IDEMPOTENCY_KEY_HEADER)
    if key is None:
        return IdempotencyKey.generate()
    if not _KEY_PATTERN.fullmatch(key):
        raise BadRequest("1 to 64 letters, digits or _-.:", param=IDEMPOTENCY_KEY_HEADER)
    asked = f"{request.method} {request.rel_url.raw_path_qs}\n".encode("utf-8", "surrogateescape")
    return IdempotencyKey.from_client(request[CLAIMS].sub, key, asked + body)
