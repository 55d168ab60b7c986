"""aiohttp's part of a connection: its request handler, with the server's JSON errors and its own way to the routes.

To a request that is not valid HTTP, aiohttp answers with a text that repeats the request. This server answers with its
JSON error, which repeats nothing. Only public names of aiohttp are used.
"""

import asyncio
import traceback
from collections.abc import Iterable
from http import HTTPStatus
from typing import Any, cast

from aiohttp import HttpVersion11, StreamReader, hdrs, web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.http import HttpProcessingError, RawRequestMessage
from aiohttp.http_exceptions import LineTooLong
from yarl import URL

from stream_server.errors import ApiError, BadRequest, InternalError, TooLarge
from stream_server.web.http.app_keys import FIXED_PATHS, OPENING, ROUTES
from stream_server.web.http.body import declared_length
from stream_server.web.http.chunks import ChunkedBody, SizedBody
from stream_server.web.http.connection import Connection, HttpHandler
from stream_server.web.http.connection_states import Event
from stream_server.web.http.connection_timeouts import LINGER_SECONDS
from stream_server.web.http.middleware import UNDECLARED, UNMATCHED, handle_request
from stream_server.web.http.opening import Opening, OpeningState
from stream_server.web.http.request_limits import LIMITS
from stream_server.web.http.responses import OPENED, error_response, http_exception_to_api_error

MAX_REQUEST_LINE_BYTES = 65_536
"""Longest request line in bytes. A stream's 400 track phrases do not fit into the usual 8 KiB."""

MAX_PATH_CHARS = 4096
"""Longest path of a request in characters, percent-encoded: more than a hashtag of 280 code points takes."""

NOWHERE = URL.build(path="/(too long)", encoded=True)
"""Stands for each path that is longer or deeper than any route. No route has this path."""


class TargetLimit:
    """Replaces the target of a request that cannot be meant for a route, before any library walks it.

    The router looks at a path once for each of its slashes, and yarl decodes the host of an absolute target. Both take
    quadratic time, so a target of 64 KiB would hold the event loop for seconds. An absolute target, such as a proxy
    gets (RFC 9112 §3.2.2), loses its host: this server serves every host alike.
    """

    def __init__(self, routes: Iterable[str]) -> None:
        """``routes`` are the paths of all routes, with their parameters in braces."""
        self._max_slashes = max((path.count("/") for path in routes), default=0)

    def apply(self, message: RawRequestMessage) -> RawRequestMessage:
        """Return the message, with a short target that no route has if its path is too long or too deep.

        An absolute target loses its host.
        """
        text = message.path
        if text.startswith("/") and len(text) <= MAX_PATH_CHARS and text.count("/") <= self._max_slashes:
            return message  # the usual case, which needs no look at the URL
        url = message.url
        target = url.relative() if url.absolute else url
        path = target.raw_path
        if len(path) > MAX_PATH_CHARS or path.count("/") > self._max_slashes:
            target = NOWHERE
        return message if target is url else message._replace(url=target)


class HttpRequest(web.Request):
    """A request that aiohttp has parsed. :class:`Dispatcher` finds its route and notes it here."""

    ATTRS = web.Request.ATTRS | frozenset({"app", "connection", "match_info", "route"})
    app: web.Application = cast("web.Application", None)  # set by the dispatcher; aiohttp has properties instead
    connection: Connection
    match_info: web.UrlMappingMatchInfo = cast("web.UrlMappingMatchInfo", None)
    route = UNMATCHED


class Dispatcher:
    """Makes and answers the requests of aiohttp's handlers."""

    def __init__(self, app: web.Application) -> None:
        self._app = app
        self._loop = asyncio.get_running_loop()
        self._target_limit = TargetLimit(resource.canonical for resource in app.router.resources())

    def make_request(
        self, message: RawRequestMessage, payload: StreamReader, protocol: web.RequestHandler,
        writer: AbstractStreamWriter, task: "asyncio.Task[None]",
    ) -> HttpRequest:  # fmt: skip
        """Make the request of a head that aiohttp has parsed, or found invalid. The connection delivers its body."""
        assert isinstance(protocol, Handler)
        connection = protocol.connection
        request = HttpRequest(self._target_limit.apply(message), payload, protocol, writer, task, self._loop)
        request.app, request.connection, connection.task = self._app, connection, task
        # Without the user, because the token is read later. It pays for the first chunks, too: behind a proxy, the
        # request before may have come from another address.
        connection.payer = self._app[LIMITS].payer(request) if message.chunked else None
        protocol.expect_body(message, payload)
        return request

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer a request by its route."""
        assert isinstance(request, HttpRequest)
        connection = request.connection
        request.match_info = found = await self._app.router.resolve(request)
        found.add_app(self._app)
        found.freeze()
        if hdrs.EXPECT in request.headers:
            answer = await found.expect_handler(request)
            await request.writer.drain()
            if isinstance(answer, web.StreamResponse):
                return answer
        methods = self._app[FIXED_PATHS].get(request.path, (request.method,))  # a route with a parameter may match, too
        if found.http_exception is not None or request.method not in methods or "#" in request.raw_path:
            return await handle_request(request, UNMATCHED)
        request.route = self._app[ROUTES].get(found.route, UNDECLARED)
        if request.route.is_streaming:
            if request.route.lines:
                connection.cycle.pass_through()
            else:
                connection.cycle.note_stream()
            connection.go_on()
            state = OpeningState.FREE if request.can_read_body else OpeningState.WITHOUT_SLOT
            request[OPENING] = Opening(state, self._app[LIMITS].openings.slot())
        return await handle_request(request, request.route)


class LentTransport(asyncio.Transport):
    """The transport as aiohttp's handler has it. The connection decides about its end and about reading."""

    def __init__(self, transport: asyncio.Transport, connection: Connection, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self._transport = transport
        self._connection = connection
        self._loop = loop
        # The usual cases must not take a call more, so these are the transport's own methods.
        self.is_closing = transport.is_closing  # type: ignore[method-assign]  # the transport's own
        self.write = transport.write  # type: ignore[method-assign]  # the transport's own
        self.writelines = transport.writelines  # type: ignore[method-assign]  # the transport's own
        self.get_extra_info = transport.get_extra_info  # type: ignore[method-assign]  # the transport's own
        self.get_write_buffer_size = transport.get_write_buffer_size  # type: ignore[method-assign]  # likewise

    def is_reading(self) -> bool:
        return self._transport.is_reading()

    def pause_reading(self) -> None:
        """Stop reading the body from the socket, because the handler has not taken what came before."""
        self._connection.cycle.is_body_paused = True

    def resume_reading(self) -> None:
        """Get more of the body, later.

        aiohttp calls this in the middle of its parser. If bytes of the next request reached the parser then, it would
        fail, and the connection would hang.
        """
        self._connection.cycle.is_body_paused = False
        self._loop.call_soon(self._connection.go_on)

    def can_write_eof(self) -> bool:
        return False

    def close(self) -> None:
        self._connection.end(Event.CLOSE)

    def abort(self) -> None:
        self._transport.abort()


class Handler(web.RequestHandler, HttpHandler):
    """aiohttp's handler for one connection, with the server's errors.

    Attributes:
        connection: The connection that lends its transport.
    """

    __slots__ = ("_is_last", "_payload", "connection")

    def __init__(self, server: web.Server, connection: Connection, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(
            server,
            loop=loop,
            keepalive_timeout=86_400.0,  # never: the connection closes itself long before
            tcp_keepalive=False,
            access_log=None,  # type: ignore[arg-type]  # None means no log, see its documentation
            max_line_size=MAX_REQUEST_LINE_BYTES,
            max_field_size=16_384,  # twice the longest token, which has 8 KiB
            lingering_time=LINGER_SECONDS,
            auto_decompress=False,
        )
        self.connection = connection
        self._is_last = False
        self._payload: StreamReader | None = None
        assert connection.transport is not None
        self.connection_made(LentTransport(connection.transport, connection, loop))
        if connection.unsent_bytes:
            self.pause_writing()

    async def start(self) -> None:
        """Handle the requests of the connection. A client that leaves in the moment of a request causes no error.

        The error of a cancelled request and the frames in its traceback refer to one another. With the request in them,
        they would stay until a garbage collection, and a flood of such requests would fill the memory.
        """
        try:
            await super().start()
        except asyncio.CancelledError as error:
            traceback.clear_frames(error.__traceback__)
            raise
        except (AssertionError, TypeError):  # of aiohttp, whose parts are gone when the connection has ended
            if self.connection.transport is not None:
                raise

    def expect_body(self, message: RawRequestMessage, payload: StreamReader) -> None:
        """Tell the connection what body belongs to the request that begins."""
        self._payload = payload
        # aiohttp's parser stops at the end of such a request. If it is declined, and its body ends after the answer,
        # the parser never goes on: the connection would hang.
        # It does not stop at `h2c`, which Java's client and curl offer in usual requests.
        self._is_last = message.upgrade and message.headers.get(hdrs.UPGRADE, "").lower() != "h2c"
        if message.chunked and message.version < HttpVersion11:
            self._is_last = True  # HTTP/1.0 has no chunks, so something before this server may count otherwise
        if not payload.is_eof():
            length = declared_length(message.headers)
            self.connection.cycle.expect_body(ChunkedBody() if message.chunked else SizedBody(length or 0))
            self.connection.go_on()

    def break_body(self) -> None:
        """Raise an error in the handler that waits for the body, because its framing is invalid."""
        if self._payload is not None:
            self._payload.set_exception(web.RequestPayloadError("the body has invalid HTTP framing"))

    def connection_lost(self, exc: BaseException | None) -> None:
        """Forget the connection."""
        self._payload = None
        super().connection_lost(exc)

    def log_exception(self, *args: Any, **more: Any) -> None:
        """Log an exception, except that of a body with invalid framing, because it is the client's fault."""
        if not isinstance(more.get("exc_info"), web.RequestPayloadError):
            super().log_exception(*args, **more)

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
        response = error_response(_connection_error(status, exc))
        response.force_close()
        return response

    async def finish_response(
        self, request: web.BaseRequest, resp: web.StreamResponse, start_time: float | None
    ) -> tuple[web.StreamResponse, bool]:
        """Send the response. Turn an HTTP error that aiohttp itself raised into the server's JSON error.

        Then let the connection read the next request.
        """
        if resp is OPENED:
            return resp, True  # the stream ends the connection; True makes aiohttp think that the client has left
        if isinstance(resp, web.HTTPException):
            refused = http_exception_to_api_error(request.method, resp)
            resp = error_response(refused or InternalError("internal error"))
        if self._is_last:
            resp.force_close()
        sent, has_left = await super().finish_response(request, resp, start_time)
        if not has_left:
            self.connection.answer(b"", keep_alive=bool(sent.keep_alive))
        return sent, has_left


def _connection_error(status: int, error: BaseException | None) -> ApiError:
    """Return the answer to a client for an error outside of the handlers. Forget the bytes that were not valid HTTP.

    aiohttp's error has them as text, and its traceback is in a cycle, which would stay until a full garbage collection.
    """
    if isinstance(error, HttpProcessingError):
        error.__traceback__ = error.__context__ = error.__cause__ = None
        error.args, error.message = (), ""
    if isinstance(error, LineTooLong):
        return TooLarge("the request line or a header field is too long")
    if status < HTTPStatus.INTERNAL_SERVER_ERROR:
        return BadRequest("the request is not valid HTTP", code="malformed_body")
    return InternalError("internal error; it was logged")
