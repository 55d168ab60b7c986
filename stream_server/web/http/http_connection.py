"""One HTTP connection: aiohttp's request handler with the server's JSON errors and with deadlines that aiohttp lacks.

To a request that is not valid HTTP, aiohttp answers with a text that repeats the request. This server answers with its
JSON error, which repeats nothing. The server closes a connection that does not send a complete request head in time
(slowloris attack). It drops a client that takes nothing of a pending answer during one write deadline.
"""

import asyncio
import math
import socket
import sys
from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import Any

from aiohttp import web

from stream_server.errors import InternalError
from stream_server.runtime.tcp_keepalive import TcpKeepalive, inherited_keepalive
from stream_server.web.http.acceptor import Acceptor
from stream_server.web.http.app_keys import CONFIG, ROUTES
from stream_server.web.http.connection_timeouts import ConnectionTimeouts
from stream_server.web.http.dispatch import Dispatcher
from stream_server.web.http.early_start import EarlyPaths, finish_early_start, take_early_request
from stream_server.web.http.held_heads import HeldHeads, HoldingHandler
from stream_server.web.http.parse_errors import connection_error
from stream_server.web.http.request_limits import LIMITS
from stream_server.web.http.request_target import TargetLimit
from stream_server.web.http.responses import JsonResponse, error_response, http_exception_to_api_error
from stream_server.web.http.start_queue import StartQueue
from stream_server.web.http.tcp_peer import TcpPeer
from stream_server.web.limits.connections import ConnectionPlace, ConnectionTable

KEEPALIVE_TIMEOUT_SECONDS = 75.0
"""Seconds that an idle connection stays open: a little longer than the idle timeout of usual load balancers."""

MAX_REQUEST_LINE_BYTES = 65_536
"""Longest request line in bytes. A stream's 400 track phrases do not fit into the usual 8 KiB."""

MAX_HEADER_FIELD_BYTES = 16_384
"""Longest header field in bytes: twice the longest token, which has 8 KiB."""

LINGER_SECONDS = 2.0
"""Seconds in which the server reads and drops the rest of a refused body, so that its sender can read the refusal."""

SHUTDOWN_SECONDS = 0.25
"""Seconds of each of aiohttp's two waits at shutdown. Short, because :meth:`HttpRunner.wait_until_idle` waits first."""

IDLE_CHECK_SECONDS = 0.01

MIN_BYTES_PER_SECOND = 1024
"""Least speed at which a client must take an answer. A slower one could hold its place in the table for hours."""

EVICTED_AFTER_SECONDS = 5.0
"""Seconds for which a client must have left an answer unread before its connection may be closed to make room."""


class HttpConnection(HoldingHandler):
    """One client connection with deadlines for request heads and for writing; a stream may take over its transport.

    Attributes:
        last_heard_at: Time of the loop at which the client connected or last sent bytes.
    """

    __slots__ = (
        "_address", "_handed_over", "_is_reading_head", "_keepalive_options", "_peer",
        "_stall_timer", "_table", "_timeouts", "_unread_since", "last_heard_at",
    )  # fmt: skip

    def __init__(
        self, manager: "HttpServer", *, timeouts: "ConnectionTimeouts", keepalive: TcpKeepalive | None,
        table: ConnectionTable, **options: Any,
    ) -> None:  # fmt: skip
        """``keepalive`` is None if the connection has inherited the options of TCP's keep-alive."""
        super().__init__(manager, **options)
        self._keepalive_options = keepalive
        self._timeouts = timeouts
        self._table = table
        self._address: str | None = None
        self.last_heard_at = self._unread_since = 0.0
        self._is_reading_head = self._handed_over = False
        self._stall_timer: asyncio.TimerHandle | None = None
        self._peer: TcpPeer | None = None

    def pause_writing(self) -> None:
        """Start the write deadline. The transport calls this when the kernel's send buffer takes no more bytes."""
        super().pause_writing()
        self._unread_since = self._loop.time()
        if self.transport is not None:
            self._abort_if_stalled(self.transport, math.inf)

    def resume_writing(self) -> None:
        """Stop the write deadline. The transport calls this when the kernel has taken all pending bytes."""
        super().resume_writing()
        self._stop_stall_timer()

    def connection_lost(self, exc: BaseException | None) -> None:
        """Stop the write deadline and forget the socket, because the connection is gone."""
        self._stop_stall_timer()
        self._peer = None
        self._release()
        super().connection_lost(exc)

    def _abort_if_stalled(self, transport: asyncio.Transport, previous_backlog: float) -> None:
        """Drop the connection if its backlog (bytes that the client has not taken) shrinks too slowly.

        Otherwise check again after the write timeout, so a slow client stays connected. The backlog includes the
        kernel's send buffer, because the kernel takes more bytes from this process only when a third of that buffer is
        empty: a slow client would seem stalled until then.
        """
        unacknowledged_bytes = 0 if self._peer is None else self._peer.unacknowledged_bytes()
        backlog = transport.get_write_buffer_size() + unacknowledged_bytes
        seconds = self._timeouts.write_seconds
        if previous_backlog - backlog < seconds * MIN_BYTES_PER_SECOND:
            transport.abort()
        else:
            self._stall_timer = self._loop.call_later(seconds, self._abort_if_stalled, transport, backlog)

    def _stop_stall_timer(self) -> None:
        if self._stall_timer is not None:
            self._stall_timer.cancel()
            self._stall_timer = None

    def is_evictable(self, now: float) -> bool:
        """Whether nobody waits for this connection at ``now`` (time of the loop): it is idle, or its client is."""
        return not self.is_busy or (self.writing_paused and now - self._unread_since >= EVICTED_AFTER_SECONDS)

    @property
    def is_busy(self) -> bool:
        """Whether the connection handles a request, or has received one that still waits to be handled."""
        return self._request_in_progress or self._waits_without_task or bool(self._messages)

    def drop(self) -> None:
        """Close the connection at once, to make room for another."""
        self._release()
        if self.transport is not None:
            self.transport.abort()

    def _release(self) -> None:
        """Give the place in the table of connections back, if the connection has one."""
        if self._address is not None:
            self._table.release(self._address)
            self._address = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start the deadline of the first request head. Enable TCP probes, which find dead clients of a long poll.

        If the server has no room for the connection, answer so and close it.
        """
        self.last_heard_at = self._loop.time()  # before others may be closed, or this one would seem the longest idle
        super().connection_made(transport)
        peer = transport.get_extra_info("peername")
        address = sys.intern(peer[0]) if isinstance(peer, tuple) else ""
        refusal = self._table.take(address)
        if refusal is not None:
            self.refuse(refusal)
            return
        self._address = address
        self._peer = TcpPeer(transport)
        client_socket = transport.get_extra_info("socket")
        if self._keepalive_options is not None and client_socket is not None:
            self._keepalive_options.set_on(client_socket)
        if self.transport is not None:
            self.transport.set_write_buffer_limits(high=0)  # else closing a connection would wait for its last bytes
        self._start_head_deadline()

    def data_received(self, data: bytes) -> None:
        """Pass data to aiohttp. Start the deadline of an incomplete request head."""
        self.last_heard_at = self._loop.time()
        super().data_received(data)
        if self._handed_over:
            return
        if not self.waits_for_request:
            self._is_reading_head = False
        elif not self._is_reading_head:  # only the first byte starts the deadline; further bytes do not extend it
            self._start_head_deadline()

    def hand_over(self, make_successor: Callable[[asyncio.Transport, Callable[[], None]], asyncio.Protocol]) -> None:
        """Give the transport to another protocol, such as a stream. End the HTTP protocol as if the client left.

        ``make_successor`` gets the transport and a function, which the successor must call when the connection has
        ended: until then the connection keeps its place in the table. The transport stays open. The handler is not
        cancelled: an exception in it would keep the request in memory until a garbage collection. Raises
        ConnectionResetError if the client has disconnected.
        """
        transport = self.transport
        if transport is None or transport.is_closing():
            raise ConnectionResetError("the client left")
        address, table = self._address, self._table
        self._address = None
        successor = make_successor(transport, _hold_nothing if address is None else ConnectionPlace(table, address))
        transport.set_protocol(successor)
        if self.writing_paused:
            successor.pause_writing()  # the transport tells the successor when to resume
        if not transport.is_reading():
            transport.resume_reading()  # else the server would not notice the end of the connection
        self.transport = self._task_handler = None
        self._handed_over = True
        early_bytes, self._message_tail = self._message_tail + self.take_held(), b""
        self.connection_lost(None)
        successor.data_received(early_bytes)  # a client that asked for a WebSocket may not wait for the answer

    def log_exception(self, *args: Any, **more: Any) -> None:
        """Log an exception, except that of a body with invalid framing, because it is the client's fault."""
        if not isinstance(more.get("exc_info"), web.RequestPayloadError):
            super().log_exception(*args, **more)

    def _start_head_deadline(self) -> None:
        """Start the deadline of a request head: set aiohttp's keep-alive timer, which then closes the connection."""
        self._is_reading_head = True
        if self._keepalive_handle is not None:
            self._keepalive_handle.cancel()
        self._next_keepalive_close_time = self._loop.time() + self._timeouts.header_seconds
        self._keepalive_handle = self._loop.call_at(self._next_keepalive_close_time, self._process_keepalive)

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,  # noqa: ARG002 - unused, because aiohttp's text repeats the request
    ) -> web.StreamResponse:
        """Build the answer to an error outside the middlewares.

        Raises ConnectionResetError if an answer has begun or the client has disconnected: aiohttp ends the connection.
        """
        if request.writer.output_size > 0:
            raise ConnectionResetError("the response had started; closing the connection")
        if isinstance(exc, ConnectionError):
            raise exc  # from a handler that found the client gone; nothing has failed, so nothing is logged
        if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            self.logger.error("unhandled error outside a request handler", exc_info=exc)
        response = error_response(connection_error(status, exc))
        response.force_close()
        return response

    async def finish_response(
        self, request: web.BaseRequest, resp: web.StreamResponse, start_time: float | None
    ) -> tuple[web.StreamResponse, bool]:
        """Send the response. Turn an HTTP error that aiohttp itself raised into the server's JSON error.

        Then pass on the next request that the client has sent.
        """
        if self._handed_over:
            return resp, True  # the stream ends the connection; True makes aiohttp think that the client has left
        if isinstance(resp, web.HTTPException):
            refused = http_exception_to_api_error(request.method, resp)
            resp = error_response(refused or InternalError("internal error"))
        if isinstance(resp, JsonResponse):
            try:
                if await resp.send(request):
                    self.note_answer()
                    return resp, False
            except ConnectionError:
                return resp, True
        sent = await super().finish_response(request, resp, start_time)
        self.note_answer()
        return sent


def _hold_nothing() -> None:
    """Give nothing back: the place of a connection that is not in the table."""


class HttpServer(web.Server):
    """Creates a :class:`HttpConnection` for each accepted connection, with the timeouts of the current settings.

    ``held_heads`` counts the bytes of heads that are not whole.
    ``inherited_keepalive`` are the options that connections have from the listening socket, or None.
    """

    def __init__(
        self, handler: Any, *, timeouts: Callable[[], ConnectionTimeouts], table: ConnectionTable, **options: Any
    ) -> None:
        super().__init__(handler, **options)
        self._timeouts = timeouts
        self._known_timeouts = ConnectionTimeouts()
        self._keepalive = self._known_timeouts.keepalive
        self.inherited_keepalive: TcpKeepalive | None = None
        self._table = table
        self.held_heads = HeldHeads(table.hits)
        self._start_queue = StartQueue(asyncio.get_running_loop())
        self._acceptors: tuple[Acceptor, ...] = ()
        table.evict_idle = self._evict_idle

    def accept_on(self, listeners: Sequence[socket.socket]) -> None:
        """Learn what connections inherit from the sockets, and accept from them what the loop leaves waiting."""
        self.inherited_keepalive = inherited_keepalive(listeners[0])
        self._acceptors = tuple(Acceptor(listener, self._make_connection) for listener in listeners)

    def __call__(self) -> HttpConnection:
        """Return the protocol of a connection that the loop has accepted."""
        for acceptor in self._acceptors:
            acceptor.accept_waiting()
        return self._make_connection()

    def _make_connection(self) -> HttpConnection:
        timeouts = self._timeouts()
        if timeouts != self._known_timeouts:  # the first connection, or the first one after a reload
            self._known_timeouts, self._keepalive = timeouts, timeouts.keepalive
        keepalive = None if self._keepalive == self.inherited_keepalive else self._keepalive
        return HttpConnection(
            self, loop=self._loop, **self._kwargs, timeouts=timeouts, keepalive=keepalive, table=self._table,
            start_queue=self._start_queue, held_heads=self.held_heads,
        )  # fmt: skip

    def _evict_idle(self, count: int) -> None:
        """Close up to ``count`` connections that are idle or leave an answer unread.

        The idle ones go first, and of each kind those that were heard of the longest ago.
        """
        now = self._loop.time()
        found = [each for each in self.connections if isinstance(each, HttpConnection) and each.is_evictable(now)]
        for connection in sorted(found, key=lambda each: (each.is_busy, each.last_heard_at))[:count]:
            connection.drop()


class HttpRunner(web.AppRunner):
    """aiohttp's app runner, which serves each connection with :class:`HttpConnection`. Any aiohttp site can use it."""

    def __init__(
        self,
        app: web.Application,
        *,
        table: ConnectionTable,
        timeouts: Callable[[], ConnectionTimeouts] = ConnectionTimeouts,
        shutdown_seconds: float = SHUTDOWN_SECONDS,
    ) -> None:
        """Serve ``app``. The runner calls ``timeouts`` to get the deadlines of each new connection.

        ``table`` limits the number of connections.
        """
        super().__init__(
            app,
            access_log=None,
            handler_cancellation=True,
            keepalive_timeout=KEEPALIVE_TIMEOUT_SECONDS,
            max_line_size=MAX_REQUEST_LINE_BYTES,
            max_field_size=MAX_HEADER_FIELD_BYTES,
            lingering_time=LINGER_SECONDS,
            auto_decompress=False,
            shutdown_timeout=shutdown_seconds,
        )
        self._timeouts = timeouts
        self._table = table

    def accept_on(self, listeners: Sequence[socket.socket]) -> None:
        """Prepare for connections of these sockets. Call this after :meth:`setup` and before the sites start."""
        assert isinstance(self.server, HttpServer)
        self.server.accept_on(listeners)

    async def wait_until_idle(self, timeout_seconds: float) -> None:
        """Wait until the server has answered all requests, at most ``timeout_seconds``.

        The server also answers requests that it has received but not read yet. aiohttp's own wait would drop them.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_seconds
        busy = True
        while busy and loop.time() < deadline:
            await asyncio.sleep(IDLE_CHECK_SECONDS)
            connections = [] if self.server is None else self.server.connections
            busy = any(isinstance(connection, HttpConnection) and connection.is_busy for connection in connections)

    async def _make_server(self) -> HttpServer:
        """Return a :class:`HttpServer` with the options of aiohttp's own server, which it replaces."""
        plain = await super()._make_server()
        options = dict(plain._kwargs)  # noqa: SLF001 - aiohttp keeps them there only
        options |= {"handler_cancellation": plain.handler_cancellation, "early_paths": self._early_paths()}
        limit = TargetLimit(resource.canonical for resource in self.app.router.resources())
        options |= {"request_factory": take_early_request(limit.shorten_targets(plain.request_factory))}
        loop, handler = asyncio.get_running_loop(), finish_early_start(Dispatcher(self.app, plain.request_handler))
        return HttpServer(handler, timeouts=self._timeouts, table=self._table, loop=loop, **options)

    def _early_paths(self) -> EarlyPaths:
        """Return the paths of the streams, whose requests are handled early. A long poll waits in any case."""
        routes = self.app.get(ROUTES, {}).values()
        return EarlyPaths([route.path for route in routes if route.is_streaming and route.response is None])


def make_runner(app: web.Application) -> HttpRunner:
    """Create the runner that serves ``app``. Its timeouts come from the settings, which a reload may change."""
    config = app[CONFIG]

    def timeouts() -> ConnectionTimeouts:
        return ConnectionTimeouts(config.write_timeout_seconds, config.heartbeat_seconds)

    return HttpRunner(app, table=app[LIMITS].connections, timeouts=timeouts)
