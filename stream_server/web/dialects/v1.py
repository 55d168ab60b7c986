"""``/1.1/statuses/{filter,sample,firehose}.json``: the streams of v1.1, the same for all who ask the same.

A refusal is a short text with the status that v1.1 gives it. The token is a Bearer or comes as OAuth 1.0a.
"""

import math

from aiohttp import hdrs, web

from filters.kind import Kinds
from filters.subscription import Subscription
from stream_server.errors import ApiError, Unauthorized
from stream_server.hub.framing import Framing
from stream_server.web.dialects import v1_oauth
from stream_server.web.dialects.connect_limit import count_connect
from stream_server.web.dialects.v1_framing import MEDIA_TYPE, select_v1_framing
from stream_server.web.dialects.v1_parameters import (
    common_filters,
    excludes_all_statuses,
    read_count,
    read_framing_options,
    read_predicates,
    read_v1_parameters,
)
from stream_server.web.http.app_keys import CLAIMS, HUB, STORE
from stream_server.web.http.responses import SERVER_NAME
from stream_server.web.route import Dialect
from stream_server.web.streaming.stream import open_stream
from stream_server.web.streaming.stream_plan import StreamPlan, plan_stream

SAMPLE_PERCENT = "1"
"""What ``statuses/sample`` gives of everything public."""

V1_STATUS_CODES = {400: 406, 405: 405, 415: 406, 429: 420}
"""What v1.1 answers where we have another status."""

REASON_420 = "Enhance Your Calm"
"""The reason phrase of 420, which HTTP does not know."""


async def filter_stream(request: web.Request) -> web.StreamResponse:
    """``statuses/filter``: (track or follow or locations) and language."""
    await count_connect(request)
    parameters = await read_v1_parameters(request)
    return await _plan_and_open(request, "statuses/filter", read_predicates(parameters))


async def sample_stream(request: web.Request) -> web.StreamResponse:
    """``statuses/sample``: one in a hundred, the same ones for everybody."""
    await count_connect(request)
    return await _plan_and_open(request, "statuses/sample", {"sample": SAMPLE_PERCENT})


async def firehose_stream(request: web.Request) -> web.StreamResponse:
    """``statuses/firehose``: everything public."""
    await count_connect(request)
    return await _plan_and_open(request, "statuses/firehose", {"firehose": "true"})


async def read_token(request: web.Request) -> str:
    """The token of a request, in whichever place v1.1 takes one; raises Unauthorized where there is none."""
    headers = request.headers.getall(hdrs.AUTHORIZATION, [])
    found = v1_oauth.find_token(headers[0] if headers else "", {} if headers else await read_v1_parameters(request))
    if len(headers) > 1 or found is None:
        raise Unauthorized("send a token: as a Bearer, or as oauth_token of OAuth 1.0a")
    return found


def error_response(error: ApiError) -> web.Response:
    """The answer for ``error``: a sentence."""
    status = 416 if error.param == "count" else V1_STATUS_CODES.get(error.status, error.status)
    response = web.Response(text=f"{error.message}\n", status=status, reason=REASON_420 if status == 420 else None)
    response.headers[hdrs.CACHE_CONTROL] = "no-store"
    if status == 401:
        response.headers[hdrs.WWW_AUTHENTICATE] = f'OAuth realm="{SERVER_NAME}", Bearer realm="{SERVER_NAME}"'
    if status in {420, 503}:
        response.headers[hdrs.RETRY_AFTER] = str(math.ceil(error.retry_after or 1))
    return response


V1_DIALECT = Dialect(error_response, read_token)


async def _plan_and_open(request: web.Request, stream: str, filters: dict[str, str]) -> web.StreamResponse:
    """Every refusal comes before the first byte."""
    parameters = await read_v1_parameters(request)
    wanted = read_count(parameters, request[CLAIMS].scopes)
    better = excludes_all_statuses(parameters)
    filters |= common_filters(parameters)
    made = await _plan(request, filters, select_v1_framing(read_framing_options(request, stream, parameters)), wanted)
    return await open_stream(request, _without_statuses(made) if better else made, MEDIA_TYPE)


async def _plan(request: web.Request, filters: dict[str, str], framing: Framing, backfill_count: int) -> StreamPlan:
    """From the head; or from before the statuses that are wanted first, and with no others if ``backfill_count`` says so."""
    if not backfill_count:
        return await plan_stream(request, filters, framing, impersonal=True)
    head = request.app[HUB].head
    begin = await request.app[STORE].log.position_before_posts(abs(backfill_count), head)
    made = await plan_stream(request, {**filters, "since": begin.cursor}, framing, impersonal=True)
    return made if backfill_count > 0 else made._replace(subscribe_request=made.subscribe_request._replace(until=head))


def _without_statuses(stream_plan: StreamPlan) -> StreamPlan:
    """The same plan for who wants better statuses than there are: of no kind."""
    none = Subscription(stream_plan.subscribe_request.subscription.bases, [Kinds(())], viewer_independent=True)
    return stream_plan._replace(subscribe_request=stream_plan.subscribe_request._replace(subscription=none))
