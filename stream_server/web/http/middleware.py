"""The middleware of every request: request id, error answers, metrics, and the checks that its route demands.

Access is denied by default: a route missing from the URL table needs a scope that no token has.
"""

import logging
import time
from collections.abc import Mapping
from contextlib import suppress

from aiohttp import hdrs, web

from filters.error import ParameterError
from filters.rules.condition import RuleError
from stream_server.config.public_url import split_public_url
from stream_server.errors import (
    ApiError,
    BadRequest,
    Forbidden,
    InternalError,
    NotFound,
    RateLimited,
    TooLarge,
    Unavailable,
)
from stream_server.store.redis import timeout_budget
from stream_server.store.redis.replicated_client import begin_reads
from stream_server.web.http.app_keys import (
    CLAIMS,
    CONFIG,
    FIXED_PATHS,
    HUB,
    METRICS,
    OPENING,
    QUERY,
    REQUEST_ID,
    STORE,
    TRACING,
    WRITE_GUARD,
)
from stream_server.web.http.authentication import authenticate, require_route_for_readers
from stream_server.web.http.cors import add_cors_headers, answer_preflight
from stream_server.web.http.moved_pages import find_page, missing_page, redirect
from stream_server.web.http.opening import OpeningState
from stream_server.web.http.query import check_parameter_names, read_query
from stream_server.web.http.request_limits import ALLOWANCE, LIMITS, is_counted, limit_headers, reject_when_draining
from stream_server.web.http.responses import (
    OPENED,
    SAFETY_HEADERS,
    X_REQUEST_ID,
    error_response,
    http_exception_to_api_error,
    read_request_id,
)
from stream_server.web.limits.rate_limits import ANONYMOUS, FILES
from stream_server.web.route import ANY_TOKEN, NO_TOKEN, NoQuery, Request, Route
from stream_server.web.websocket.handshake import check_handshake, has_credentials, is_websocket_request
from stream_server.wire.errors import STATUS_BY_CODE

logger = logging.getLogger(__name__)

CLIENT_LEFT = 499
"""Instead of a status in a trace: the client has disconnected before the answer."""


async def _refuse(request: Request) -> web.StreamResponse:
    """Redirect a request that no route serves, if it means a page. Else raise the refusal of an unknown path or method.

    A target with a ``#`` gets BadRequest. It must not have one (RFC 9112 section 3.2), and libraries drop what follows.
    """
    assert isinstance(request, web.Request)  # the front door reads requests of known paths alone
    if "#" in request.raw_path:
        raise BadRequest("in a URL, a `#` is written as %23")
    methods = request.app[FIXED_PATHS].get(request.path)
    if methods is not None and request.method not in methods:
        raise web.HTTPMethodNotAllowed(request.method, methods)
    page = None if methods else find_page(request)
    if page is not None:
        await request.app[LIMITS].use(request, FILES)
        return redirect(request, page)
    if request.path.endswith("/"):
        raise NotFound("no path of this server ends with a slash")
    raise request.match_info.http_exception or NotFound(f"this path does not serve {request.method}")


UNDECLARED = Route("*", "(undeclared)", _refuse, scope="(nobody has this scope)")
"""Stands for each route that is missing from the URL table. No token has its scope, so the request is refused."""

UNMATCHED = Route("*", "(unmatched)", _refuse, scope=NO_TOKEN, is_write=False)
"""Stands for a path that no route has, or a method that its route does not have."""


async def handle_request(request: Request, route: Route) -> web.StreamResponse:
    """Give the request an id, check it, turn every exception into an error answer, and record the metrics.

    ``route`` is its row in the URL table. Raises ConnectionError if the client has disconnected.

    A request that is no stream runs in a task of its own, with which the timeout of its Redis calls is forgotten.
    """
    started_at = time.monotonic()
    app = request.app
    request[REQUEST_ID] = read_request_id(request.headers.get(X_REQUEST_ID))
    trace = budget = None
    if TRACING in app and route.is_write and request.method != "GET" and not route.is_streaming:
        trace = app[TRACING].begin(request.method, route.path, request.headers)  # None if it is no sample
    if not route.is_streaming:
        budget = timeout_budget.TimeoutBudget(app[CONFIG].redis_timeout_seconds, trace)
        timeout_budget.CURRENT.set(budget)
    status = CLIENT_LEFT
    try:
        try:
            if route is UNMATCHED:
                response = answer_preflight(request) or await _refuse(request)
            elif route.is_streaming or (route.rate_limits and app[CONFIG].limits != "off"):
                response = await _handle_in_turn(request, route)
            else:  # a route without limits, such as a probe of the server's health, must not wait for other requests
                response = await _handle_if_allowed(request, route)
        except ConnectionError:
            raise  # the client cannot receive an answer, and the server has not failed
        except Exception as error:  # noqa: BLE001 - this is the one place that turns every exception into an answer
            if budget is not None:
                error = budget.judge(error)
            response = _error_answer(request, route, await _count_refusal(request, error))
        status = response.status
    finally:  # also if the handler was cancelled, because the client has disconnected
        if budget is not None and budget.appended_bytes and app[CONFIG].limits != "off":
            app[LIMITS].charge_appended(request, budget.appended_bytes)
        if trace is not None:
            app[TRACING].end(trace, status)
    if response is not OPENED and not response.prepared:
        _complete_headers(request, response)
    seconds = None if route.is_streaming or route is UNMATCHED else time.monotonic() - started_at
    app[METRICS].http.count(request.method, route.path, response.status, seconds)
    return response


async def _count_refusal(request: Request, error: Exception) -> Exception:
    """Count a refused request that no limit has counted yet, as a request without a token. Return the error to send.

    This is RateLimited instead of ``error`` if the client has too many such requests. A client that is refused too
    often in one second has to wait here.
    """
    limits = request.app[LIMITS]
    is_refusal = isinstance(error, ApiError | web.HTTPException) and error.status < 500
    with suppress(Unavailable):  # a stream whose slot does not come is refused without being counted
        if is_refusal and CLAIMS not in request and not is_counted(request):
            try:
                await limits.use(request, ANONYMOUS)
            except RateLimited as too_many:
                error = too_many
        if isinstance(error, RateLimited):
            await limits.delay_refusal(request)
    return error


def _complete_headers(request: Request, response: web.StreamResponse) -> None:
    """Add the headers that every answer has, and the ``RateLimit`` headers of the limit with the least left."""
    headers, app = response.headers, request.app
    if headers.get(hdrs.LOCATION, "").startswith("/"):
        headers[hdrs.LOCATION] = split_public_url(app[CONFIG].public_url).path + headers[hdrs.LOCATION]
    headers[X_REQUEST_ID] = request[REQUEST_ID]
    if hdrs.SERVER not in headers:  # JSON answers have them from the start
        for name, value in SAFETY_HEADERS:
            headers.setdefault(name, value)
    if app[CONFIG].cors_origins:
        add_cors_headers(request, headers)
    if ALLOWANCE in request:
        headers.update(limit_headers(request))
    if app[HUB].is_stopping:
        response.force_close()  # the client's next request finds another server


async def _handle_in_turn(request: Request, route: Route) -> web.StreamResponse:
    """Answer a request when its turn has come.

    On most routes, the requests of an address take turns. Of the requests for streams, a limited number asks Redis at
    once. A request that the front door has read waits for its slot only when it needs one. One that aiohttp has read
    waits for its slot here, see `Opening`.
    """
    limits = request.app[LIMITS]
    if not route.is_streaming:
        async with limits.turn(request):
            return await _handle_if_allowed(request, route)
    opening = request[OPENING]
    try:
        if opening.state is OpeningState.WITHOUT_SLOT:
            await opening.hold_slot()
        return await _handle_if_allowed(request, route)
    except Exception as error:
        opening.give_back(error)
        raise
    finally:
        if opening.slot is not None:
            opening.give_back()


async def _handle_if_allowed(request: Request, route: Route) -> web.StreamResponse:
    """Check the query, the token and the limits against the route's row in the URL table, then call the handler.

    The function checks parameter names before the token: a token in the URL, put there by mistake, gets a clear
    error. It checks parameter values after the token, so a client without access sees no error about values.
    """
    app, handler = request.app, route.handler
    limits = app[LIMITS]
    if route.dialect is None and request.rel_url.raw_query_string:
        check_parameter_names(request, route)
    if route.is_streaming:
        reject_when_draining(request)  # before the request uses up its ticket
    if hdrs.UPGRADE in request.headers and route.websocket is not None and is_websocket_request(request):
        check_handshake(request)
        handler = route.websocket
        if not has_credentials(request):  # the first message of the socket brings a token
            await limits.use(request, ANONYMOUS)
            return await handler(request)
    if route.scope != NO_TOKEN:
        request[CLAIMS] = await authenticate(request, route)
        if request[CLAIMS].reader is not None:
            require_route_for_readers(route)
    if app[CONFIG].limits != "off":
        await limits.check(request, route.rate_limits, is_for_safety=bool(route.is_for_safety))
    if route.scope not in {NO_TOKEN, ANY_TOKEN} and route.scope not in request[CLAIMS].scopes:
        raise Forbidden(f"the token lacks the scope {route.scope}")
    if route.grows_data and app[WRITE_GUARD].is_refusing:
        app[WRITE_GUARD].refuse_writes()
    if route.query is not None and route.query is not NoQuery:
        request[QUERY] = read_query(request, route.query)
    if route.method == "GET" and app[STORE].replicas and route.scope != NO_TOKEN and not route.is_streaming:
        begin_reads()  # not before, because a token and a limit are checked on the primary
    return await handler(request)


def _error_answer(request: Request, route: Route, error: Exception) -> web.Response:
    """Return the error answer; log an unexpected exception. Raises ConnectionResetError if an answer has begun."""
    extra = {"request_id": request[REQUEST_ID]}
    if isinstance(error, web.HTTPException):
        refused = http_exception_to_api_error(request.method, error)
    else:
        refused = to_api_error(error, extra)
    if refused is None:
        logger.error("unhandled error in a request handler", exc_info=error, extra=extra)
        refused = InternalError("internal error; it was logged")
    if isinstance(request, web.BaseRequest) and request.writer.output_size > 0:
        raise ConnectionResetError("the response had started; closing the connection") from None
    request.app[METRICS].http.refusals[refused.error_code] += 1
    if isinstance(refused, RateLimited):
        request.app[LIMITS].hits.add(refused.limit)
    if route.dialect is not None:
        return route.dialect.error_response(refused)
    is_of_pages = route is UNMATCHED or route.media_type in {"text/html", "text/javascript"}
    if refused.status == 404 and is_of_pages and (page := missing_page(request, refused.message)) is not None:
        return page
    response = error_response(refused, token_sent=hdrs.AUTHORIZATION in request.headers)
    if isinstance(error, web.HTTPMethodNotAllowed):
        response.headers[hdrs.ALLOW] = ",".join(sorted(error.allowed_methods))
    return response


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
