"""Opens WebSockets: the handlers of requests whose handshake was checked already."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from aiohttp import web

from stream_server.hub.framing import Framing
from stream_server.web.http.app_keys import CLAIMS, HUB, REQUEST_ID
from stream_server.web.http.request_limits import (
    ALLOWANCE,
    LIMITS,
    StreamPlace,
    rate_limit_headers,
    reject_when_draining,
)
from stream_server.web.http.responses import OPENED
from stream_server.web.http.stream_request import connection_of
from stream_server.web.streaming.parameters import read_stream_parameters
from stream_server.web.streaming.stream import Planner, hello_bytes
from stream_server.web.streaming.stream_plan import StreamPlan, plan_stream, plan_user_stream
from stream_server.web.streaming.subscription_parser import SUBSCRIPTION_PARSER
from stream_server.web.websocket.connection import WebSocketConnection
from stream_server.web.websocket.first_message import FirstMessage
from stream_server.web.websocket.framing import select_framing
from stream_server.web.websocket.handshake import encode_head, negotiate_deflate
from stream_server.web.websocket.operations import start_stream


async def filter_socket(request: web.Request) -> web.StreamResponse:
    """``GET /v1/stream`` with ``Upgrade: websocket``: send live events that match the filters in the parameters."""
    return await _plan_and_open(request, plan_stream)


async def user_socket(request: web.Request) -> web.StreamResponse:
    """``GET /v1/stream/user`` with ``Upgrade: websocket``: send the live events of the caller's own stream."""
    return await _plan_and_open(request, plan_user_stream)


class _Socket(NamedTuple):
    """The results of the handshake of a WebSocket."""

    parameters: dict[str, str]
    framing: Framing
    compresses: bool


async def _plan_and_open(request: web.Request, planner: Planner) -> web.StreamResponse:
    """Open a WebSocket. With a token, all errors come before the answer 101; else the first message brings a token."""
    compresses = negotiate_deflate(request)
    parameters = await read_stream_parameters(request, 0, request.app[SUBSCRIPTION_PARSER].separators)
    socket = _Socket(parameters, select_framing(compresses=compresses), compresses)
    if CLAIMS not in request:
        _open_unproven(request, planner, socket)
        return OPENED
    plan = await planner(request, parameters, socket.framing)
    reject_when_draining(request)
    _hand_over(request, request.app[LIMITS].take_stream(request), partial(_start, request, plan, socket))
    return OPENED


def _start(
    request: web.Request, plan: StreamPlan, socket: _Socket, place: StreamPlace, transport: asyncio.Transport
) -> WebSocketConnection:
    """Send the answer 101 and `hello` in one write, and start the stream."""
    connection = _make_connection(request, transport, socket)
    connection.write(_head(request, socket) + hello_bytes(request.app, plan))
    start_stream(request.app, request[CLAIMS], plan, connection, place)
    return connection


def _open_unproven(request: web.Request, planner: Planner, socket: _Socket) -> None:
    """Send the answer 101, and wait for the first message."""

    def start(place: StreamPlace, transport: asyncio.Transport) -> WebSocketConnection:
        connection = _make_connection(request, transport, socket)
        connection.write(_head(request, socket))
        FirstMessage(request, lambda: planner(request, socket.parameters, socket.framing), connection, place)
        return connection

    _hand_over(request, request.app[LIMITS].take_unproven(request), start)


def _hand_over(
    request: web.Request, place: StreamPlace, start: Callable[[StreamPlace, asyncio.Transport], WebSocketConnection]
) -> None:
    """Let ``start`` take the transport over from the HTTP server. Give the place back if the client has left."""

    def take_over(transport: asyncio.Transport, release: Callable[[], None]) -> WebSocketConnection:
        place.release = release
        return start(place, transport)

    try:
        connection_of(request).hand_over(take_over)
    except BaseException:
        place()
        raise


def _head(request: web.Request, socket: _Socket) -> bytes:
    limits = rate_limit_headers(request[ALLOWANCE]) if ALLOWANCE in request else {}
    return encode_head(request, request[REQUEST_ID], limits, compresses=socket.compresses)


def _make_connection(request: web.Request, transport: asyncio.Transport, socket: _Socket) -> WebSocketConnection:
    buffer_bytes = request.app[HUB].limits.buffer_bytes
    return WebSocketConnection(transport, buffer_bytes=buffer_bytes, compresses=socket.compresses)
