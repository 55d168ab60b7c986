"""One HTTP connection: aiohttp's request handler with our error shape and with deadlines that aiohttp lacks.

aiohttp answers a parse error outside of the middlewares, as text that repeats the request. Here the client gets our
error shape, which repeats nothing. A connection that does not send a complete request head in time is closed (slowloris
attack). A client that reads nothing of its answer for a whole deadline is dropped.
"""

import asyncio
import math
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, NamedTuple

from aiohttp import web
from aiohttp.http_exceptions import LineTooLong
from aiohttp.http_parser import RawRequestMessage

from stream_server.errors import ApiError, BadRequest, InternalError, TooLarge
from stream_server.web.http.app_keys import CONFIG
from stream_server.web.http.responses import error_response, http_exception_to_api_error
from stream_server.web.http.tcp_peer import TcpPeer

HEADER_TIMEOUT_SECONDS = 15.0
"""Seconds to receive a whole request head, counted from the connection or from the first byte of a later request."""

KEEPALIVE_TIMEOUT_SECONDS = 75.0
"""Seconds that an idle connection stays open. This is a little longer than usual load balancers keep theirs."""

MAX_REQUEST_LINE_BYTES = 65_536
"""Longest request line in bytes. The usual 8 KiB cannot hold 400 track phrases."""

MAX_HEADER_FIELD_BYTES = 16_384
"""Longest header field in bytes: a token of 8 KiB, and as much again."""

WRITE_TIMEOUT_SECONDS = 30.0
"""Seconds in which the client must take at least one byte of a pending answer.

Otherwise the server drops the connection.
"""

KEEPALIVE_IDLE_SECONDS = 15.0
"""Seconds of silence before the kernel probes the client's machine, equal to the default heartbeat interval of a
stream.
"""

LINGER_SECONDS = 2.0
"""Seconds during which the server reads and drops the rest of a refused body, so that its sender can read the refusal.

"""

SHUTDOWN_SECONDS = 0.25
"""Seconds that aiohttp waits at shutdown, once for handlers to end and once after it cancelled them.

Short, because :meth:`HttpRunner.wait_until_idle` has waited for the requests before.
"""

IDLE_CHECK_SECONDS = 0.01
"""Seconds between two checks for requests in progress at shutdown."""


class HttpConnection(web.RequestHandler):
    """One client connection with deadlines for request heads and for writing; a stream may take over its transport."""

    __slots__ = (
        "_handed_over",
        "_header_seconds",
        "_is_reading_head",
        "_peer",
        "_probe_seconds",
        "_stall_timer",
        "_write_seconds",
    )

    def __init__(
        self,
        manager: "HttpServer",
        *,
        header_seconds: float,
        write_seconds: float,
        probe_seconds: float,
        **options: Any,
    ) -> None:
        """Store the deadlines, all in seconds; ``options`` go to aiohttp's request handler."""
        super().__init__(manager, **options)
        self._header_seconds = header_seconds
        self._write_seconds = write_seconds
        self._probe_seconds = probe_seconds
        self._is_reading_head = False
        self._handed_over = False
        self._stall_timer: asyncio.TimerHandle | None = None
        self._peer: TcpPeer | None = None

    def pause_writing(self) -> None:
        """Start the write deadline, because the client has not read all of its answer."""
        super().pause_writing()
        if self.transport is not None:
            self._abort_if_stalled(self.transport, math.inf)

    def resume_writing(self) -> None:
        """Stop the write deadline, because the client has read the pending bytes."""
        super().resume_writing()
        self._stop_stall_timer()

    def connection_lost(self, exc: BaseException | None) -> None:
        """Stop the write deadline and forget the socket, because the connection is gone."""
        self._stop_stall_timer()
        self._peer = None
        super().connection_lost(exc)

    def _abort_if_stalled(self, transport: asyncio.Transport, previous_backlog: float) -> None:
        """Drop the connection if its backlog did not shrink during one write deadline. A slow client stays connected.

        The backlog includes the bytes in the kernel's send buffer. Without them a slow client would seem to take
        nothing, because the kernel accepts more bytes from us only when a third of its buffer is free.
        """
        backlog = transport.get_write_buffer_size() + (
            self._peer.unacknowledged_bytes() if self._peer is not None else 0
        )
        if backlog >= previous_backlog:
            transport.abort()
        else:
            self._stall_timer = self._loop.call_later(self._write_seconds, self._abort_if_stalled, transport, backlog)

    def _stop_stall_timer(self) -> None:
        """Cancel the timer of the write deadline, if it runs."""
        if self._stall_timer is not None:
            self._stall_timer.cancel()
            self._stall_timer = None

    @property
    def is_busy(self) -> bool:
        """Whether the connection has a request in progress or waiting."""
        return self._request_in_progress or bool(self._messages)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start the deadline of the first request head, and enable TCP keep-alive probes.

        The deadline also closes connections that send nothing. The probes detect a dead client machine during a long
        poll, because the server sends nothing while the poll waits.
        """
        super().connection_made(transport)
        self._peer = TcpPeer(transport)
        self._peer.enable_keepalive(self._probe_seconds, self._write_seconds)
        if self.transport is not None:
            self.transport.set_write_buffer_limits(high=0)  # else closing a connection would wait for its last bytes
        self._start_head_deadline()

    def data_received(self, data: bytes) -> None:
        """Pass the data to aiohttp. Start the head deadline for an incomplete request head, and fail a broken body."""
        super().data_received(data)
        self._fail_broken_body()
        if self._messages or self._waiter is None or self._waiter.done():
            self._is_reading_head = False
        elif not self._is_reading_head:  # only the first byte starts the deadline; further bytes do not extend it
            self._start_head_deadline()

    def hand_over(self, make_successor: Callable[[asyncio.Transport], asyncio.Protocol]) -> None:
        """Give the transport to another protocol and end this one as if the connection was lost.

        aiohttp has no public method for this. aiohttp must not close the transport, and must not cancel the calling
        handler, which still returns its response. Raising an exception instead would also work. But aiohttp's frames
        keep the exception in a reference cycle, and with it the whole request until a garbage collection.

        Raises ConnectionResetError if the client has disconnected.
        """
        transport = self.transport
        if transport is None or transport.is_closing():
            raise ConnectionResetError("the client left")
        successor = make_successor(transport)
        transport.set_protocol(successor)
        if self.writing_paused:
            successor.pause_writing()  # it will tell the successor when to resume
        if not transport.is_reading():
            transport.resume_reading()  # else nobody would notice the end of the connection
        self.transport = None
        self._task_handler = None
        self._handed_over = True
        self.connection_lost(None)

    def _fail_broken_body(self) -> None:
        """Raise in the handler that waits for a body whose framing is invalid. aiohttp only queues the parse error."""
        request = self._current_request
        broken = bool(self._messages) and not isinstance(self._messages[-1][0], RawRequestMessage)
        if request is not None and broken and not request.content.is_eof():
            request.content.set_exception(web.RequestPayloadError("the body has invalid HTTP framing"))

    def log_exception(self, *args: Any, **more: Any) -> None:
        """Log an exception, unless a body broke while the server dropped its rest: that is the client's fault."""
        if not isinstance(more.get("exc_info"), web.RequestPayloadError):
            super().log_exception(*args, **more)

    def _start_head_deadline(self) -> None:
        """Set aiohttp's own keep-alive timer to the head deadline.

        When it fires, it closes only connections waiting for a head.
        """
        self._is_reading_head = True
        if self._keepalive_handle is not None:
            self._keepalive_handle.cancel()
        self._next_keepalive_close_time = self._loop.time() + self._header_seconds
        self._keepalive_handle = self._loop.call_at(self._next_keepalive_close_time, self._process_keepalive)

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,  # noqa: ARG002 - unused, because aiohttp's text repeats the request
    ) -> web.StreamResponse:
        """Build the answer to an unparsable request, or to an error outside of the middlewares.

        The answer closes the connection. Raises ConnectionResetError if the response has already started.
        """
        if request.writer.output_size > 0:
            raise ConnectionResetError("the response had started; closing the connection")
        if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            self.logger.error("unhandled error outside a request handler", exc_info=exc)
        response = error_response(_connection_error(status, exc))
        response.force_close()
        return response

    async def finish_response(
        self, request: web.BaseRequest, resp: web.StreamResponse, start_time: float | None
    ) -> tuple[web.StreamResponse, bool]:
        """Send the response. Errors that aiohttp raised outside of the middlewares get our error shape.

        After :meth:`hand_over` the stream ends the connection itself, so this returns True, which aiohttp takes for a
        disconnected client.
        """
        if self._handed_over:
            return resp, True
        if isinstance(resp, web.HTTPException):
            refused = http_exception_to_api_error(request.method, resp)
            resp = error_response(refused or InternalError("internal error"))
        return await super().finish_response(request, resp, start_time)


def _connection_error(status: int, error: BaseException | None) -> ApiError:
    """Map an error of the HTTP parser, or an unhandled exception, to an ApiError."""
    if isinstance(error, LineTooLong):
        return TooLarge("the request line or a header field is too long")
    if status < HTTPStatus.INTERNAL_SERVER_ERROR:
        return BadRequest("the request is not valid HTTP", code="malformed_body")
    return InternalError("internal error; it was logged")


class ConnectionTimeouts(NamedTuple):
    """Timeouts of one connection in seconds, read when the connection is made and constant afterwards.

    Attributes:
        write_seconds: Time in which the client must take at least one byte of a pending answer.
        probe_seconds: Silence after which the kernel probes the client's machine.
    """

    write_seconds: float = WRITE_TIMEOUT_SECONDS
    probe_seconds: float = KEEPALIVE_IDLE_SECONDS


class HttpServer(web.Server):
    """Creates a :class:`HttpConnection` for each accepted connection, with the timeouts of the current settings."""

    def __init__(self, handler: Any, *, timeouts: Callable[[], ConnectionTimeouts], **options: Any) -> None:
        """Call ``timeouts`` for each new connection; the other arguments are those of aiohttp's server."""
        super().__init__(handler, **options)
        self._timeouts = timeouts

    def __call__(self) -> HttpConnection:
        """Create the protocol of the next connection."""
        return HttpConnection(self, loop=self._loop, **self._kwargs, **self._timeouts()._asdict())


class HttpRunner(web.AppRunner):
    """aiohttp's app runner, which serves the app with :class:`HttpConnection`. It works with any aiohttp site."""

    def __init__(
        self,
        app: web.Application,
        *,
        header_seconds: float = HEADER_TIMEOUT_SECONDS,
        timeouts: Callable[[], ConnectionTimeouts] = ConnectionTimeouts,
        shutdown_seconds: float = SHUTDOWN_SECONDS,
    ) -> None:
        """Set the limits of all connections.

        Args:
            app: The app to serve.
            header_seconds: Deadline for a whole request head.
            timeouts: Returns the other timeouts; called for each new connection.
            shutdown_seconds: What aiohttp waits at shutdown, twice.
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
        self._header_seconds = header_seconds
        self._timeouts = timeouts

    async def wait_until_idle(self, timeout_seconds: float) -> None:
        """Wait until the server has answered all requests, at most ``timeout_seconds``.

        Each check gives the event loop time to read what connections have already sent, so those requests are not
        dropped. aiohttp's own wait stops reading as soon as it begins, so it would never receive the rest of a body.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_seconds
        busy = True
        while busy and loop.time() < deadline:
            await asyncio.sleep(IDLE_CHECK_SECONDS)
            connections = [] if self.server is None else self.server.connections
            busy = any(isinstance(connection, HttpConnection) and connection.is_busy for connection in connections)

    async def _make_server(self) -> HttpServer:
        """Create our server with the options of aiohttp's. aiohttp has no option for another server class."""
        plain = await super()._make_server()
        options = {**plain._kwargs, "header_seconds": self._header_seconds}  # noqa: SLF001 - aiohttp keeps them there only
        return HttpServer(
            plain.request_handler,
            timeouts=self._timeouts,
            request_factory=plain.request_factory,
            handler_cancellation=plain.handler_cancellation,
            loop=asyncio.get_running_loop(),
            **options,
        )


def make_runner(app: web.Application) -> HttpRunner:
    """Create the runner that serves ``app``. Timeouts come from its settings, which a reload may change."""
    config = app[CONFIG]
    return HttpRunner(app, timeouts=lambda: ConnectionTimeouts(config.write_timeout_seconds, config.heartbeat_seconds))
