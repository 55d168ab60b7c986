"""Whether the process lives, whether events would arrive, what was counted, and where to read on."""

from aiohttp import hdrs, web

from stream_server import __version__
from stream_server.runtime.metrics import CONTENT_TYPE
from stream_server.web.http.app_keys import HUB, METRICS, READINESS_CHECK, ROUTES
from stream_server.web.http.responses import encode_response, json_response
from stream_server.web.openapi.document import encoded_document


async def liveness(request: web.Request) -> web.Response:  # noqa: ARG001 - a handler's signature
    """``GET /healthz``: whether the process answers; Redis may be away, starting anew would not bring it back."""
    return encode_response({"alive": True})


async def readiness(request: web.Request) -> web.Response:
    """``GET /readyz``: whether events arrive; 503 while one that is written now would not, and while this stops."""
    is_ready, detail = request.app[READINESS_CHECK]()
    if is_ready:
        return encode_response({"ready": True, **detail})
    message = "this server is stopping" if request.app[HUB].is_stopping else "events would not arrive right now"
    error = {"code": "unavailable", "message": message}
    response = encode_response({"ready": False, **detail, "error": error}, status=503)
    response.headers[hdrs.RETRY_AFTER] = "1"
    return response


async def metrics(request: web.Request) -> web.Response:
    """``GET /metrics``: what was counted, in Prometheus' text format."""
    headers = {hdrs.CONTENT_TYPE: CONTENT_TYPE, hdrs.CACHE_CONTROL: "no-store"}
    return web.Response(body=request.app[METRICS].render(), headers=headers)


async def index(request: web.Request) -> web.Response:  # noqa: ARG001 - a handler's signature
    """``GET /``: what this is, and where to begin."""
    begin = {"sign_up": "POST /v1/users", "log_in": "POST /v1/sessions", "post": "POST /v1/statuses"}
    streams = {"stream": "GET /v1/stream?track=...", "poll": "GET /v1/events?track=...", "metrics": "GET /metrics"}
    about = {"name": "stream-server", "version": __version__, "docs": "docs/api.md", "openapi": "/openapi.json"}
    return encode_response({**about, **begin, **streams})


async def openapi_document(request: web.Request) -> web.Response:
    """``GET /openapi.json``: an OpenAPI 3.1 description of all routes except those of the dialects."""
    return json_response(encoded_document(tuple(dict.fromkeys(request.app[ROUTES].values()))))
