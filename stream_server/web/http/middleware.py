"""The middleware of every request: request id, error answers, metrics, and the checks that its route demands.

Access is denied by default: a route missing from the URL table needs a scope that no token has.
"""

import logging
import re
import time
from collections.abc import Mapping

from aiohttp import hdrs, web

from filters.error import ParameterError
from filters.rules.condition import RuleError
from stream_server.errors import ApiError, BadRequest, Forbidden, InternalError, NotFound, RateLimited, TooLarge
from stream_server.monitoring.tracing import TracedRequest, Tracing
from stream_server.store.redis import timeout_budget
from stream_server.store.redis.request_trace import RequestTrace
from stream_server.web.http.app_keys import (
    CLAIMS,
    CONFIG,
    FIXED_PATHS,
    HUB,
    METRICS,
    OPENING,
    QUERY,
    REFUSE_WRITES,
    REQUEST_ID,
    ROUTES,
    TRACING,
)
from stream_server.web.http.authentication import authenticate
from stream_server.web.http.cors import add_cors_headers, answer_preflight
from stream_server.web.http.query import check_parameter_names, read_query
from stream_server.web.http.random_ids import random_id
from stream_server.web.http.request_limits import ALLOWANCE, LIMITS, limit_headers, reject_when_draining
from stream_server.web.http.responses import (
    SAFETY_HEADERS,
    X_REQUEST_ID,
    JsonResponse,
    error_response,
    http_exception_to_api_error,
)
from stream_server.web.http.stream_request import is_of_the_door
from stream_server.web.limits.rate_limit import ANONYMOUS
from stream_server.web.route import ANY_TOKEN, NO_TOKEN, Handler, NoQuery, Route
from stream_server.web.websocket.handshake import check_handshake, has_credentials, is_websocket_request
from stream_server.wire.errors import STATUS_BY_CODE

logger = logging.getLogger(__name__)

CLIENT_LEFT = 499
"""Instead of a status in a trace: the client has disconnected before the answer."""

COUNTED_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
"""Methods that metrics count separately. Clients can invent any number of other methods, so those share one label."""

_REQUEST_ID_PATTERN = re.compile(r"[A-Za-z0-9-]{1,64}")


async def _refuse_undeclared_route(request: web.Request) -> web.StreamResponse:
    raise NotFound(f"this path does not serve {request.method}")


UNDECLARED_ROUTE = Route("*", "(undeclared)", _refuse_undeclared_route, scope="(nobody has this scope)")
"""Stands for each route that is missing from the URL table. No token has its scope, so the request is refused."""


async def handle_request(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Give the request an id, check it, turn every exception into an error answer, and record the metrics.

    Raises ConnectionError if the client has disconnected.

    One middleware does all this, because each further one would cost as much as a check.
    """
    started_at = time.monotonic()
    app = request.app
    route = app[ROUTES].get(request.match_info.route)
    request[REQUEST_ID] = read_request_id(request.headers.get(X_REQUEST_ID))
    tracing = app.get(TRACING)
    trace = None if tracing is None else _begin_trace(request, route, tracing)
    status = CLIENT_LEFT
    try:
        try:
            response = await _answer_in_turn(request, app, route, handler, trace)
        except ConnectionError:
            raise  # the client cannot receive an answer, and the server has not failed
        except Exception as error:  # noqa: BLE001 - this is the one place that turns every exception into an answer
            response = _error_answer(request, route, await _count_refusal(request, error))
        status = response.status
    finally:  # also if the handler was cancelled, because the client has disconnected
        if tracing is not None and trace is not None:
            tracing.end(trace, status)
    if not response.prepared:
        _complete_headers(request, response)
    _record_metrics(request, route, response.status, time.monotonic() - started_at)
    return response


async def _count_refusal(request: web.Request, error: Exception) -> Exception:
    """Count a refusal that no limit has counted yet as a request without a token. Return what is told to the client.

    This may be RateLimited instead of ``error``. A client that is refused too often in a second waits here.
    """
    limits = request.app[LIMITS]
    is_refusal = isinstance(error, ApiError | web.HTTPException) and error.status < 500
    if is_refusal and CLAIMS not in request and ALLOWANCE not in request:
        try:
            await limits.use(request, ANONYMOUS)
        except RateLimited as too_many:
            error = too_many
    if isinstance(error, RateLimited):
        await limits.delay_refusal(request)
    return error


def read_request_id(sent: str | None) -> str:
    """Return the id of a request: the one that the client sent, if it is valid, else a random one."""
    return sent if sent is not None and _REQUEST_ID_PATTERN.fullmatch(sent) else random_id()


def _begin_trace(request: web.Request, route: Route | None, tracing: Tracing) -> TracedRequest | None:
    """Begin the trace of a request that writes, if it is sampled."""
    if route is None or request.method == "GET" or not route.is_write or route.is_streaming:
        return None
    return tracing.begin(request.method, route.path, request.headers)


def _complete_headers(request: web.Request, response: web.StreamResponse) -> None:
    """Add the headers that every answer has, and those of the limit that is nearest."""
    headers = response.headers
    headers[X_REQUEST_ID] = request[REQUEST_ID]
    if not isinstance(response, JsonResponse):  # which has them already
        for name, value in SAFETY_HEADERS:
            headers.setdefault(name, value)
    if request.app[CONFIG].cors_origins:
        add_cors_headers(request, headers)
    if ALLOWANCE in request:
        headers.update(limit_headers(request))
    if request.app[HUB].is_stopping:
        response.force_close()  # the client's next request finds another server


async def _answer_in_turn(
    request: web.Request, app: web.Application, route: Route | None, handler: Handler, trace: RequestTrace | None
) -> web.StreamResponse:
    """Answer a request when its turn has come. ``route`` is its row in the URL table, None without one.

    A limited number of streams asks Redis at once. One that the front door has read takes its place when it needs it,
    see `begin_to_ask`. One with a body takes none: its sender may be slow, and the others must not wait for it.

    On other routes, the requests of an address take turns, and one timeout limits all Redis calls of a request
    together. Questions of browsers about other origins are answered at once.
    """
    if request.method == "OPTIONS" and (preflight := answer_preflight(request)) is not None:
        return preflight
    methods = app[FIXED_PATHS].get(request.path)
    if methods is not None and request.method not in methods:  # aiohttp may have found a route with a parameter
        raise web.HTTPMethodNotAllowed(request.method, methods)
    if route is None:
        if request.match_info.http_exception is not None:
            return await handler(request)
        route = UNDECLARED_ROUTE
    if route.is_streaming:
        if not is_of_the_door(request) and not request.can_read_body:
            request[OPENING] = await app[LIMITS].openings.place().__aenter__()
        try:
            return await _handle_if_allowed(request, app, route, handler)
        except Exception as error:
            if OPENING in request:
                request[OPENING].give_back(error)
            raise
        finally:
            if OPENING in request:
                request[OPENING].give_back()
    with timeout_budget.TimeoutBudget(app[CONFIG].redis_timeout_seconds, trace):
        # A route without limits, such as a probe of the server's health, must not wait for other requests.
        if not route.rate_limits or not app[LIMITS].are_on:
            return await _handle_if_allowed(request, app, route, handler)
        async with app[LIMITS].turn(request):
            return await _handle_if_allowed(request, app, route, handler)


async def _handle_if_allowed(
    request: web.Request, app: web.Application, route: Route, handler: Handler
) -> web.StreamResponse:
    """Check the query, the token and the limits against the route's row in the URL table, then call the handler.

    The function checks parameter names before the token: a token in the URL, put there by mistake, gets a clear
    error. It checks parameter values after the token, so a client without access sees no error about values.
    """
    limits = app[LIMITS]
    if route.dialect is None and request.rel_url.raw_query_string:
        check_parameter_names(request, route)
    if route.is_streaming:
        reject_when_draining(request)  # before the request uses up its ticket
    if route.websocket is not None and is_websocket_request(request):
        check_handshake(request)
        handler = route.websocket
        if not has_credentials(request):  # the first message of the socket brings a token
            await limits.use(request, ANONYMOUS)
            return await handler(request)
    if route.scope != NO_TOKEN:
        request[CLAIMS] = await authenticate(request, route)
    if limits.are_on:
        await limits.check(request, route.rate_limits)
    if route.scope not in {NO_TOKEN, ANY_TOKEN} and route.scope not in request[CLAIMS].scopes:
        raise Forbidden(f"the token lacks the scope {route.scope}")
    if route.grows_data:
        app[REFUSE_WRITES]()
    if route.query is not None and route.query is not NoQuery:
        request[QUERY] = read_query(request, route.query)
    return await handler(request)


def _error_answer(request: web.Request, route: Route | None, error: Exception) -> web.Response:
    """Return the error answer; log an unexpected exception. Raises ConnectionResetError if an answer has begun."""
    if isinstance(error, web.HTTPException):
        refused = http_exception_to_api_error(request.method, error)
    else:
        refused = to_api_error(error, _request_extra(request))
    if refused is None:
        logger.error("unhandled error in a request handler", exc_info=error, extra=_request_extra(request))
        refused = InternalError("internal error; it was logged")
    if request.writer.output_size > 0:
        raise ConnectionResetError("the response had started; closing the connection") from None
    request.app[METRICS].http.refusals[refused.error_code] += 1
    if isinstance(refused, RateLimited):
        request.app[LIMITS].hits.add(refused.limit)
    if route is not None and route.dialect is not None:
        return route.dialect.error_response(refused)
    response = error_response(refused, token_sent=hdrs.AUTHORIZATION in request.headers)
    if isinstance(error, web.HTTPMethodNotAllowed):
        response.headers[hdrs.ALLOW] = ",".join(sorted(error.allowed_methods))
    return response


def _request_extra(request: web.Request) -> dict[str, str]:
    return {"request_id": request[REQUEST_ID]}


def to_api_error(error: Exception, extra: Mapping[str, str] | None = None) -> ApiError | None:
    """Map an exception to an ApiError. Return None for an unexpected exception, which is an internal error.

    ``extra`` is for the log, which gets what a filter of a third party raised.
    """
    if isinstance(error, ApiError):
        return error
    if isinstance(error, ParameterError):
        if error.__cause__ is not None and not isinstance(error.__cause__, ParameterError):
            # The answer names the type of the exception only: its text is for the operator.
            logger.warning("a filter raised %r", error.__cause__, extra=extra)
        kind = TooLarge if STATUS_BY_CODE[error.code] == 413 else BadRequest
        column = error.column if isinstance(error, RuleError) else None
        return kind(error.message, code=error.code, param=error.param, column=column)
    return None


def _record_metrics(request: web.Request, route: Route | None, status: int, seconds: float) -> None:
    """Count the request, and measure its duration unless it is a stream. Each label has a limited set of values."""
    counters, method = request.app[METRICS].http, request.method
    path = "(unmatched)" if route is None else route.path
    counters.requests[method if method in COUNTED_METHODS else "other", path, status] += 1
    if route is not None and not route.is_streaming:
        counters.add_time(path, seconds)
