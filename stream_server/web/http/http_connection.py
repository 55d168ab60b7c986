"""What happens before a request is one: aiohttp's parse errors, its limits, and a deadline that it lacks.

Parse errors pass by every middleware, are text and repeat the request; here they get the one shape and repeat
nothing. A connection that does not send a whole request head in time is closed (slowloris).
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
"""From the connection, or from a later request's first byte, to the end of that request's head."""

KEEPALIVE_TIMEOUT_SECONDS = 75.0
"""An idle connection is kept so long, a little longer than the balancers in front do."""

MAX_REQUEST_LINE_BYTES = 65_536
"""400 track phrases do not fit into the usual 8 KiB."""

MAX_HEADER_FIELD_BYTES = 16_384
"""One header field: a token of 8 KiB and room."""

WRITE_TIMEOUT_SECONDS = 30.0
"""An answer of which the client takes no byte for so long is given up, with its connection."""

KEEPALIVE_IDLE_SECONDS = 15.0
"""As long as heartbeats of a stream are apart."""

LINGER_SECONDS = 2.0
"""How long the rest of a refused body is swallowed, so that its sender can read why."""

SHUTDOWN_SECONDS = 0.25
"""aiohttp waits for this twice, for handlers to end and after cancelling them; :meth:`HttpRunner.wait_until_idle` was before."""

IDLE_CHECK_SECONDS = 0.01
"""How often it is looked whether requests are still being answered."""


class HttpConnection(web.RequestHandler):
    """One connection."""

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
        super().__init__(manager, **options)
        self._header_seconds = header_seconds
        self._write_seconds = write_seconds
        self._probe_seconds = probe_seconds
        self._is_reading_head = False
        self._handed_over = False
        self._stall_timer: asyncio.TimerHandle | None = None
        self._peer: TcpPeer | None = None

    def pause_writing(self) -> None:
        """The client does not read its answer: it has a while to take some of it."""
        super().pause_writing()
        if self.transport is not None:
            self._abort_if_stalled(self.transport, math.inf)

    def resume_writing(self) -> None:
        """It does."""
        super().resume_writing()
        self._stop_stall_timer()

    def connection_lost(self, exc: BaseException | None) -> None:
        """Nothing is waited for any more."""
        self._stop_stall_timer()
        self._peer = None
        super().connection_lost(exc)

    def _abort_if_stalled(self, transport: asyncio.Transport, previous_backlog: float) -> None:
        """Drop a client that takes no byte of its answer for a whole deadline; slowly is not never.

        What the kernel has of it counts: it takes more of us only when a third of its buffer is free.
        """
        backlog = transport.get_write_buffer_size() + (
            self._peer.unacknowledged_bytes() if self._peer is not None else 0
        )
        if backlog >= previous_backlog:
            transport.abort()
        else:
            self._stall_timer = self._loop.call_later(self._write_seconds, self._abort_if_stalled, transport, backlog)

    def _stop_stall_timer(self) -> None:
        if self._stall_timer is not None:
            self._stall_timer.cancel()
            self._stall_timer = None

    @property
    def is_busy(self) -> bool:
        """Whether a request is being answered, or has come and waits for that."""
        return self._request_in_progress or bool(self._messages)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start the first request's deadline, which a silent connection misses as well; and let the kernel ask.

        Nothing is written to a long poll while it waits: that its client's machine is gone is found out by probes.
        """
        super().connection_made(transport)
        self._peer = TcpPeer(transport)
        self._peer.enable_keepalive(self._probe_seconds, self._write_seconds)
        if self.transport is not None:
            self.transport.set_write_buffer_limits(high=0)  # else the end of a connection waits for its last bytes
        self._start_head_deadline()

    def data_received(self, data: bytes) -> None:
        """Watch for bytes that leave a request's head unfinished, and for a body that breaks."""
        super().data_received(data)
        self._fail_broken_body()
        if self._messages or self._waiter is None or self._waiter.done():
            self._is_reading_head = False
        elif not self._is_reading_head:  # only the first byte starts the clock: a trickle does not wind it up again
            self._start_head_deadline()

    def hand_over(self, make_successor: Callable[[asyncio.Transport], asyncio.Protocol]) -> None:
        """Give the transport to another protocol and end here, as if the connection was lost.

        aiohttp has no door for this. Its side must not close the transport, nor cancel the handler that called, which
        returns its response; an exception would do as well, but aiohttp's frames keep one in a circle, and with it the
        whole request until a garbage collection. Raises ConnectionResetError if the client left.
        """
        transport = self.transport
        if transport is None or transport.is_closing():
            raise ConnectionResetError("the client left")
        successor = make_successor(transport)
        transport.set_protocol(successor)
        if self.writing_paused:
            successor.pause_writing()  # this one was told so; that it is over will be told to the other
        if not transport.is_reading():
            transport.resume_reading()  # else the end of the connection would not be noticed
        self.transport = None
        self._task_handler = None
        self._handed_over = True
        self.connection_lost(None)

    def _fail_broken_body(self) -> None:
        """Tell the handler that waits for a body when what came is none: aiohttp only queues the parse error."""
        request = self._current_request
        broken = bool(self._messages) and not isinstance(self._messages[-1][0], RawRequestMessage)
        if request is not None and broken and not request.content.is_eof():
            request.content.set_exception(web.RequestPayloadError("the body is not framed as HTTP demands"))

    def log_exception(self, *args: Any, **more: Any) -> None:
        """A body that breaks while its rest is swallowed is the client's doing and no failure of ours."""
        if not isinstance(more.get("exc_info"), web.RequestPayloadError):
            super().log_exception(*args, **more)

    def _start_head_deadline(self) -> None:
        """Bring aiohttp's own idle timer forward; it closes only who is waiting for a head when it rings."""
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
        message: str | None = None,  # noqa: ARG002 - aiohttp's text repeats the request
    ) -> web.StreamResponse:
        """The answer to what could not be parsed, or to a failure that no middleware saw; closes the connection."""
        if request.writer.output_size > 0:
            raise ConnectionResetError("the answer had begun, it can only be broken off")
        if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            self.logger.error("a request failed outside of its handler", exc_info=exc)
        response = error_response(_connection_error(status, exc))
        response.force_close()
        return response

    async def finish_response(
        self, request: web.BaseRequest, resp: web.StreamResponse, start_time: float | None
    ) -> tuple[web.StreamResponse, bool]:
        """Send the answer; aiohttp's own refusals that were raised outside of the middlewares get our shape.

        What was handed over is another's to end: aiohttp takes it for a client that left.
        """
        if self._handed_over:
            return resp, True
        if isinstance(resp, web.HTTPException):
            refused = http_exception_to_api_error(request.method, resp)
            resp = error_response(refused or InternalError("something went wrong here"))
        return await super().finish_response(request, resp, start_time)


def _connection_error(status: int, error: BaseException | None) -> ApiError:
    if isinstance(error, LineTooLong):
        return TooLarge("the request line or a header field is too long")
    if status < HTTPStatus.INTERNAL_SERVER_ERROR:
        return BadRequest("this is no HTTP request that can be understood", code="malformed_body")
    return InternalError("something went wrong here; it was logged")


class ConnectionTimeouts(NamedTuple):
    """What a connection is given when it is made, in seconds, and keeps.

    ``write_seconds`` is for the next byte that a client takes of an answer, ``probe_seconds`` the silence after which
    a client's machine is asked whether it is there.
    """

    write_seconds: float = WRITE_TIMEOUT_SECONDS
    probe_seconds: float = KEEPALIVE_IDLE_SECONDS


class HttpServer(web.Server):
    """Makes a :class:`HttpConnection` for each connection, with the deadlines that hold by then."""

    def __init__(self, handler: Any, *, timeouts: Callable[[], ConnectionTimeouts], **options: Any) -> None:
        super().__init__(handler, **options)
        self._timeouts = timeouts

    def __call__(self) -> HttpConnection:
        """The next connection."""
        return HttpConnection(self, loop=self._loop, **self._kwargs, **self._timeouts()._asdict())


class HttpRunner(web.AppRunner):
    """aiohttp's runner with our connections; use it with any site.

    ``header_seconds`` is the deadline of a request's head, ``shutdown_seconds`` what aiohttp waits twice for;
    ``deadlines`` is asked for each connection.
    """

    def __init__(
        self,
        app: web.Application,
        *,
        header_seconds: float = HEADER_TIMEOUT_SECONDS,
        timeouts: Callable[[], ConnectionTimeouts] = ConnectionTimeouts,
        shutdown_seconds: float = SHUTDOWN_SECONDS,
    ) -> None:
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
        """Until no request is being answered, but no longer than this.

        What a connection has sent already is read first, so that it is not dropped unseen. aiohttp has a wait of its
        own, but reads nothing more as soon as it begins: a body that is on its way would never be whole.
        """
        loop = asyncio.get_running_loop()
        ends = loop.time() + timeout_seconds
        busy = True
        while busy and loop.time() < ends:
            await asyncio.sleep(IDLE_CHECK_SECONDS)
            connections = [] if self.server is None else self.server.connections
            busy = any(isinstance(one, HttpConnection) and one.is_busy for one in connections)

    async def _make_server(self) -> HttpServer:
        """As aiohttp's, which has no door for another kind of server: make its server, keep its wiring."""
        made = await super()._make_server()
        options = {**made._kwargs, "header_seconds": self._header_seconds}  # noqa: SLF001 - see above
        return HttpServer(
            made.request_handler,
            timeouts=self._timeouts,
            request_factory=made.request_factory,
            handler_cancellation=made.handler_cancellation,
            loop=asyncio.get_running_loop(),
            **options,
        )


def make_runner(app: web.Application) -> HttpRunner:
    """The runner that serves ``app``, with the deadlines of its settings, which may change."""
    config = app[CONFIG]
    return HttpRunner(app, timeouts=lambda: ConnectionTimeouts(config.write_timeout_seconds, config.heartbeat_seconds))
