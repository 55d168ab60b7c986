"""Handles a request in the callback that received it, without a task.

A stream whose token and user this process knows opens without waiting. For such a request the two tasks of aiohttp cost
more than the whole handler. A handler that waits for a future, such as an answer of Redis, goes on in the callback of
this future.

If many requests come together, they begin in turn, see :mod:`stream_server.web.http.start_queue`.

Such a handler has no task, and `asyncio.timeout` needs one. So code that waits with a timeout calls
:func:`stream_server.store.redis.own_task.enter_task` before. From there the handler goes on in aiohttp's task.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Coroutine, Generator
from contextvars import copy_context
from types import coroutine
from typing import Any, cast

from aiohttp import web
from aiohttp.http_parser import RawRequestMessage
from aiohttp.http_writer import StreamWriter

from stream_server.web.http.start_queue import StartQueue

Handling = Coroutine[Any, Any, web.StreamResponse]

HEAD_END = b"\r\n\r\n"

LOOK_AGAIN_SECONDS = 1.0
"""Seconds after which the timer of a connection looks again whether its request still waits to begin."""


class EarlyStart:
    """One request whose handler runs before aiohttp gives it a task.

    Attributes:
        request: The request. The task must use this object, because the handler has stored its results in it.
    """

    __slots__ = ("_awaited", "_context", "_error", "_handling", "_response", "request")

    def __init__(self, request: web.BaseRequest, handler: Callable[[Any], Handling]) -> None:
        """Do not begin yet."""
        self.request = request
        self._handling = handler(request)
        self._context = copy_context()  # the handler's context variables must not reach the caller
        self._awaited: Any = None
        self._response: web.StreamResponse | None = None
        self._error: BaseException | None = None

    def run(self) -> None:
        """Run the handler until it waits for the first time, or ends. Keep an exception for :meth:`finish`."""
        self._step(self._handling.send, None)

    def resume(self) -> None:
        """Go on after the future for which the handler waited, as :meth:`run` does."""
        self._step(self._handling.send, None)

    def call_when_ready(self, callback: Callable[[Any], None]) -> bool:
        """If the handler waits for a future, call ``callback`` when this future is done. Otherwise return False."""
        future = self._awaited
        if not asyncio.isfuture(future):
            return False
        future._asyncio_future_blocking = False  # noqa: SLF001 - a task does the same: the future is waited for
        future.add_done_callback(callback)
        return True

    def _step(self, go_on: Callable[[Any], Any], value: Any) -> None:
        self._awaited = None
        try:
            self._awaited = self._context.run(go_on, value)
        except StopIteration as ended:
            self._response = ended.value
        except BaseException as error:  # noqa: BLE001 - the task raises it
            self._error = error

    async def finish(self) -> web.StreamResponse:
        """Return what the handler returned, or raise what it raised. Before, let it go on in this task if it waits."""
        if self._error is not None:
            raise self._error
        return await self._go_on() if self._response is None else self._response

    @coroutine
    def _go_on(self) -> Generator[Any, Any, web.StreamResponse]:
        """Run the rest of the handler as a part of the present task, in the handler's own context."""
        try:
            while True:
                try:
                    value = yield self._awaited
                except BaseException as error:  # noqa: BLE001 - such as a cancellation; the handler decides about it
                    self._awaited = self._context.run(self._handling.throw, error)
                else:
                    self._awaited = self._context.run(self._handling.send, value)
        except StopIteration as ended:
            response: web.StreamResponse = ended.value
            return response

    def close(self) -> None:
        """Cancel a handler that waits, as a task would, because the connection was lost."""
        if self._response is not None or self._error is not None:
            return
        if asyncio.isfuture(self._awaited):
            self._awaited.cancel()
        self._step(self._handling.throw, asyncio.CancelledError())
        self._context.run(self._handling.close)


class EarlyPaths:
    """The paths whose `GET` requests begin early."""

    def __init__(self, paths: Collection[str]) -> None:
        self._paths = frozenset(paths)
        self._begins = tuple(f"GET {path}{end}".encode() for path in self._paths for end in "? ")

    def __contains__(self, path: str) -> bool:
        return path in self._paths

    def has_whole_request(self, data: bytes) -> bool:
        """Return whether ``data``, the first bytes of a request, is the whole head of a request for such a path."""
        return data.startswith(self._begins) and data.endswith(HEAD_END)


class EarlyHandler(web.RequestHandler):
    """aiohttp's connection, which handles requests for some paths early.

    aiohttp makes a task for each connection at once. This connection makes it when a request comes that needs it, so
    a stream that opens without waiting has no task at all.

    A request that waits to begin stays as the client sent it, because a parsed one takes four times the memory.

    Attributes:
        early_start: The request that began early and now waits for a future or for aiohttp's task, or None.
    """

    __slots__ = ("_early_paths", "_has_task", "_start_queue", "_unread", "_waits_without_task", "early_start")

    def __init__(
        self, manager: web.Server, *, start_queue: StartQueue, early_paths: EarlyPaths, **options: Any
    ) -> None:
        """Handle `GET` requests for ``early_paths`` early. The server's handler and factory must know early starts."""
        super().__init__(manager, **options)
        self._start_queue = start_queue
        self._early_paths = early_paths
        self._has_task = False
        self._waits_without_task = False
        self._unread = b""
        self.early_start: EarlyStart | None = None

    @property
    def waits_for_request(self) -> bool:
        """Whether no request is handled or waits to be handled."""
        if self._messages or self._waits_without_task or self._force_close or self._close:
            return False
        return not self._has_task or (self._waiter is not None and not self._waiter.done())

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Do what aiohttp does for a new connection, except its task, its timer and TCP's options."""
        assert self._manager is not None
        self.transport = cast("asyncio.Transport", transport)
        self._manager.connection_made(self, self.transport)

    def connection_lost(self, exc: BaseException | None) -> None:
        """End a handler that waits for a task."""
        self._unread = b""
        early, self.early_start = self.early_start, None
        if early is not None:
            early.close()
        super().connection_lost(exc)

    def close(self) -> None:
        """Close the connection after the requests that have come. The server calls this when it stops."""
        if self._unread:
            self._feed(b"")  # aiohttp takes no bytes after this
        super().close()
        if not self._has_task and not self._waits_without_task and self.transport is not None:
            self.transport.close()

    def _process_keepalive(self) -> None:
        """Close a connection that has sent no request in time. aiohttp looks only at connections that have a task."""
        super()._process_keepalive()
        if self._keepalive_handle is not None or self._has_task:
            return
        if self._waits_without_task:
            self._keepalive_handle = self._loop.call_later(LOOK_AGAIN_SECONDS, self._process_keepalive)
        else:
            self.force_close()

    def data_received(self, data: bytes) -> None:
        """Pass data to aiohttp. If no request is being handled, begin to handle the one that has come."""
        if self._waits_without_task:
            self._feed(data)
        elif not self.waits_for_request:
            super().data_received(data)
        elif not self._start_queue.is_free and self._early_paths.has_whole_request(data):
            self._unread = data
            self._begin_in_turn()
        else:
            self._receive(data)

    def _receive(self, data: bytes) -> None:
        self._feed(data)
        if self._messages and self._is_early():
            self._begin_in_turn()
        elif self._messages:
            self._continue_in_task()

    def _feed(self, data: bytes) -> None:
        """Let aiohttp parse the bytes that wait and ``data``, without waking its task."""
        data, self._unread = self._unread + data, b""
        waiter, self._waiter = self._waiter, None
        try:
            super().data_received(data)
        finally:
            self._waiter = waiter

    def _begin_in_turn(self) -> None:
        self._waits_without_task = True
        self._start_queue.begin_in_turn(self._begin)

    def _begin(self) -> None:
        """Begin to handle the request that has come, unless the connection was lost while the request waited."""
        self._waits_without_task = False
        if self.transport is None or self._force_close:
            return
        if self._unread:
            self._feed(b"")
        if self._messages and self._is_early():  # no other request has come behind it
            self._start_early()
        self._continue_unless_waiting()

    def _continue_unless_waiting(self) -> None:
        if self._messages and not self._waits_without_task:
            self._continue_in_task()

    def _continue_in_task(self) -> None:
        """Let aiohttp's task handle the requests that have come. Make the task if there is none yet."""
        if not self._has_task:
            self._has_task = True
            self._task_handler = self._loop.create_task(self.start())
        elif self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _is_early(self) -> bool:
        """Whether the only request may begin early."""
        message = self._messages[0][0]
        if len(self._messages) > 1 or not isinstance(message, RawRequestMessage) or message.method != "GET":
            return False
        return message.path.partition("?")[0] in self._early_paths

    def _start_early(self) -> None:
        """Begin to handle the only request. Drop it if its connection was lost."""
        message, payload = self._messages[0]
        task: Any = self._task_handler
        make_request, handler = self._request_factory, self._request_handler
        assert make_request is not None
        assert handler is not None
        early = EarlyStart(make_request(message, payload, self, StreamWriter(self, self._loop), task), handler)  # type: ignore[arg-type]  # a coroutine function
        early.run()
        self._after_step(early)

    def _after_step(self, early: EarlyStart) -> None:
        """Leave a request whose stream is open. Wait if the handler waits for a future, else a task must go on."""
        if self.transport is None:  # a stream took it over
            self._messages.clear()
            early.close()
        else:
            self.early_start = early
            self._waits_without_task = early.call_when_ready(self._resume_early)

    def _resume_early(self, _: "asyncio.Future[Any]") -> None:
        """Go on with the handler whose future is done, unless the connection was lost meanwhile."""
        early = self.early_start
        if early is None or self._force_close:
            return
        self.early_start, self._waits_without_task = None, False
        early.resume()
        self._after_step(early)
        self._continue_unless_waiting()


def take_early_request(make_request: Callable[..., Any]) -> Callable[..., Any]:
    """Return a factory of requests that returns the request of an early start instead, if there is one."""

    def make(message: Any, payload: Any, protocol: EarlyHandler, writer: Any, task: Any) -> Any:
        early = protocol.early_start
        return make_request(message, payload, protocol, writer, task) if early is None else early.request

    return make


def finish_early_start(handle: Callable[[Any], Awaitable[web.StreamResponse]]) -> Callable[[Any], Handling]:
    """Return a handler of requests that goes on with an early start instead, if there is one."""

    async def finish(request: web.BaseRequest) -> web.StreamResponse:
        protocol = request.protocol
        assert isinstance(protocol, EarlyHandler)
        early, protocol.early_start = protocol.early_start, None
        return await (handle(request) if early is None else early.finish())

    return finish
