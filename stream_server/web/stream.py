"""``/v1/stream`` and ``/v1/stream/user``: one long response, server-sent events or a JSON object a line."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from contextvars import Context
from functools import partial

from aiohttp import hdrs, web

from filters.follow import IDS
from filters.location import BOXES
from filters.track import PHRASES
from stream_server import __version__
from stream_server.hub import closing as reasons
from stream_server.hub import control
from stream_server.hub.control import Notice
from stream_server.hub.group import Framing
from stream_server.hub.hub import Hub
from stream_server.hub.member import Member
from stream_server.hub.subscriber import Subscriber
from stream_server.web.connection import StreamConnection
from stream_server.web.edges import Protocol
from stream_server.web.framing import framing, negotiate
from stream_server.web.keys import CLAIMS, CONFIG, HUB, REQUEST_ID, SUBSCRIPTIONS
from stream_server.web.middleware import X_REQUEST_ID
from stream_server.web.parameters import read_parameters
from stream_server.web.stopping import admit
from stream_server.web.subscription import Plan, plan, plan_own

PARAMETER_BYTES = 4
"""A stream's parameters may be so many times a write's body: 5,000 ids are 90 KB."""

Planner = Callable[[web.Request, dict[str, str], Framing], Awaitable[Plan]]

LIMITS: dict[str, object] = {"track": PHRASES, "follow": IDS, "locations": BOXES}
"""Told in hello: the most phrases, ids and boxes of one stream."""

COSTLY_FILTER = "costly_filter"
"""The ``warning`` of a stream that has to be asked about every event, because one of its filters has no keys."""

APART = Context()
"""Of no request: empty, and shared by all timers."""

HEADERS = {
    "Cache-Control": "no-store",
    "X-Accel-Buffering": "no",
    "X-Content-Type-Options": "nosniff",
    "Server": "stream-server",
}


async def stream(request: web.Request) -> web.StreamResponse:
    """``GET`` and ``POST /v1/stream``: what matches, as it happens."""
    return await _answer(request, plan)


async def own(request: web.Request) -> web.StreamResponse:
    """``GET`` and ``POST /v1/stream/user``: what concerns the asking user, as it happens."""
    return await _answer(request, plan_own)


async def _answer(request: web.Request, planner: Planner) -> web.StreamResponse:
    """Every refusal comes before the first byte; after it the stream ends with ``goodbye`` only."""
    media_type = negotiate(request.headers.get(hdrs.ACCEPT, "*/*"))
    made = await _planned(request, planner, framing(media_type, chunked=chunks(request)))
    return await open_stream(request, made, f"{media_type}; charset=utf-8")


def chunks(request: web.Request) -> bool:
    """Whether the answer comes in chunks, which HTTP/1.0 does not know."""
    return request.version >= (1, 1)


async def open_stream(
    request: web.Request, made: Plan, content_type: str, more: Mapping[str, str] | None = None
) -> web.StreamResponse:
    """Begin what was planned, with ``more`` headers; from here on there is no refusal.

    The position is pinned before the head is sent, so nothing is missed between the two. Then the connection
    leaves the HTTP server. A server that began to stop while this was planned refuses it here.
    """
    admit(request)
    response = web.StreamResponse(headers={**HEADERS, **(more or {}), hdrs.CONTENT_TYPE: content_type})
    response.headers[X_REQUEST_ID] = request[REQUEST_ID]
    chunked = chunks(request)
    if chunked:
        response.enable_chunked_encoding()
    response.force_close()  # the connection ends with the stream: say so, or a client would send its next request
    await response.prepare(request)
    await response.write(_hello(request, made))
    protocol = request.protocol
    if not isinstance(protocol, Protocol):
        raise TypeError("streams are served by web.edges.Runner only")
    protocol.hand_over(partial(_begin, request, made, chunked=chunked))
    return response


async def _planned(request: web.Request, planner: Planner, framing: Framing) -> Plan:
    most_bytes = PARAMETER_BYTES * request.app[CONFIG].body_max_bytes
    separators = request.app[SUBSCRIPTIONS].separators
    return await planner(request, await read_parameters(request, most_bytes, separators), framing)


def _hello(request: web.Request, made: Plan) -> bytes:
    """The first message, a gap that is known, and which filters cost: what has no keys is asked about every event.

    It is one write: hello moves a client's cursor behind the gap, of which it would never hear if it were cut between.
    """
    ask, server, now_ms = made.ask, f"stream-server/{__version__}", request.app[HUB].now_ms()
    hello = control.hello(ask.position, now_ms, ask.connection, LIMITS, server)
    told = [hello._replace(retry_ms=request.app[CONFIG].retry_ms)]
    if made.lost is not None:
        told.append(control.gap(made.lost, now_ms))
    for name in ask.subscription.costly:
        costs = Notice("warning", ask.position, {"code": COSTLY_FILTER, "filter": name})
        told.append(control.notice(costs, now_ms))
    return b"".join(map(ask.framing.control, told))


def _begin(request: web.Request, made: Plan, transport: asyncio.Transport, *, chunked: bool) -> StreamConnection:
    hub, config = request.app[HUB], request.app[CONFIG]
    connection = StreamConnection(
        transport,
        chunked=chunked,
        buffer_bytes=hub.limits.buffer_bytes,
        send_buffer_bytes=config.send_buffer_bytes,
    )
    attach(hub, made, connection, request[CLAIMS].exp)
    return connection


def attach(hub: Hub, made: Plan, connection: StreamConnection, expires: float) -> Subscriber:
    """Begin the stream on its connection; with the connection's end nothing of it stays, nor of its token's timer."""
    subscriber = Subscriber(hub, made.ask, connection, now_ms=hub.now_ms)
    timer = expiry(subscriber.member, expires)

    def lost() -> None:
        timer.cancel()
        subscriber.gone()

    connection.on_lost = lost
    subscriber.begin()
    return subscriber


def expiry(member: Member, expires: float) -> asyncio.TimerHandle:
    """End ``member`` when its token expires (``exp``, seconds since 1970).

    The timer is in no request's context: it would keep that, and all in it, as long as the stream.
    """
    seconds = max(0.0, expires - time.time())
    loop = asyncio.get_running_loop()
    return loop.call_later(seconds, member.close, reasons.TOKEN_EXPIRED, context=APART)
