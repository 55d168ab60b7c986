"""Handlers of Twitter's v1.1 streams: ``/1.1/statuses/filter.json``, ``sample.json`` and ``firehose.json``.

What a stream sends depends on its parameters, never on the user. An error is a short text with v1.1's HTTP status.

Parameters are translated into those of ``/v1/stream``. Unknown names are ignored, because some clients misspell names.
An empty value counts as absent.
"""

import math
import re
from collections.abc import Callable, Collection, Mapping
from urllib.parse import unquote

from aiohttp import hdrs, web

from filters.location import MAX_BOXES
from filters.narrowing import Kinds
from filters.subscription import Subscription
from stream_server.errors import ApiError, BadRequest, NotAcceptable, Unauthorized
from stream_server.web.dialects.v1_framing import V1FramingOptions, select_v1_framing
from stream_server.web.http.app_keys import CLAIMS, CONFIG, HUB, STORE
from stream_server.web.http.body import read_content_type
from stream_server.web.http.query import query_of
from stream_server.web.http.request_limits import LIMITS, rate_limit_headers
from stream_server.web.http.responses import SERVER_NAME
from stream_server.web.http.usual_request import hold_slot
from stream_server.web.limits.rate_limits import ANONYMOUS, DIALECT_CONNECTS
from stream_server.web.route import JSON_MEDIA_TYPE, Dialect, Request
from stream_server.web.streaming.parameters import FORM_MEDIA_TYPE, read_stream_parameters
from stream_server.web.streaming.stream import compress_if_accepted, open_stream
from stream_server.web.streaming.stream_plan import plan_stream
from stream_server.web.streaming.subscription_parser import SUBSCRIPTION_PARSER

V1_PARAMETERS = web.RequestKey("v1_parameters", dict[str, str])
"""The request's parameters, read once. Authentication may need them before the handler, to find the token."""

FILTER_PARAMETERS = ("track", "follow", "locations")

LIST_SEPARATORS = dict.fromkeys((*FILTER_PARAMETERS, "language"), ",")
"""Parameters that a client may repeat, and the separator that joins their values."""

FILTER_LEVELS = {"none": False, "low": False, "medium": True}
"""Values of ``filter_level``, and whether the value excludes all statuses of this server."""

MAX_BACKFILL_COUNT = 150_000
"""Most earlier statuses that a client may request with ``count``."""

TOKEN_PARAMETER = "oauth_token"  # noqa: S105 - the name of a parameter
"""Parameter of OAuth 1.0a (RFC 5849 §3.5) that carries an access token of this server, which is sufficient proof.

The server ignores the signature, because it never issues the two secrets that a signature proves.
"""

_HEADER_PARAMETER = re.compile(r'(?<![a-z_])([a-z_]{1,40})\s*=\s*"([^"]*)"')
_COUNT = re.compile(r"-?[0-9]{1,9}")


async def read_v1_parameters(request: Request) -> dict[str, str]:
    """Return the nonempty parameters of the query and the form. Repeated list parameters are joined with commas."""
    if V1_PARAMETERS not in request:
        request[V1_PARAMETERS] = await read_stream_parameters(
            request, LIST_SEPARATORS, lambda pairs: {name: value for name, value in pairs.items() if value}
        )
    return request[V1_PARAMETERS]


def read_predicates(parameters: Mapping[str, str]) -> dict[str, str]:
    """Return the filters track, follow and locations. Raises NotAcceptable if all are absent or one is invalid."""
    filters = {name: parameters[name] for name in FILTER_PARAMETERS if name in parameters}
    if not filters:
        raise NotAcceptable("No filter parameters found. Expect at least one parameter: follow track locations")
    if not re.fullmatch(r"[0-9,\s]+", filters.get("follow", "0")):
        raise NotAcceptable("follow must be a list of numeric user ids", param="follow")
    _check_boxes(filters.get("locations", "").split(","))
    return filters


def common_filters(parameters: Mapping[str, str]) -> dict[str, str]:
    """Return the filters of every v1.1 stream: its kinds, and ``language`` if requested."""
    language = {"language": parameters["language"]} if "language" in parameters else {}
    return {"kinds": "post,edit,delete", **language}


def excludes_all_statuses(parameters: Mapping[str, str]) -> bool:
    """Whether no status of this server has the ``filter_level``. Raises NotAcceptable if Twitter has no such level."""
    level = parameters.get("filter_level", "none").lower()
    if level not in FILTER_LEVELS:
        raise NotAcceptable(f"filter_level must be one of {', '.join(FILTER_LEVELS)}", param="filter_level")
    return FILTER_LEVELS[level]


def read_count(parameters: Mapping[str, str], scopes: Collection[str]) -> int:
    """Return the parameter ``count``, or 0 if absent. The stream starts ``abs(count)`` posts before the head.

    A stream with a negative count ends at the head. A count of 0 is no count: Twitter4J sends it with each filter.
    Raises BadRequest for another count that is out of bounds, or that comes with a token without the scope
    ``firehose``.
    """
    text = parameters.get("count", "0")
    count = int(text) if _COUNT.fullmatch(text) else None
    if count == 0:
        return 0
    if "firehose" not in scopes:
        raise BadRequest("count needs the scope firehose", param="count")
    if count is None or abs(count) > MAX_BACKFILL_COUNT:
        bounds = f"from 1 to {MAX_BACKFILL_COUNT}, or from -1 to -{MAX_BACKFILL_COUNT}"
        raise BadRequest(f"count must be a number {bounds}", param="count")
    return count


def _check_boxes(numbers: list[str]) -> None:
    """Raise NotAcceptable, as v1.1 does, if a box of ``locations`` has invalid degrees or crosses longitude 180."""
    try:
        degrees = [] if len(numbers) % 4 or len(numbers) > 4 * MAX_BOXES else list(map(float, numbers))
    except ValueError:
        return
    if not all(map(math.isfinite, degrees)):
        return
    for start in range(0, len(degrees), 4):
        box = ", ".join(number.strip() for number in numbers[start : start + 4])
        west, south, east, north = degrees[start : start + 4]
        if max(abs(west), abs(east)) > 180 or max(abs(south), abs(north)) > 90:
            raise NotAcceptable(f"Latitude/longitude are not valid: {box}", param="locations")
        if west >= east or south >= north:
            message = f"Bounding box is invalid: {box}. The first pair must be the SW corner of the box"
            raise NotAcceptable(message, param="locations")


def find_token(authorization: str, parameters: Mapping[str, str]) -> str | None:
    """Return the token in the Authorization header or, if that is absent, ``oauth_token``. None if both are absent."""
    scheme, _, credentials = authorization.strip().partition(" ")
    if scheme.lower() == "bearer":
        return credentials.strip() or None
    if scheme.lower() == "oauth":
        pairs = _HEADER_PARAMETER.findall(credentials)
        return next((unquote(value) for name, value in pairs if name == TOKEN_PARAMETER), None) or None
    return None if scheme else parameters.get(TOKEN_PARAMETER) or None


async def filter_stream(request: Request) -> web.StreamResponse:
    """``/1.1/statuses/filter.json``: send posts in ``language`` that match ``track``, ``follow`` or ``locations``."""
    return await _plan_and_open(request, "statuses/filter", read_predicates)


async def sample_stream(request: Request) -> web.StreamResponse:
    """``/1.1/statuses/sample.json``: send one public status in a hundred, the same statuses to every client."""
    return await _plan_and_open(request, "statuses/sample", lambda _: {"sample": "1"})


async def firehose_stream(request: Request) -> web.StreamResponse:
    """``/1.1/statuses/firehose.json``: send all public statuses."""
    return await _plan_and_open(request, "statuses/firehose", lambda _: {"firehose": "true"})


async def read_token(request: Request) -> str:
    """Return the token in the Authorization header, else in ``oauth_token`` of the query or of a form.

    Raises Unauthorized if all are absent.
    """
    headers = request.headers.getall(hdrs.AUTHORIZATION, [])
    is_in_url = not headers and TOKEN_PARAMETER in query_of(request).names
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
    # v1.1 uses other statuses in the place of these. HTTP does not define 420, so it needs its reason phrase.
    status = 416 if error.param == "count" else {400: 406, 415: 406, 429: 420}.get(error.status, error.status)
    reason = "Enhance Your Calm" if status == 420 else None
    response = web.Response(text=f"{error.message}\n", status=status, reason=reason)
    response.headers[hdrs.CACHE_CONTROL] = "no-store"
    if status == 401:
        response.headers[hdrs.WWW_AUTHENTICATE] = f'OAuth realm="{SERVER_NAME}", Bearer realm="{SERVER_NAME}"'
    if status in {420, 503}:
        response.headers[hdrs.RETRY_AFTER] = str(math.ceil(error.retry_after or 1))
    return response


V1_DIALECT = Dialect(error_response, read_token, rate_limit_headers)


async def _plan_and_open(
    request: Request, stream: str, read_filters: Callable[[Mapping[str, str]], dict[str, str]]
) -> web.StreamResponse:
    """Open the stream of a route. ``read_filters`` returns its filters by the parameters, or refuses these."""
    await request.app[LIMITS].use(request, DIALECT_CONNECTS)
    parameters = await read_v1_parameters(request)
    filters = read_filters(parameters) | common_filters(parameters)
    count = read_count(parameters, request[CLAIMS].scopes)
    no_statuses = excludes_all_statuses(parameters)
    # An option with an unknown value counts as off.
    delimited = parameters.get("delimited", "").lower() == "length"
    stall_warnings = parameters.get("stall_warnings", "").lower() == "true"
    options = V1FramingOptions(stream, delimited, stall_warnings, request.version >= (1, 1))
    framing = compress_if_accepted(request, select_v1_framing(options))
    if count:  # the stream begins so many posts before the head
        await hold_slot(request)
        head = request.app[HUB].head
        filters["since"] = (await request.app[STORE].log.position_before_posts(abs(count), head)).cursor
    plan = await plan_stream(request, request.app[SUBSCRIPTION_PARSER].read(filters, impersonal=True), framing)
    if count < 0:
        plan = plan._replace(subscribe_request=plan.subscribe_request._replace(until=head))
    if no_statuses:  # then the filter matches nothing: the client asked for a level that no status has
        asked = plan.subscribe_request
        nothing = Subscription(asked.subscription.bases, [Kinds(())], viewer_independent=True)
        plan = plan._replace(subscribe_request=asked._replace(subscription=nothing))
    return open_stream(request, plan, JSON_MEDIA_TYPE)
