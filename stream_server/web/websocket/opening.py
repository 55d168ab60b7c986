"""Opens WebSockets: the handlers of requests whose handshake was checked already."""

from aiohttp import web

from stream_server.web.http.app_keys import CLAIMS, HUB
from stream_server.web.http.request_limits import LIMITS, reject_when_draining
from stream_server.web.http.responses import OPENED
from stream_server.web.route import Request
from stream_server.web.streaming.filtered_stream import prepare_filtered_stream
from stream_server.web.streaming.parameters import read_query_parameters
from stream_server.web.streaming.stream import Prepare, hello_bytes
from stream_server.web.streaming.stream_plan import plan_user_stream
from stream_server.web.streaming.subscription_parser import SUBSCRIPTION_PARSER
from stream_server.web.websocket.connection import WebSocketConnection
from stream_server.web.websocket.first_message import FirstMessage
from stream_server.web.websocket.framing import select_framing
from stream_server.web.websocket.handshake import encode_head, negotiate_deflate
from stream_server.web.websocket.operations import start_stream


async def filter_socket(request: Request) -> web.StreamResponse:
    """``GET /v1/stream`` with ``Upgrade: websocket``: send live events that match the filters in the parameters."""
    return await _prepare_and_open(request, prepare_filtered_stream)


async def user_socket(request: Request) -> web.StreamResponse:
    """``GET /v1/stream/user`` with ``Upgrade: websocket``: send the live events of the caller's own stream."""
    return await _prepare_and_open(request, plan_user_stream)


async def _prepare_and_open(request: Request, prepare: Prepare) -> web.StreamResponse:
    """Open a WebSocket. With a token, all errors come before the answer 101; else the first message brings a token.

    The answer 101 and `hello` leave in one write.
    """
    app, hub, limits, compresses = request.app, request.app[HUB], request.app[LIMITS], negotiate_deflate(request)
    framing = select_framing(compresses=compresses)
    if CLAIMS in request:
        plan = await prepare(request, framing)
        reject_when_draining(request)
        slot, first = limits.take_stream(request), hello_bytes(app, plan)
    else:
        read_query_parameters(request, app[SUBSCRIPTION_PARSER].separators)  # the other checks come later
        plan, slot, first = None, limits.take_unproven(request), b""
    try:
        connection = WebSocketConnection(
            request.connection.require_client(), buffer_bytes=hub.limits.buffer_bytes, departures=hub.departures,
            compresses=compresses, payer=limits.payer(request),
        )  # fmt: skip
        connection.write(encode_head(request, compresses=compresses) + first)
        if plan is not None:
            start_stream(app, request[CLAIMS], plan, connection, slot)
        else:
            FirstMessage(request, lambda: prepare(request, framing), connection, slot)
        slot.release = request.connection.detach(connection)
    except BaseException:
        slot()
        raise
    return OPENED
