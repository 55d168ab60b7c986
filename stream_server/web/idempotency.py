"""The key under which a write is done once, however often it is sent."""

import re

from aiohttp import web

from stream_server.errors import BadRequest
from stream_server.store.request import Request
from stream_server.web.keys import CLAIMS

IDEMPOTENCY_KEY = "Idempotency-Key"

_KEY = re.compile(r"[A-Za-z0-9_\-.:]{1,64}")


def request_key(request: web.Request, body: bytes = b"") -> Request:
    """The client's key, bound to its user and to what it asks, else a new one for this request alone.

    Raises BadRequest for a key that is none.
    """
    key = request.headers.get(IDEMPOTENCY_KEY)
    if key is None:
        return Request.fresh()
    if not _KEY.fullmatch(key):
        raise BadRequest("1 to 64 letters, digits or _-.:", param=IDEMPOTENCY_KEY)
    asked = f"{request.method} {request.rel_url.raw_path_qs}\n".encode("utf-8", "surrogateescape")
    return Request.of_client(request[CLAIMS].sub, key, asked + body)
