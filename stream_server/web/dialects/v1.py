"""Handlers of Twitter's v1.1 streams: ``/1.1/statuses/filter.json``, ``sample.json`` and ``firehose.json``.

What a stream sends depends on its parameters, never on the user. An error is a short text with v1.1's HTTP status.
"""

import math

from aiohttp import hdrs, web

from filters.narrowing import Kinds
from filters.subscription import Subscription
from stream_server.errors import ApiError, Unauthorized
from stream_server.hub.framing import Framing
from stream_server.web.dialects import v1_parameters
from stream_server.web.dialects.v1_framing import MEDIA_TYPE, select_v1_framing
from stream_server.web.dialects.v1_parameters import TOKEN_PARAMETER, find_token, read_v1_parameters
from stream_server.web.http.app_keys import CLAIMS, CONFIG, HUB, STORE
from stream_server.web.http.body import read_content_type
from stream_server.web.http.query import query_pairs
from stream_server.web.http.request_limits import LIMITS, rate_limit_headers
from stream_server.web.http.responses import SERVER_NAME
from stream_server.web.http.usual_request import begin_to_ask
from stream_server.web.limits.rate_limit import ANONYMOUS, DIALECT_CONNECTS
from stream_server.web.route import Dialect
from stream_server.web.streaming.parameters import FORM_MEDIA_TYPE
from stream_server.web.streaming.stream import compress_if_accepted, open_stream
from stream_server.web.streaming.stream_plan import StreamPlan, plan_stream
from stream_server.web.streaming.subscription_parser import SUBSCRIPTION_PARSER

SAMPLE_PERCENT = "1"
"""Percentage of the public statuses that ``statuses/sample`` sends."""

V1_STATUS_CODES = {400: 406, 405: 405, 415: 406, 429: 420}
"""For each of this server's error statuses that v1.1 does not use, the status that v1.1 uses instead. 405 stays."""

REASON_420 = "Enhance Your Calm"
"""Reason phrase of status 420, which HTTP does not define."""


async def filter_stream(request: web.Request) -> web.StreamResponse:
    """``/1.1/statuses/filter.json``: send posts in ``language`` that match ``track``, ``follow`` or ``locations``."""
    await request.app[LIMITS].use(request, DIALECT_CONNECTS)
    parameters = await read_v1_parameters(request)
    return await _plan_and_open(request, "statuses/filter", v1_parameters.read_predicates(parameters))


async def sample_stream(request: web.Request) -> web.StreamResponse:
    """``/1.1/statuses/sample.json``: send one public status in a hundred, the same statuses to every client."""
    await request.app[LIMITS].use(request, DIALECT_CONNECTS)
    return await _plan_and_open(request, "statuses/sample", {"sample": SAMPLE_PERCENT})


async def firehose_stream(request: web.Request) -> web.StreamResponse:
    """``/1.1/statuses/firehose.json``: send all public statuses."""
    await request.app[LIMITS].use(request, DIALECT_CONNECTS)
    return await _plan_and_open(request, "statuses/firehose", {"firehose": "true"})


async def read_token(request: web.Request) -> str:
    """Return the token in the Authorization header, else in ``oauth_token`` of the query or of a form.

    Raises Unauthorized if all are absent.
    """
    headers = request.headers.getall(hdrs.AUTHORIZATION, [])
    is_in_url = not headers and any(name == TOKEN_PARAMETER for name, _ in query_pairs(request))
    if is_in_url and request.app[CONFIG].v1_url_credentials != "on":
        raise Unauthorized("a token goes into the Authorization header: a URL is logged (--v1-url-credentials)")
    may_have_form = not headers and read_content_type(request).media_type in {"", FORM_MEDIA_TYPE}
    parameters: dict[str, str] = {}
    if may_have_form:
        if request.can_read_body:  # up to 256 KiB that nobody has proved to be theirs
            await request.app[LIMITS].use(request, ANONYMOUS)
        with request.app[LIMITS].take_unproven(request):
            parameters = await read_v1_parameters(request)
    token = find_token(headers[0] if headers else "", parameters)
    if len(headers) > 1 or token is None:
        raise Unauthorized("send a token: as a Bearer, or as oauth_token of OAuth 1.0a")
    return token


def error_response(error: ApiError) -> web.Response:
    """Return the HTTP response for ``error``: its message as plain text, with the status that v1.1 uses for it."""
    status = 416 if error.param == "count" else V1_STATUS_CODES.get(error.status, error.status)
    response = web.Response(text=f"{error.message}\n", status=status, reason=REASON_420 if status == 420 else None)
    response.headers[hdrs.CACHE_CONTROL] = "no-store"
    if status == 401:
        response.headers[hdrs.WWW_AUTHENTICATE] = f'OAuth realm="{SERVER_NAME}", Bearer realm="{SERVER_NAME}"'
    if status in {420, 503}:
        response.headers[hdrs.RETRY_AFTER] = str(math.ceil(error.retry_after or 1))
    return response


V1_DIALECT = Dialect(error_response, read_token, rate_limit_headers)


async def _plan_and_open(request: web.Request, stream: str, filters: dict[str, str]) -> web.StreamResponse:
    parameters = await read_v1_parameters(request)
    count = v1_parameters.read_count(parameters, request[CLAIMS].scopes)
    no_statuses = v1_parameters.excludes_all_statuses(parameters)
    filters |= v1_parameters.common_filters(parameters)
    options = v1_parameters.read_framing_options(request, stream, parameters)
    framing = compress_if_accepted(request, select_v1_framing(options))
    plan = await _plan(request, filters, framing, count)
    return open_stream(request, _without_statuses(plan) if no_statuses else plan, MEDIA_TYPE)


async def _plan(request: web.Request, filters: dict[str, str], framing: Framing, backfill_count: int) -> StreamPlan:
    """Plan a stream that starts ``abs(backfill_count)`` posts before the head and, if that is negative, ends there."""
    parser = request.app[SUBSCRIPTION_PARSER]
    if backfill_count:
        await begin_to_ask(request)
        head = request.app[HUB].head
        start = await request.app[STORE].log.position_before_posts(abs(backfill_count), head)
        filters["since"] = start.cursor
    plan = await plan_stream(request, parser.read(filters, impersonal=True), framing)
    if backfill_count >= 0:
        return plan
    return plan._replace(subscribe_request=plan.subscribe_request._replace(until=head))


def _without_statuses(stream_plan: StreamPlan) -> StreamPlan:
    """Return a copy of the plan whose filter matches nothing: the client asked for a level that no status has."""
    nothing = Subscription(stream_plan.subscribe_request.subscription.bases, [Kinds(())], viewer_independent=True)
    return stream_plan._replace(subscribe_request=stream_plan.subscribe_request._replace(subscription=nothing))
