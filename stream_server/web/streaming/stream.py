"""Opens streams for `/v1/stream` and `/v1/stream/user`: one long response of Server-Sent Events or JSON lines."""

import logging
from collections.abc import Awaitable, Callable
from functools import lru_cache

import msgspec
from aiohttp import hdrs, web

from filters.follow import MAX_IDS
from filters.location import MAX_BOXES
from filters.subscription import Subscription
from filters.track import MAX_PHRASES
from stream_server import __version__
from stream_server.events.position import Position, format_iso_time
from stream_server.hub import messages
from stream_server.hub.hub import Hub
from stream_server.hub.messages import IDENTITY, ControlMessage, EncodeControl, Framing, StreamNotice
from stream_server.hub.stream_session import StreamSession
from stream_server.web.http.app_keys import CONFIG, HUB
from stream_server.web.http.request_limits import LIMITS, reject_when_draining
from stream_server.web.http.responses import OPENED, SERVER_NAME
from stream_server.web.route import AppValues, Request
from stream_server.web.streaming.compression import begin_body, compress_framing, negotiate_content_coding
from stream_server.web.streaming.filtered_stream import prepare_filtered_stream
from stream_server.web.streaming.framing import (
    TEXT_ENCODERS,
    negotiate_media_type,
    select_framing,
    wrap_chunk,
    wrap_raw,
)
from stream_server.web.streaming.response_head import encode_head, head_fields
from stream_server.web.streaming.stream_connection import StreamConnection
from stream_server.web.streaming.stream_plan import StreamPlan, plan_user_stream

logger = logging.getLogger(__name__)

Prepare = Callable[[Request, Framing], Awaitable[StreamPlan]]
"""Plans the stream of a request, and takes over the subscription that it reads, if any. Raises for each refusal."""

HELLO_LIMITS = msgspec.json.encode({"track": MAX_PHRASES, "follow": MAX_IDS, "locations": MAX_BOXES}).decode()
"""Limits that `hello` reports, encoded: most phrases, ids and boxes of one stream."""

HELLO_SERVER = f"{SERVER_NAME}/{__version__}"
"""Name and version of the server that `hello` reports."""

_GAP = "\x00"
"""The slot of a connection id in a pattern."""


async def filter_stream(request: Request) -> web.StreamResponse:
    """``GET`` and ``POST /v1/stream``: send live events that match the filters in the parameters."""
    return await _prepare_and_open(request, prepare_filtered_stream, is_personal=False)


async def user_stream(request: Request) -> web.StreamResponse:
    """``GET`` and ``POST /v1/stream/user``: send live events by users whom the caller follows, or about the caller."""
    return await _prepare_and_open(request, plan_user_stream, is_personal=True)


async def _prepare_and_open(request: Request, prepare: Prepare, *, is_personal: bool) -> web.StreamResponse:
    """Check the request with ``prepare``, then open the stream. All errors come before the first byte of the answer."""
    accept, coding = request.headers.get(hdrs.ACCEPT, "*/*"), request.headers.get(hdrs.ACCEPT_ENCODING)
    if request.app[CONFIG].compress_streams == "off":
        coding = None
    framing, content_type = _select_framing(accept, coding, request.version >= (1, 1), is_personal)
    return open_stream(request, await prepare(request, framing), content_type)


@lru_cache(64)
def _select_framing(
    accept: str,
    accept_encoding: str | None,
    chunked: bool,  # noqa: FBT001 - lru_cache keys positional arguments
    apart: bool,  # noqa: FBT001 - likewise
) -> tuple[Framing, str]:
    """Return the framing and the content type for the headers of a client. Raises NotAcceptable if none fits."""
    media_type = negotiate_media_type(accept)
    framing = select_framing(media_type, chunked=chunked)
    if negotiate_content_coding(accept_encoding) != IDENTITY:
        framing = compress_framing(framing, apart=apart)
    return framing, f"{media_type}; charset=utf-8"


def compress_if_accepted(request: Request, framing: Framing) -> Framing:
    """Return ``framing`` with gzip if the client accepts it.

    Raises NotAcceptable if the client accepts neither gzip nor plain bytes.
    """
    return framing if accepted_coding(request) == IDENTITY else compress_framing(framing)


def accepted_coding(request: Request) -> str:
    """Return the content coding for the request's `Accept-Encoding`. Raises NotAcceptable if there is none."""
    if request.app[CONFIG].compress_streams == "off":
        return IDENTITY
    return negotiate_content_coding(request.headers.get(hdrs.ACCEPT_ENCODING))


def open_stream(request: Request, stream_plan: StreamPlan, content_type: str) -> web.StreamResponse:
    """Send the response head and `hello` in one write, and let the hub have the connection.

    To a HEAD request, answer the head of the stream that a GET would open now (RFC 9110 §9.3.2). The plan fixes the
    start position, so the stream misses no event between planning and opening. Raises Unavailable if the server began
    to shut down after planning, RateLimited if the address has too many streams, and ConnectionError if the client has
    left.
    """
    reject_when_draining(request)
    framing, limits, hub = stream_plan.subscribe_request.framing, request.app[LIMITS], request.app[HUB]
    if request.method == hdrs.METH_HEAD:
        limits.take_stream(request)()
        # The middleware adds the headers of each answer, and those for pages of other origins.
        varies = request.app[CONFIG].compress_streams == "on"
        return web.StreamResponse(headers=head_fields(content_type, framing.content_coding, varies=varies))
    is_chunked, owner = request.version >= (1, 1), request.connection  # HTTP/1.0 has no chunks
    head = encode_head(request, framing.content_coding, content_type)
    first = hello_bytes(request.app, stream_plan)
    if framing.content_coding != IDENTITY:
        first = begin_body(first)
    slot = limits.take_stream(request)
    try:
        connection = StreamConnection(
            owner.require_client(), chunked=is_chunked, buffer_bytes=hub.live.limits.buffer_bytes,
            departures=hub.departures,
        )  # fmt: skip
        connection.write(head + (wrap_chunk if is_chunked else wrap_raw)(first))
        attach_stream(hub, stream_plan, connection, slot)
        slot.release = owner.detach(connection)
    except BaseException:
        slot()
        raise
    return OPENED


def hello_bytes(app: AppValues, stream_plan: StreamPlan) -> bytes:
    """Return a stream's first messages: `hello`, a `gap` for what is lost, and the warnings about its filters."""
    asked, now_ms = stream_plan.subscribe_request, app[HUB].now_ms()
    encode = asked.framing.encode_control
    if encode in TEXT_ENCODERS:
        pattern = _hello_pattern(asked.position, encode, app[CONFIG].retry_ms, app[CONFIG].heartbeat_seconds)
        data = pattern % (format_iso_time(now_ms).encode(), asked.connection_id.encode())
    else:
        config = app[CONFIG]
        data = encode(_hello(asked.position, now_ms, asked.connection_id, config.retry_ms, config.heartbeat_seconds))
    for gap in stream_plan.known_gaps:  # in the same write, because the cursor of `hello` lies behind the gap
        data += encode(messages.gap_message(gap, now_ms))
    if stream_plan.may_warn:
        for warning in filter_warnings(asked.subscription, asked.position):
            data += encode(messages.notice_message(warning, now_ms))
    return data


def _hello(position: Position, now_ms: int, connection_id: str, retry_ms: int, beat: float) -> ControlMessage:
    return messages.hello_message(position, now_ms, connection_id, HELLO_LIMITS, HELLO_SERVER, retry_ms, beat)


@lru_cache(64)  # each position needs new ones, one for each framing
def _hello_pattern(position: Position, encode: EncodeControl, retry_ms: int, beat: float) -> bytes:
    """Return the format of a `hello` at one position, in which the time and the connection id are left open."""
    pattern = encode(_hello(position, 0, _GAP, retry_ms, beat)).replace(b"%", b"%%")
    return pattern.replace(format_iso_time(0).encode(), b"%b").replace(_GAP.encode(), b"%b")


def filter_warnings(subscription: Subscription, position: Position) -> list[StreamNotice]:
    """Return a ``warning`` for each filter that the hub must test on every event, and for each doubt about filters."""
    costly = subscription.unindexed_bases
    members: list[dict[str, object]] = [{"code": "costly_filter", "filter": name} for name in costly]
    for code, name, terms, message in subscription.doubts:
        told = {"terms": list(terms)} if terms else {}
        members.append({"code": code, "filter": name, **told, "message": message})
    return [StreamNotice("warning", position, each) for each in members]


def attach_stream(
    hub: Hub, stream_plan: StreamPlan, connection: StreamConnection, release: Callable[[], None]
) -> StreamSession:
    """Start the planned stream on ``connection``, whose client has got `hello`.

    ``release`` is called when the connection has ended. If the start fails, the connection is dropped: its answer has
    begun, so no error can be sent.
    """
    lease = stream_plan.lease
    on_end = release if lease is None else lease.end_with(release)
    session = StreamSession(hub, stream_plan.subscribe_request, connection, on_end)
    connection.listener = session
    if lease is not None:
        lease.begin(session)
    try:
        session.start()
    except Exception:
        logger.exception("a stream failed at its start")
        session.fail()
    return session
