"""The server about itself: its pages for a browser, its description, health, metrics and the OpenAPI document.

The files of the pages are package data, ES modules without a build step. They are read when the server starts.
"""

from importlib.resources.abc import Traversable
from typing import Annotated, Any

import msgspec
from aiohttp import hdrs, web
from msgspec import UNSET, Meta, UnsetType

from stream_server.build import full_version
from stream_server.config.public_url import split_public_url
from stream_server.errors import NotFound
from stream_server.monitoring.metrics import CONTENT_TYPE
from stream_server.web.http.app_keys import CONFIG, HUB, OPERATIONS, READINESS_CHECK, ROUTES, STATIC_FILES
from stream_server.web.http.authentication import may_read_operations, require_operations
from stream_server.web.http.fields import NonNegativeInt
from stream_server.web.http.module_preloads import with_preloads
from stream_server.web.http.moved_pages import redirect
from stream_server.web.http.qualities import prefers_html
from stream_server.web.http.query import parsed_query
from stream_server.web.http.responses import encode_response
from stream_server.web.http.static_files import PAGE_POLICY, SITE_POLICY, StaticFile, file_response, load_files
from stream_server.web.limits.rate_limits import FILES
from stream_server.web.openapi.document import SERVER_OF_DOCUMENT, document_file
from stream_server.web.openapi.messages import Version
from stream_server.web.route import NO_TOKEN, Request, Route
from stream_server.web.streaming.compression import negotiate_content_coding
from stream_server.wire.errors import ErrorDetail

_VERSION = "the version with a digest of the code, which differs between two builds"


class LivenessAnswer(msgspec.Struct):
    """The answer of ``GET /healthz``, which says that the process runs."""

    alive: bool


class ReadinessAnswer(msgspec.Struct):
    """Whether this server receives new events for its streams. If not, ``error`` has the reason.

    Only those who may read the metrics get the members between ``ready`` and ``error``.
    """

    ready: bool
    version: Annotated[str, Meta(description=_VERSION)] | UnsetType = UNSET
    lag_ms: (
        Annotated[NonNegativeInt, Meta(description="how far this server is behind the log, in milliseconds")]
        | UnsetType
    ) = UNSET
    stopping: bool | UnsetType = UNSET
    cursor: Annotated[str, Meta(description="the newest entry of the log that this server has")] | UnsetType = UNSET
    redis: Annotated[str, Meta(description="why no events come from Redis")] | UnsetType = UNSET
    warnings: Annotated[list[str], Meta(description="what is wrong in the cluster or the clocks")] | UnsetType = UNSET
    error: ErrorDetail | UnsetType = UNSET


class OpenApiQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The query of the OpenAPI document."""

    version: Annotated[Version, Meta(description="of OpenAPI: 3.1 for tools that do not know 3.2")] = "3.2"


class OpenApiDocument(msgspec.Struct):
    """A document of OpenAPI."""

    openapi: str
    info: dict[str, Any]
    servers: list[dict[str, Any]]
    tags: list[dict[str, Any]]
    paths: dict[str, Any]
    webhooks: dict[str, Any]
    components: dict[str, Any]
    dialects: list[dict[str, Any]] = msgspec.field(name="x-dialects")
    operators: list[dict[str, Any]] = msgspec.field(name="x-operators")


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


class SiteQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The query of a page of the documentation. The page's scripts read it, or browsers' caches need it."""

    q: str = ""
    check_keywords: str = ""
    area: str = ""
    v: str = ""


async def liveness(request: Request) -> web.Response:  # noqa: ARG001 - a handler's signature
    """``GET /healthz``: answer 200 while the process runs, even if Redis is down: a restart would not repair that."""
    return encode_response({"alive": True})


async def readiness(request: Request) -> web.Response:
    """``GET /readyz``: answer 200 if new events reach this server, 503 if they do not or if the server is stopping."""
    is_ready, detail = request.app[READINESS_CHECK]()
    reason = detail.pop("reason", "event delivery is interrupted")
    detail = {"version": full_version(), **detail} if await may_read_operations(request) else {}
    if is_ready:
        return encode_response({"ready": True, **detail})
    message = "this server is shutting down" if request.app[HUB].is_stopping else reason
    error = {"code": "unavailable", "message": message}
    response = encode_response({"ready": False, **detail, "error": error}, status=503)
    response.headers[hdrs.RETRY_AFTER] = "1"
    return response


async def metrics(request: Request) -> web.Response:
    """``GET /metrics``: read the metrics of all workers of this server in the Prometheus text format."""
    await require_operations(request)
    headers = {hdrs.CONTENT_TYPE: CONTENT_TYPE, hdrs.CACHE_CONTROL: "no-store"}
    return web.Response(body=await request.app[OPERATIONS].render_metrics(), headers=headers)


async def describe(request: Request) -> web.Response:
    """Return the server's name and version, and the requests with which a new client begins, as JSON."""
    root = split_public_url(request.app[CONFIG].public_url).path
    about = {"name": "stream-server", "docs": f"{root}/docs", "openapi": f"{root}/openapi.json"}
    if await may_read_operations(request):
        about["version"] = full_version()
    writes = {"sign_up": "POST /v1/users", "log_in": "POST /v1/sessions", "post": "POST /v1/statuses"}
    reads = {"stream": "GET /v1/stream?track=...", "poll": "GET /v1/events?track=...", "metrics": "GET /metrics"}
    limits = {"message_max_chars": request.app[CONFIG].message_max_chars}
    return encode_response({**about, **writes, **reads, **limits})


async def openapi_document(request: Request) -> web.Response:
    """``GET /openapi.json``: read the OpenAPI document of all routes; those of Twitter's protocols are only listed."""
    version = parsed_query(request, OpenApiQuery).version
    url = request.app[CONFIG].public_url or SERVER_OF_DOCUMENT
    found = document_file(tuple(dict.fromkeys(request.app[ROUTES].values())), version, url)
    return file_response(request, found, negotiate_content_coding(request.headers.get(hdrs.ACCEPT_ENCODING)))


CONSOLE_PAGE, DOCS_PAGE = "/console/index.html", "/console/docs.html"
PAGES = {CONSOLE_PAGE: "/", DOCS_PAGE: "/docs"}
"""Where each page is served. Its links are relative, so it does not work elsewhere."""

GUIDE_LINK = b'<a href="docs/site/README.html">Guide</a>'
"""The link to the documentation in the page of the API. It is left out where the documentation is not installed."""


def load_pages(package: Traversable) -> dict[str, StaticFile]:
    """Return the files of the console and of the documentation by their URL path, from the installed ``package``.

    A wheel has the documentation. In a checkout `make site` puts it there. Raises ValueError if a file or one of the
    console's pages is unusable.
    """
    files = load_files(package / "console", "/console/", PAGE_POLICY)
    missing = {CONSOLE_PAGE, DOCS_PAGE} - files.keys()
    if missing:
        raise ValueError(f"the console lacks {', '.join(sorted(missing))}: install the project again")
    files |= {path: with_preloads(files, path) for path in PAGES}
    if (site := package / "site").is_dir():
        return files | load_files(site, "/docs/site/", SITE_POLICY)
    page = files[DOCS_PAGE]
    return files | {DOCS_PAGE: StaticFile(page.body.replace(GUIDE_LINK, b""), page.media_type, page.policy)}


async def index(request: Request) -> web.Response:
    """``GET /``: open the console in a browser (`Accept: text/html`), or read the server's name and first requests."""
    if prefers_html(",".join(request.headers.getall(hdrs.ACCEPT, []))):
        response = _answer(request, CONSOLE_PAGE)
    else:
        response = await describe(request)
    response.headers.add(hdrs.VARY, hdrs.ACCEPT)
    return response


async def docs(request: Request) -> web.Response:
    """``GET /docs``: open the documentation of the API in a browser."""
    return _answer(request, DOCS_PAGE)


async def file(request: Request) -> web.Response:
    """``GET /console/{path}``: read a script, a style or a picture of the console."""
    page = PAGES.get(request.path)
    return _answer(request, request.path) if page is None else redirect(request, page)


def _answer(request: Request, path: str) -> web.Response:
    found = request.app[STATIC_FILES].get(path)
    if found is None:
        raise NotFound("there is no such file")
    return file_response(request, found, negotiate_content_coding(request.headers.get(hdrs.ACCEPT_ENCODING)))


# fmt: off
ROWS: tuple[Route, ...] = (
    Route("GET", "/", index, NO_TOKEN, response=ServerIndex, name="console.index"),
    Route("GET", "/docs", docs, NO_TOKEN, media_type="text/html", limits=(FILES,), name="console.docs"),
    Route("GET", "/docs/site/{path}", file, NO_TOKEN, SiteQuery, media_type="text/html", limits=(FILES,),
          name="console.site", summary="Read a page of the documentation, if it is installed."),
    Route("GET", "/console/{path}", file, NO_TOKEN, media_type="text/javascript", limits=(FILES,), name="console.file"),
    Route("GET", "/healthz", liveness, NO_TOKEN, response=LivenessAnswer, limits=()),
    Route("GET", "/readyz", readiness, NO_TOKEN, response=ReadinessAnswer, extra_error_statuses=(503,), limits=()),
    Route("GET", "/metrics", metrics, NO_TOKEN, media_type="text/plain", extra_error_statuses=(401, 403), limits=()),
    Route("GET", "/openapi.json", openapi_document, NO_TOKEN, OpenApiQuery, response=OpenApiDocument),
)
# fmt: on
