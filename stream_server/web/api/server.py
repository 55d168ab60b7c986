"""The server about itself: its description, health, metrics and the OpenAPI document."""

from typing import Annotated, Any

import msgspec
from aiohttp import hdrs, web
from msgspec import UNSET, Meta, UnsetType

from stream_server.build import full_version
from stream_server.monitoring.metrics import CONTENT_TYPE
from stream_server.web.http import operations_access
from stream_server.web.http.app_keys import CONFIG, HUB, OPERATIONS, READINESS_CHECK, ROUTES
from stream_server.web.http.fields import NonNegativeInt
from stream_server.web.http.responses import ErrorDetail, encode_response, json_response
from stream_server.web.openapi.document import encoded_document

_VERSION = "the version with a digest of the code, which differs between two builds"
_LAG = "how far this server is behind the log, in milliseconds"


class LivenessAnswer(msgspec.Struct):
    """The answer of ``GET /healthz``, which says that the process runs."""

    alive: bool


class ReadinessAnswer(msgspec.Struct):
    """Whether this server receives new events for its streams. If not, ``error`` has the reason.

    Only those who may read the metrics get the members ``version``, ``lag_ms``, ``stopping``, ``cursor``, ``warnings``.
    """

    ready: bool
    version: Annotated[str, Meta(description=_VERSION)] | UnsetType = UNSET
    lag_ms: Annotated[NonNegativeInt, Meta(description=_LAG)] | UnsetType = UNSET
    stopping: bool | UnsetType = UNSET
    cursor: Annotated[str, Meta(description="the newest entry of the log that this server has")] | UnsetType = UNSET
    warnings: Annotated[list[str], Meta(description="what is wrong in the Redis Cluster")] | UnsetType = UNSET
    error: ErrorDetail | UnsetType = UNSET


class OpenApiDocument(msgspec.Struct):
    """A document of OpenAPI 3.1."""

    openapi: str
    info: dict[str, Any]
    servers: list[dict[str, Any]]
    tags: list[dict[str, Any]]
    paths: dict[str, Any]
    components: dict[str, Any]
    dialects: list[dict[str, Any]] = msgspec.field(name="x-dialects")


class ServerIndex(msgspec.Struct):
    """The server's name and version, and the first requests of a new client, such as the log-in."""

    name: str
    docs: str
    openapi: Annotated[str, Meta(description="the path of this document")]
    sign_up: str
    log_in: str
    post: str
    stream: str
    poll: str
    metrics: str
    message_max_chars: Annotated[int, Meta(description="longest text of a status, in code points")]
    version: Annotated[str, Meta(description=f"{_VERSION}; only for readers of the metrics")] | UnsetType = UNSET


async def liveness(request: web.Request) -> web.Response:  # noqa: ARG001 - a handler's signature
    """``GET /healthz``: answer 200 while the process runs, even if Redis is down: a restart would not repair that."""
    return encode_response({"alive": True})


async def readiness(request: web.Request) -> web.Response:
    """``GET /readyz``: answer 200 if new events reach this server, 503 if they do not or if the server is stopping."""
    is_ready, detail = request.app[READINESS_CHECK]()
    reason = detail.pop("reason", "event delivery is interrupted")
    detail = {"version": full_version(), **detail} if await operations_access.may_read(request) else {}
    if is_ready:
        return encode_response({"ready": True, **detail})
    message = "this server is shutting down" if request.app[HUB].is_stopping else reason
    error = {"code": "unavailable", "message": message}
    response = encode_response({"ready": False, **detail, "error": error}, status=503)
    response.headers[hdrs.RETRY_AFTER] = "1"
    return response


async def metrics(request: web.Request) -> web.Response:
    """``GET /metrics``: read the metrics of all workers of this server in the Prometheus text format."""
    await operations_access.require(request)
    headers = {hdrs.CONTENT_TYPE: CONTENT_TYPE, hdrs.CACHE_CONTROL: "no-store"}
    return web.Response(body=await request.app[OPERATIONS].render_metrics(), headers=headers)


async def describe(request: web.Request) -> web.Response:
    """Return the server's name and version, and the first requests of a new client, as JSON."""
    about = {"name": "stream-server", "docs": "/docs", "openapi": "/openapi.json"}
    if await operations_access.may_read(request):
        about["version"] = full_version()
    writes = {"sign_up": "POST /v1/users", "log_in": "POST /v1/sessions", "post": "POST /v1/statuses"}
    reads = {"stream": "GET /v1/stream?track=...", "poll": "GET /v1/events?track=...", "metrics": "GET /metrics"}
    limits = {"message_max_chars": request.app[CONFIG].message_max_chars}
    return encode_response({**about, **writes, **reads, **limits})


async def openapi_document(request: web.Request) -> web.Response:
    """``GET /openapi.json``: read the OpenAPI document of all routes; those of Twitter's protocols are only listed."""
    return json_response(encoded_document(tuple(dict.fromkeys(request.app[ROUTES].values()))))
