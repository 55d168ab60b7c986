"""Opens streams for `/v1/stream` and `/v1/stream/user`: one long response of Server-Sent Events or JSON lines."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from functools import partial

import msgspec
from aiohttp import hdrs, web

from filters.follow import MAX_IDS
from filters.location import MAX_BOXES
from filters.subscription import Subscription
from filters.track import MAX_PHRASES
from stream_server import __version__
from stream_server.events.position import Position
from stream_server.hub import messages
from stream_server.hub.framing import IDENTITY, Framing
from stream_server.hub.hub import Hub
from stream_server.hub.messages import StreamNotice
from stream_server.hub.stream_session import StreamSession
from stream_server.web.http.app_keys import CONFIG, HUB, REQUEST_ID
from stream_server.web.http.body import MAX_BODY_BYTES
from stream_server.web.http.cors import cors_headers
from stream_server.web.http.request_limits import (
    ALLOWANCE,
    LIMITS,
    StreamPlace,
    rate_limit_headers,
    reject_when_draining,
)
from stream_server.web.http.responses import OPENED, SERVER_NAME, date_header
from stream_server.web.http.stream_request import connection_of
from stream_server.web.streaming.compression import begin_body, compress_framing, negotiate_content_coding
from stream_server.web.streaming.framing import negotiate_media_type, select_framing, wrap_chunk, wrap_raw
from stream_server.web.streaming.parameters import read_stream_parameters
from stream_server.web.streaming.response_head import HeadKind, encode_head, encode_usual_head
from stream_server.web.streaming.stream_connection import StreamConnection
from stream_server.web.streaming.stream_plan import StreamPlan, plan_stream, plan_user_stream
from stream_server.web.streaming.subscription_parser import SUBSCRIPTION_PARSER

STREAM_BODY_FACTOR = 4
"""A stream's parameters may have this many times the bytes of a write's body, because 5,000 ids take 90 KB."""

Planner = Callable[[web.Request, dict[str, str], Framing], Awaitable[StreamPlan]]
"""Turns a request, its parameters and a framing into a plan; raises for each refusal."""

HELLO_LIMITS = msgspec.json.encode({"track": MAX_PHRASES, "follow": MAX_IDS, "locations": MAX_BOXES}).decode()
"""Limits that `hello` reports, encoded: most phrases, ids and boxes of one stream."""

HELLO_SERVER = f"{SERVER_NAME}/{__version__}"
"""Name and version of the server that `hello` reports."""

COSTLY_FILTER = "costly_filter"
"""Code of the ``warning`` for a filter without index keys. The hub must test such a filter on every event."""

NEVER_MATCHES = "never_matches"
"""Code of the ``warning`` for terms or phrases of a filter that can match no text."""


async def filter_stream(request: web.Request) -> web.StreamResponse:
    """``GET`` and ``POST /v1/stream``: send live events that match the filters in the parameters."""
    return await _plan_and_open(request, plan_stream, is_personal=False)


async def user_stream(request: web.Request) -> web.StreamResponse:
    """``GET`` and ``POST /v1/stream/user``: send live events by users whom the caller follows, or about the caller."""
    return await _plan_and_open(request, plan_user_stream, is_personal=True)


async def _plan_and_open(request: web.Request, planner: Planner, *, is_personal: bool) -> web.StreamResponse:
    """Check the request with ``planner``, then open the stream. All errors come before the first byte of the answer."""
    media_type = negotiate_media_type(request.headers.get(hdrs.ACCEPT, "*/*"))
    framing = select_framing(media_type, chunked=supports_chunked(request))
    framing = compress_if_accepted(request, framing, apart=is_personal)
    max_bytes = STREAM_BODY_FACTOR * MAX_BODY_BYTES
    separators = request.app[SUBSCRIPTION_PARSER].separators
    plan = await planner(request, await read_stream_parameters(request, max_bytes, separators), framing)
    return await open_stream(request, plan, f"{media_type}; charset=utf-8")


def supports_chunked(request: web.Request) -> bool:
    """Whether the client understands chunked responses. HTTP/1.0 does not."""
    return request.version >= (1, 1)


def compress_if_accepted(request: web.Request, framing: Framing, *, apart: bool = False) -> Framing:
    """Return ``framing`` with gzip if the client accepts it. For ``apart``, see `compress_framing`.

    Raises NotAcceptable if the client accepts neither gzip nor plain bytes.
    """
    return framing if accepted_coding(request) == IDENTITY else compress_framing(framing, apart=apart)


def accepted_coding(request: web.Request) -> str:
    """Return the content coding for the request's `Accept-Encoding`. Raises NotAcceptable if there is none."""
    if request.app[CONFIG].compress_streams == "off":
        return IDENTITY
    return negotiate_content_coding(request.headers.get(hdrs.ACCEPT_ENCODING))


def add_vary(request: web.Request, headers: MutableMapping[str, str]) -> None:
    """Tell caches that the answer depends on `Accept-Encoding`, whether it is compressed or not (RFC 9110 §12.5.5)."""
    if request.app[CONFIG].compress_streams == "on":
        headers[hdrs.VARY] = hdrs.ACCEPT_ENCODING


async def open_stream(
    request: web.Request, stream_plan: StreamPlan, content_type: str, extra_headers: Mapping[str, str] | None = None
) -> web.StreamResponse:
    """Send the response head and `hello`, then hand the connection over from the HTTP server to the hub.

    To a HEAD request, answer the head of the stream that a GET would open now (RFC 9110 §9.3.2). The plan fixes the
    start position, so the stream misses no event between planning and opening. Raises Unavailable if the server began
    to shut down after planning, and RateLimited if the address has too many streams.
    """
    reject_when_draining(request)
    if request.method != hdrs.METH_HEAD:
        open_stream_now(request, stream_plan, content_type, extra_headers)
        return OPENED
    request.app[LIMITS].take_stream(request)()
    kind = _head_kind(request, stream_plan.subscribe_request.framing.content_coding, content_type)
    # The middleware adds the headers for pages of other origins.
    return web.StreamResponse(headers=kind._replace(cors=()).headers(request[REQUEST_ID], {}, {}))


def open_stream_now(
    request: web.Request, stream_plan: StreamPlan, content_type: str, extra_headers: Mapping[str, str] | None = None
) -> None:
    """Send the response head and `hello` in one write, and let the hub have the connection.

    Raises RateLimited if the address has too many streams, and ConnectionError if the client has left.
    """
    framing = stream_plan.subscribe_request.framing
    head = _encode_head(request, framing.content_coding, content_type, extra_headers)
    start_stream(request, stream_plan, head, hello_bytes(request.app, stream_plan))


def start_stream(request: web.Request, stream_plan: StreamPlan, head: bytes, first: bytes) -> None:
    """Send ``head`` and the messages ``first``, and let the hub have the connection. Raises as `open_stream_now`."""
    place = request.app[LIMITS].take_stream(request)
    try:
        wrap = wrap_chunk if supports_chunked(request) else wrap_raw
        data = head + wrap(begin_body(stream_plan.subscribe_request.framing, first))
        connection_of(request).hand_over(partial(_make_connection, request, stream_plan, place, data))
    except BaseException:
        place()
        raise


def _encode_head(
    request: web.Request, content_coding: str, content_type: str, extra_headers: Mapping[str, str] | None
) -> bytes:
    kind, request_id = _head_kind(request, content_coding, content_type), request[REQUEST_ID]
    if extra_headers:
        return encode_head(kind.version, kind.headers(request_id, extra_headers, {}), date_header())
    limits = rate_limit_headers(request[ALLOWANCE]) if ALLOWANCE in request else {}
    return encode_usual_head(kind, request_id, limits)


def _head_kind(request: web.Request, content_coding: str, content_type: str) -> HeadKind:
    varies, cors = request.app[CONFIG].compress_streams == "on", tuple(cors_headers(request).items())
    return HeadKind(request.version, content_type, content_coding, varies, cors)


def hello_bytes(app: web.Application, stream_plan: StreamPlan) -> bytes:
    """Return a stream's first messages: `hello`, a `gap` if entries are lost, and the warnings about its filters."""
    asked, now_ms = stream_plan.subscribe_request, app[HUB].now_ms()
    retry_ms = app[CONFIG].retry_ms
    first = [messages.hello_message(asked.position, now_ms, asked.connection_id, HELLO_LIMITS, HELLO_SERVER, retry_ms)]
    if stream_plan.known_gap is not None:  # in the same write, because the cursor of `hello` lies behind the gap
        first.append(messages.gap_message(stream_plan.known_gap, now_ms))
    warnings = filter_warnings(asked.subscription, asked.position)
    first += [messages.notice_message(warning, now_ms) for warning in warnings]
    return b"".join(map(asked.framing.encode_control, first))


def filter_warnings(subscription: Subscription, position: Position) -> list[StreamNotice]:
    """Return a ``warning`` for each filter that the hub must test on every event, and for terms that never match."""
    costly = subscription.unindexed_bases
    members: list[dict[str, object]] = [{"code": COSTLY_FILTER, "filter": name} for name in costly]
    for name, terms in subscription.unmatchable_terms.items():
        message = f"these terms of {name} can match no text: {', '.join(terms)}"
        members.append({"code": NEVER_MATCHES, "filter": name, "terms": list(terms), "message": message})
    return [StreamNotice("warning", position, each) for each in members]


def _make_connection(
    request: web.Request,
    stream_plan: StreamPlan,
    place: StreamPlace,
    first_bytes: bytes,
    transport: asyncio.Transport,
    release: Callable[[], None],
) -> StreamConnection:
    """Make a `StreamConnection` from a transport of the HTTP server, and start the planned stream on it.

    ``first_bytes`` are the head of the response and the first messages.
    The stream gives ``place`` and, by ``release``, that of the connection back when the connection has ended.
    """
    hub = request.app[HUB]
    connection = StreamConnection(transport, chunked=supports_chunked(request), buffer_bytes=hub.limits.buffer_bytes)
    connection.write(first_bytes)
    place.release = release
    attach_stream(hub, stream_plan, connection, place)
    return connection


def attach_stream(
    hub: Hub, stream_plan: StreamPlan, connection: StreamConnection, release: Callable[[], None]
) -> StreamSession:
    """Start the planned stream on ``connection``. ``release`` is called when the connection has ended."""
    session = StreamSession(hub, stream_plan.subscribe_request, connection, release)
    connection.on_lost = session.connection_lost
    session.start()
    return session
