"""``/v1/stream`` and ``/v1/stream/user``: one long response, server-sent events or a JSON object a line."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from contextvars import Context
from functools import partial

from aiohttp import hdrs, web

from filters.follow import MAX_IDS
from filters.location import MAX_BOXES
from filters.track import MAX_PHRASES
from stream_server import __version__
from stream_server.hub import disconnect as reasons
from stream_server.hub import messages
from stream_server.hub.client import Client
from stream_server.hub.framing import Framing
from stream_server.hub.hub import Hub
from stream_server.hub.messages import StreamNotice
from stream_server.hub.stream_session import StreamSession
from stream_server.web.http.app_keys import CLAIMS, CONFIG, HUB, REQUEST_ID, SUBSCRIPTION_PARSER
from stream_server.web.http.drain_check import reject_when_draining
from stream_server.web.http.http_connection import HttpConnection
from stream_server.web.http.middleware import X_REQUEST_ID
from stream_server.web.streaming.framing import negotiate_media_type, select_framing
from stream_server.web.streaming.parameters import read_stream_parameters
from stream_server.web.streaming.stream_connection import StreamConnection
from stream_server.web.streaming.stream_plan import StreamPlan, plan_stream, plan_user_stream

STREAM_BODY_FACTOR = 4
"""A stream's parameters may be so many times a write's body: 5,000 ids are 90 KB."""

Planner = Callable[[web.Request, dict[str, str], Framing], Awaitable[StreamPlan]]

HELLO_LIMITS: dict[str, object] = {"track": MAX_PHRASES, "follow": MAX_IDS, "locations": MAX_BOXES}
"""Told in hello: the most phrases, ids and boxes of one stream."""

COSTLY_FILTER = "costly_filter"
"""The ``warning`` of a stream that has to be asked about every event, because one of its filters has no keys."""

EMPTY_CONTEXT = Context()
"""Of no request: empty, and shared by all timers."""

STREAM_HEADERS = {
    "Cache-Control": "no-store",
    "X-Accel-Buffering": "no",
    "X-Content-Type-Options": "nosniff",
    "Server": "stream-server",
}


async def filter_stream(request: web.Request) -> web.StreamResponse:
    """``GET`` and ``POST /v1/stream``: what matches, as it happens."""
    return await _plan_and_open(request, plan_stream)


async def user_stream(request: web.Request) -> web.StreamResponse:
    """``GET`` and ``POST /v1/stream/user``: what concerns the asking user, as it happens."""
    return await _plan_and_open(request, plan_user_stream)


async def _plan_and_open(request: web.Request, planner: Planner) -> web.StreamResponse:
    """Every refusal comes before the first byte; after it the stream ends with ``goodbye`` only."""
    media_type = negotiate_media_type(request.headers.get(hdrs.ACCEPT, "*/*"))
    made = await _read_plan(request, planner, select_framing(media_type, chunked=supports_chunked(request)))
    return await open_stream(request, made, f"{media_type}; charset=utf-8")


def supports_chunked(request: web.Request) -> bool:
    """Whether the answer comes in chunks, which HTTP/1.0 does not know."""
    return request.version >= (1, 1)


async def open_stream(
    request: web.Request, stream_plan: StreamPlan, content_type: str, extra_headers: Mapping[str, str] | None = None
) -> web.StreamResponse:
    """Begin what was planned, with ``extra_headers`` headers; from here on there is no refusal.

    The position is pinned before the head is sent, so nothing is missed between the two. Then the connection
    leaves the HTTP server. A server that began to stop while this was planned refuses it here.
    """
    reject_when_draining(request)
    response = web.StreamResponse(headers={**STREAM_HEADERS, **(extra_headers or {}), hdrs.CONTENT_TYPE: content_type})
    response.headers[X_REQUEST_ID] = request[REQUEST_ID]
    chunked = supports_chunked(request)
    if chunked:
        response.enable_chunked_encoding()
    response.force_close()  # the connection ends with the stream: say so, or a client would send its next request
    await response.prepare(request)
    await response.write(_hello_bytes(request, stream_plan))
    protocol = request.protocol
    if not isinstance(protocol, HttpConnection):
        raise TypeError("streams are served by web.edges.Runner only")
    protocol.hand_over(partial(_make_connection, request, stream_plan, chunked=chunked))
    return response


async def _read_plan(request: web.Request, planner: Planner, framing: Framing) -> StreamPlan:
    most_bytes = STREAM_BODY_FACTOR * request.app[CONFIG].body_max_bytes
    separators = request.app[SUBSCRIPTION_PARSER].separators
    return await planner(request, await read_stream_parameters(request, most_bytes, separators), framing)


def _hello_bytes(request: web.Request, stream_plan: StreamPlan) -> bytes:
    """The first message, a gap that is known, and which filters cost: what has no keys is asked about every event.

    It is one write: hello moves a client's cursor behind the gap, of which it would never hear if it were cut between.
    """
    ask, server, now_ms = stream_plan.subscribe_request, f"stream-server/{__version__}", request.app[HUB].now_ms()
    hello = messages.hello_message(ask.position, now_ms, ask.connection_id, HELLO_LIMITS, server)
    told = [hello._replace(retry_ms=request.app[CONFIG].retry_ms)]
    if stream_plan.known_gap is not None:
        told.append(messages.gap_message(stream_plan.known_gap, now_ms))
    for name in ask.subscription.unindexed_bases:
        costs = StreamNotice("warning", ask.position, {"code": COSTLY_FILTER, "filter": name})
        told.append(messages.notice_message(costs, now_ms))
    return b"".join(map(ask.framing.encode_control, told))


def _make_connection(
    request: web.Request, stream_plan: StreamPlan, transport: asyncio.Transport, *, chunked: bool
) -> StreamConnection:
    hub, config = request.app[HUB], request.app[CONFIG]
    connection = StreamConnection(
        transport,
        chunked=chunked,
        buffer_bytes=hub.limits.buffer_bytes,
        send_buffer_bytes=config.send_buffer_bytes,
    )
    attach_stream(hub, stream_plan, connection, request[CLAIMS].exp)
    return connection


def attach_stream(hub: Hub, stream_plan: StreamPlan, connection: StreamConnection, expires_at: float) -> StreamSession:
    """Begin the stream on its connection; with the connection's end nothing of it stays, nor of its token's timer."""
    subscriber = StreamSession(hub, stream_plan.subscribe_request, connection, now_ms=hub.now_ms)
    timer = close_at_expiry(subscriber.client, expires_at)

    def lost() -> None:
        timer.cancel()
        subscriber.connection_lost()

    connection.on_lost = lost
    subscriber.start()
    return subscriber


def close_at_expiry(member: Client, expires_at: float) -> asyncio.TimerHandle:
    """End ``member`` when its token expires (``exp``, seconds since 1970).

    The timer is in no request's context: it would keep that, and all in it, as long as the stream.
    """
    seconds = max(0.0, expires_at - time.time())
    loop = asyncio.get_running_loop()
    return loop.call_later(seconds, member.disconnect, reasons.TOKEN_EXPIRED, context=EMPTY_CONTEXT)
