"""Long polling: a request gets the next events of a stream in one answer, with a cursor for the next request."""

import re
from functools import partial
from typing import Annotated, Any, NamedTuple

import msgspec
from aiohttp import hdrs, web
from msgspec import Meta

from stream_server.errors import BadRequest
from stream_server.hub import messages
from stream_server.hub.delivery import Delivery
from stream_server.hub.messages import Gap, StreamNotice
from stream_server.hub.poll import LongPoll, PollResult
from stream_server.web.http.app_keys import CONFIG, HUB, OPENING
from stream_server.web.http.fields import LogCursor
from stream_server.web.http.request_limits import LIMITS, reject_when_draining
from stream_server.web.openapi.messages import MESSAGE, reference
from stream_server.web.route import Request
from stream_server.web.streaming.compression import GZIP
from stream_server.web.streaming.events_before import BEFORE_PARAMETER, read_events_before
from stream_server.web.streaming.filtered_stream import refuse_summary, take_named_stream
from stream_server.web.streaming.framing import NDJSON, select_framing
from stream_server.web.streaming.parameters import read_stream_parameters
from stream_server.web.streaming.stream import accepted_coding, filter_warnings
from stream_server.web.streaming.stream_plan import LAST_EVENT_ID_HEADER, plan_stream
from stream_server.web.streaming.subscription_parser import (
    SUBSCRIPTION_PARSER,
    NamedFilters,
    StreamFilters,
    SubscriptionParser,
)

WAIT_SECONDS_BOUNDS = (25, 0, 60)
"""Default, minimum and maximum of the ``wait`` parameter, in seconds."""

LIMIT_BOUNDS = (100, 1, 1000)
"""Default, minimum and maximum of the ``limit`` parameter."""

_NUMBER_PATTERN = re.compile(r"\d{1,9}(\.\d{1,9})?", re.ASCII)

MIN_COMPRESSED_BYTES = 1024
"""Length of an answer from which gzip is worth its header and the client's time."""


class PolledEvents(msgspec.Struct):
    """Matching events, and the cursor for the next request. If ``more`` is true, the log has later entries.

    ``connection`` is there for a shared subscription: the next poll sends it with the cursor.
    """

    events: Annotated[
        list[Any],
        Meta(description="each is a message as in a stream", extra_json_schema={"items": reference(MESSAGE)}),
    ]
    cursor: LogCursor
    more: bool
    connection: (
        Annotated[str, Meta(description="of a shared subscription: send it with the cursor")] | msgspec.UnsetType
    ) = msgspec.UNSET


async def poll_events(request: Request) -> web.Response:
    """``GET`` and ``POST /v1/events``: answer as soon as an event matches, or without events after ``wait`` seconds.

    A HEAD request does not wait. A user has few polls at the same time, also while their filters are parsed.
    """
    limits = request.app[LIMITS]
    with limits.running(request, limits.polls):
        return await _poll(request)


class _Asked(NamedTuple):
    """The parameters of a poll, parsed. ``is_first`` is whether the poll goes on from no other.

    ``before`` is the place before which the wanted events are, as the client wrote it. None for those after a place.
    """

    start_parameter: str
    is_first: bool
    wait: float
    limit: float
    before: str | None
    filters: StreamFilters


def _read_poll(request: Request, parser: SubscriptionParser, parameters: dict[str, str]) -> _Asked:
    start_parameter = "cursor" if "cursor" in parameters else "since"
    if start_parameter == "cursor" and "since" in parameters:
        message = "`cursor` is another name of `since`; send only one of them"
        raise BadRequest(message, code="conflicting_parameters", param="cursor")
    is_first = start_parameter not in parameters and LAST_EVENT_ID_HEADER not in request.headers
    wait = _pop_number(parameters, "wait", *WAIT_SECONDS_BOUNDS)
    limit = _pop_number(parameters, "limit", *LIMIT_BOUNDS)
    if limit != int(limit):
        raise BadRequest("must be a whole number", param="limit")
    before = parameters.pop(BEFORE_PARAMETER, None)
    filters = parser.read_stream(parameters, start_parameter=start_parameter)
    if isinstance(filters, NamedFilters):
        filters = filters._replace(poll_seconds=wait)
    else:
        refuse_summary(filters)
    return _Asked(start_parameter, is_first, wait, limit, before, filters)


def _pop_number(parameters: dict[str, str], name: str, default: float, minimum: float, maximum: float) -> float:
    """Remove the parameter ``name``; return its number, or ``default`` if absent. Raises BadRequest out of bounds."""
    text = parameters.pop(name, None)
    value = default if text is None else float(text) if _NUMBER_PATTERN.fullmatch(text) else float("nan")
    if not minimum <= value <= maximum:
        raise BadRequest(f"must be a number from {minimum:g} to {maximum:g}", param=name)
    return value


async def _poll(request: Request) -> web.Response:
    hub, parser = request.app[HUB], request.app[SUBSCRIPTION_PARSER]
    read = partial(_read_poll, request, parser)
    async with request[OPENING].given_back():  # those who wait for their turn must not keep others from Redis
        asked = await read_stream_parameters(request, parser.separators, read, in_turn=True)
    if asked.before is None:
        body = await _read_after(request, asked)
    else:
        reject_when_draining(request)
        framing = select_framing(NDJSON, chunked=True)
        page = await read_events_before(
            request, asked.filters, asked.before, int(asked.limit), framing, asked.start_parameter
        )
        body = _encode_answer(PollResult([*page.items], page.position, page.has_more, None), [], hub.now_ms(), b"")
    coding = accepted_coding(request)
    headers = {hdrs.CONTENT_TYPE: "application/json; charset=utf-8", hdrs.CACHE_CONTROL: "no-store"}
    # A longer one is compressed in a thread, because the event loop would wait for a millisecond and more.
    response = web.Response(body=body, headers=headers, zlib_executor_size=65_536)
    if request.app[CONFIG].compress_streams == "on":  # then the answer depends on the header (RFC 9110 §12.5.5)
        response.headers[hdrs.VARY] = hdrs.ACCEPT_ENCODING
    if coding == GZIP and len(body) >= MIN_COMPRESSED_BYTES:
        response.enable_compression(web.ContentCoding.gzip)
    return response


async def _read_after(request: Request, asked: _Asked) -> bytes:
    """Return the answer with the events after the place where the poll begins."""
    hub, framing = request.app[HUB], select_framing(NDJSON, chunked=True)
    if isinstance(asked.filters, NamedFilters):
        plan = await take_named_stream(request, asked.filters, framing)
    else:
        plan = await plan_stream(request, asked.filters, framing, asked.start_parameter)
    reject_when_draining(request)
    poll = LongPoll(hub, plan.subscribe_request, limit=int(asked.limit), initial_gaps=plan.known_gaps)
    opened = plan.subscribe_request
    warnings = filter_warnings(opened.subscription, opened.position) if asked.is_first else []
    request[OPENING].give_back()
    polled = await poll.run(0 if warnings or request.method == hdrs.METH_HEAD else asked.wait)
    connection = b"" if plan.lease is None else b',"connection":"%b"' % opened.connection_id.encode()
    return _encode_answer(polled, warnings, hub.now_ms(), connection)


def _encode_answer(polled: PollResult, warnings: list[StreamNotice], now_ms: int, more_members: bytes) -> bytes:
    """Return a poll's JSON answer: the warnings about its filters, events, cursor, and whether more follow.

    A `goodbye` ends the events if the hub ended the poll. ``more_members`` stand at the end.
    """
    parts = [encode_item(item, now_ms) for item in (*warnings, *polled.items)]
    if polled.disconnect_reason is not None:
        parts.append(messages.goodbye_message(polled.position, now_ms, polled.disconnect_reason).data)
    more = b"true" if polled.has_more else b"false"
    cursor = polled.position.cursor.encode()
    return b'{"events":[%b],"cursor":"%b","more":%b%b}' % (b",".join(parts), cursor, more, more_members)


def encode_item(item: Delivery | Gap | StreamNotice, now_ms: int) -> bytes:
    """Return the JSON of one item of an answer."""
    if isinstance(item, Delivery):
        return item.entry.message_json(item.matched_json)
    return messages.notice_message(item, now_ms).data
