"""Handlers of the v2 streams: ``/2/tweets/search/stream`` and ``/2/tweets/sample/stream``.

The search stream uses the rules that its user has saved. Both streams send public posts, without regard to the blocks
and mutes of the user.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from aiohttp import web

from filters.rule import SavedRules
from stream_server.errors import BadRequest
from stream_server.web.dialects.v2_framing import select_v2_framing
from stream_server.web.dialects.v2_parameters import (
    NO_RULES_PROBLEM,
    InvalidValue,
    error_response,
    problem_response,
    rate_limit_headers,
    read_fields,
    read_int,
    read_time,
    read_v2_query,
)
from stream_server.web.http.app_keys import CLAIMS, HUB, STORE
from stream_server.web.http.authentication import read_bearer_token
from stream_server.web.http.request_limits import LIMITS
from stream_server.web.http.usual_request import hold_slot
from stream_server.web.limits.rate_limits import DIALECT_CONNECTS
from stream_server.web.route import JSON_MEDIA_TYPE, Dialect, Request
from stream_server.web.streaming.stream import compress_if_accepted, open_stream
from stream_server.web.streaming.stream_plan import StreamPlan, plan_stream, wait_for_head
from stream_server.web.streaming.stream_start import resolve_start
from stream_server.web.streaming.subscription_parser import SUBSCRIPTION_PARSER


async def read_token(request: Request) -> str:
    """Return the bearer token of a request; raise Unauthorized if there is none."""
    return read_bearer_token(request)


V2_DIALECT = Dialect(error_response, read_token, rate_limit_headers)


async def search_stream(request: Request) -> web.StreamResponse:
    """``GET /2/tweets/search/stream``: send posts that match the caller's saved rules.

    409 if the caller has none now, and had none where the stream begins.
    """
    return await _plan_and_open(request, {"rules": "saved"})


async def sample_stream(request: Request) -> web.StreamResponse:
    """``GET /2/tweets/sample/stream``: send one public post in a hundred, the same ones to every client."""
    return await _plan_and_open(request, {"sample": "1"})


async def _plan_and_open(request: Request, filters: dict[str, str]) -> web.StreamResponse:
    v2_query = read_v2_query(request)
    framing = select_v2_framing(read_fields(v2_query), chunked=request.version >= (1, 1))
    framing = compress_if_accepted(request, framing)
    parameters, minutes = {**filters, "kinds": "post,edit"}, read_int(v2_query, "backfill_minutes", 0, 0, 5)
    if "start_time" in v2_query:
        parameters["since"] = read_time(v2_query, "start_time")
    elif minutes:
        parameters["since"] = f"-{minutes}m"
    await request.app[LIMITS].use(request, DIALECT_CONNECTS)
    with _refuse_future_time(v2_query, "start_time"):
        asked = request.app[SUBSCRIPTION_PARSER].read(parameters, impersonal=True)
        plan = await plan_stream(request, asked, framing)
    saved = plan.subscribe_request.subscription.find_base(SavedRules.name)
    if isinstance(saved, SavedRules) and not len(saved):
        present, _ = await request.app[STORE].rules.get_all(request[CLAIMS].sub)
        if not present:
            return problem_response(NO_RULES_PROBLEM, 409)
    return open_stream(request, await _with_end_time(request, plan, v2_query), JSON_MEDIA_TYPE)


async def _with_end_time(request: Request, plan: StreamPlan, query_parameters: Mapping[str, str]) -> StreamPlan:
    """End the stream at ``end_time``, if present. Raises InvalidValue for a time in the future or before the start."""
    if "end_time" not in query_parameters:
        return plan
    await hold_slot(request)
    log = request.app[STORE].log
    with _refuse_future_time(query_parameters, "end_time"):
        end = await resolve_start(read_time(query_parameters, "end_time"), log, now_ms=log.now_ms, param="since")
    begin = plan.subscribe_request.position
    if end.position.n < begin.n and not plan.known_gaps:  # else all that was asked for is in the gap
        raise InvalidValue("end_time", query_parameters["end_time"], "is before the start of the stream")
    await wait_for_head(request.app[HUB], end.position)
    return plan._replace(subscribe_request=plan.subscribe_request._replace(until=max(begin, end.position)))


@contextmanager
def _refuse_future_time(query_parameters: Mapping[str, str], name: str) -> Iterator[None]:
    """Turn the native BadRequest about a future ``since`` into an InvalidValue about ``name``, while the block runs.

    Twitter's clients know the parameter ``name`` and not ``since``.
    """
    try:
        yield
    except BadRequest as refused:
        if name not in query_parameters or refused.param != "since":
            raise
        raise InvalidValue(name, query_parameters[name], "is in the future") from None
