"""The front door of a server process: accepts connections, and chooses who handles each request.

The ways of a request, from `FrontDoor.handle` on::

    a stream, in its turn ----> _open_without_task ----> its answer, if it needs to wait for nothing
                                        |
                                        | it is QUEUED until it gets a slot
                                        |
                                        +-- a limit has counted it --> _go_on_in_task, from where it stands
                                        +-- no limit has ------------> _open_in_task, anew from its head
    another usual request ----> a task with _answer
    an unusual one -----------> _let_aiohttp_handle

`opening` has the states of a stream on this way.
"""

import asyncio
import logging
import socket
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any

from aiohttp import web

from stream_server.hub.client_registry import EMPTY_CONTEXT
from stream_server.runtime.event_loop import Ended, TurnQueue, run_to_wait
from stream_server.runtime.fair_queue import Slot
from stream_server.runtime.listening import TcpKeepalive, inherited_keepalive
from stream_server.web.http.app_keys import CONFIG, HUB, OPENING, ROUTES, SHUTDOWN, UNPROVEN
from stream_server.web.http.connection import Connection
from stream_server.web.http.connection_states import QUEUED, START, Event
from stream_server.web.http.connection_timeouts import ConnectionTimeouts
from stream_server.web.http.http_handler import Dispatcher, Handler
from stream_server.web.http.middleware import handle_request
from stream_server.web.http.opening import Opening, OpeningState
from stream_server.web.http.request_limits import LIMITS, is_counted
from stream_server.web.http.responses import OPENED
from stream_server.web.http.usual_request import ApiRoutes, StreamRoutes, UsualRequest, encode_answer
from stream_server.web.limits.byte_budget import HELD_LIMITS, UNSENT_LIMITS, ByteBudget
from stream_server.web.limits.connections import NO_ROOM_FOR_REQUEST, OPERATOR_BEGINS, SlotKind

logger = logging.getLogger(__name__)

SHUTDOWN_SECONDS = 0.25
"""Seconds of each of aiohttp's two waits at shutdown. Short, because :meth:`FrontDoor.wait_until_idle` waits first."""

START_SECONDS = 0.005
"""Most CPU time in seconds of all streams that begin in one iteration of the event loop. The last may take longer."""

MAX_ACCEPTED_AT_ONCE = 64
"""Most connections that are accepted behind one of the loop. They take about 10 ms."""


class Acceptor:
    """Accepts the connections of one listening socket that wait behind the one that the event loop has accepted.

    uvloop accepts one connection in each iteration. If each takes 20 ms, that is fifty a second. If ten thousand
    clients come at once, the kernel's queue of connections overflows, and a client that finds no room tries again after
    one, three and seven seconds. So the server accepts further connections itself, a limited number in each iteration.
    """

    def __init__(self, listener: socket.socket, make_protocol: Callable[[object], asyncio.Protocol]) -> None:
        """Serve each connection with what ``make_protocol`` returns for the address of its client, None if unknown."""
        self._listener = listener
        self._make_protocol = make_protocol

    def accept(self) -> asyncio.Protocol:
        """Return the protocol of a connection that the loop has accepted. Accept those that wait behind it, too.

        The loop calls this for each connection of the listening socket.
        """
        loop = asyncio.get_running_loop()
        for _ in range(MAX_ACCEPTED_AT_ONCE):
            try:
                client, address = self._listener.accept()
            except OSError:  # none waits, the socket is closed, or there are too many open files
                break
            _connect(loop.connect_accepted_socket(partial(self._make_protocol, address), client))
        return self._make_protocol(None)


def _connect(connecting: Coroutine[asyncio.Future[object], None, object], _: object = None) -> None:
    """Run the coroutine until it waits for a future, and go on when the future is done.

    It waits once, for the loop to call ``connection_made``. A task for this took 4 to 5 of the 38 µs that a connection
    cost in a burst.
    """
    try:
        awaited = run_to_wait(connecting)
    except asyncio.CancelledError:
        return  # the loop is about to close
    if awaited is not Ended.ENDED:
        awaited.add_done_callback(partial(_connect, connecting))


class FrontDoor:
    """Serves an app on listening sockets.

    Attributes:
        connections: The connections that are not streams, in the order in which they came. The values mean nothing.
        held_bytes: Limits the bytes of requests that are not answered.
        table: Limits the number of connections.
        unsent_bytes: Limits the bytes of answers that the kernel has not taken.
    """

    def __init__(
        self, app: web.Application, *, timeouts: ConnectionTimeouts | None = None,
        shutdown_seconds: float = SHUTDOWN_SECONDS,
    ) -> None:  # fmt: skip
        """Serve ``app``, which has the limits of connections. Without ``timeouts``, they come from its settings."""
        self.connections: dict[Connection, None] = {}
        self.table = app[LIMITS].connections
        self.table.evict_idle = self._evict_idle
        hits, subject = self.table.hits, self.table.limited_subject
        self.held_bytes = ByteBudget[Connection](
            "held_bytes", HELD_LIMITS, hits, subject, lambda each: each.cycle.kept_bytes,
            lambda each: each.end(Event.REFUSAL, NO_ROOM_FOR_REQUEST.encode()),
        )  # fmt: skip
        self.unsent_bytes = ByteBudget[Connection](
            "unsent_bytes", UNSENT_LIMITS, hits, subject, lambda each: each.unsent_bytes,
            lambda each: each.end(Event.EVICTION),
        )  # fmt: skip
        self._app = app
        config = app[CONFIG]
        self._timeouts = timeouts or ConnectionTimeouts(  # all connections share one object
            config.write_timeout_seconds, config.heartbeat_seconds, config.idle_seconds
        )
        self._shutdown_seconds = shutdown_seconds
        self._loop = asyncio.get_running_loop()
        self._start_queue = TurnQueue(self._loop, START_SECONDS)
        self._servers: list[asyncio.Server] = []

    @property
    def addresses(self) -> list[Any]:
        """The addresses of the sockets."""
        return [listener.getsockname() for server in self._servers for listener in server.sockets]

    async def open(self, listeners: Sequence[socket.socket], backlog: int = 128) -> None:
        """Accept connections of these sockets, and inherit the options of TCP's keep-alive from them.

        They inherit the size of the kernel's send buffer, too. A system call for each stream would cost more.
        """
        app = self._app
        for listener in listeners:
            if app[HUB].limits.send_buffer_bytes:
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, app[HUB].limits.send_buffer_bytes)
        app.freeze()
        await app.startup()
        values = dict[Any, Any](app)  # a stream looks up twenty, and an app does each look-up in Python
        dispatcher = Dispatcher(app)
        self._http = web.Server(dispatcher.answer, request_factory=dispatcher.make_request)
        streams = [row for row in app[ROUTES].values() if row.is_streaming and row.response is None]
        self._streams = StreamRoutes(values, {row.path: row for row in streams if row.method == "GET"})
        self._requests = ApiRoutes(values, app[ROUTES])
        keepalive: TcpKeepalive | None = self._timeouts.keepalive
        if keepalive == inherited_keepalive(listeners[0]):
            keepalive = None  # each connection has it already
        make_connection = partial(Connection, self, self._loop, self._timeouts, keepalive)
        for listener in listeners:
            accept = Acceptor(listener, make_connection).accept
            self._servers.append(await self._loop.create_server(accept, sock=listener, backlog=backlog))

    def _evict_idle(self, count: int, *, of_operator: bool) -> None:
        """Close up to ``count`` connections, of the operator or not, that are idle or leave an answer unread.

        The idle ones go first, and of each kind those that were heard of the longest ago. The clock stands still in one
        iteration of the loop, in which many may come; of these the first ones go.
        """
        now = self._loop.time()
        found = [
            each for each in self.connections
            if of_operator is (each.admission.slot is SlotKind.OPERATOR) and each.is_evictable(now)
        ]
        for connection in sorted(found, key=lambda each: (each.is_busy, each.last_heard_at))[:count]:
            connection.end(Event.EVICTION)

    def handle(self, connection: Connection, head: bytes) -> None:
        """Let a task or aiohttp handle a request, or let a stream wait until its turn has come.

        While a stream waits, its head stays bytes, which take the least memory.
        """
        refusal = connection.admission.refusal
        if refusal is not None and not head.startswith(OPERATOR_BEGINS):
            self.table.count_refusal(refusal)
            connection.end(Event.REFUSAL, refusal.encode())
            return
        if head.startswith(self._streams.begins):
            connection.cycle.is_stream = True
            self._start_queue.run_in_turn(partial(self._open_without_task, connection))
            return
        request = self._requests.read(connection, head)
        if request is None:
            self._let_aiohttp_handle(connection, head)
        else:
            connection.cycle.move(START)
            connection.task = self._loop.create_task(self._answer(request))

    def _let_aiohttp_handle(self, connection: Connection, head: bytes) -> None:
        """Let aiohttp handle an unusual request. Refuse one by its line, such as CONNECT, which aiohttp would take."""
        if (refusal := connection.cycle.line_refusal()) is not None:
            connection.end(Event.REFUSAL, refusal.encode())
            return
        connection.cycle.move(START)
        if connection.handler is None:
            connection.handler = Handler(self._http, connection, self._loop)
        connection.handler.data_received(head)

    def _open_without_task(self, connection: Connection) -> None:
        """Open a stream, without a task if it needs to wait for nothing. aiohttp gets a request that is unusual.

        A stream that must wait is QUEUED again. If it gets a slot at once, or if a limit has counted it, a task goes on
        from where it stands. Otherwise it begins anew from its head in its turn, and what it has done is dropped.
        """
        cycle = connection.cycle
        if cycle.state is not QUEUED:
            return  # the client has left, or was refused
        head = cycle.request_head
        request = self._streams.read(connection, head)
        if request is None:
            self._let_aiohttp_handle(connection, head)
            return
        cycle.move(START)
        request[OPENING] = opening = Opening()
        answering = self._answer(request)
        if run_to_wait(answering) is Ended.ENDED:
            return  # the stream is open, or was refused
        if opening.state is not OpeningState.QUEUED:
            logger.error("a stream waited for something without a slot: see `Opening.hold_slot`")
            answering.close()
            connection.end(Event.ABORT)
            return
        cycle.queue(head)
        openings = self._app[LIMITS].openings
        slot = openings.take_now()
        if slot is not None:
            self._go_on_in_task(request, answering, slot)
        elif is_counted(request):  # a second run would count it twice
            openings.begin_in_turn(partial(self._go_on_in_task, request, answering))
        else:  # until its turn comes, only its bytes are kept
            answering.close()
            openings.begin_in_turn(partial(self._open_in_task, connection))

    def _open_in_task(self, connection: Connection, slot: Slot) -> bool:
        """Open a QUEUED stream anew from its head. Return what `_go_on_in_task` returns."""
        request = self._streams.read(connection, connection.cycle.request_head)  # None if it is not QUEUED any more
        if request is None:
            return False
        request[OPENING] = Opening()
        return self._go_on_in_task(request, self._answer(request), slot)

    def _go_on_in_task(self, request: UsualRequest, answering: Coroutine[None, None, None], slot: Slot) -> bool:
        """Let a task with ``slot`` run ``answering``, which opens a QUEUED stream.

        Return False if its client has left or was refused: ``slot`` is free.
        """
        connection = request.connection
        if connection.cycle.state is not QUEUED:
            answering.close()  # the client has left, or was refused
            return False
        connection.cycle.move(START)
        request[OPENING].resume(slot)
        connection.task = task = self._loop.create_task(answering)
        task.add_done_callback(lambda _: slot.give_back())  # also if it was cancelled before it began
        return True

    async def _answer(self, request: UsualRequest) -> None:
        """Send the answer of the request's route, or let it open a stream."""
        connection = request.connection
        try:
            response = await handle_request(request, request.route)
            if response is OPENED:
                return
            keep_alive = request.keep_alive and response.keep_alive is not False
            answer = partial(connection.answer, encode_answer(response, keep_alive=keep_alive), keep_alive=keep_alive)
            # The next request may have come already. It begins neither inside this one nor with its timeout of Redis.
            self._loop.call_soon(answer, context=EMPTY_CONTEXT)
        except ConnectionError:
            connection.end(Event.ABORT)  # the client has left
        except Exception:
            logger.exception("a request could not be answered")
            connection.end(Event.ABORT)

    def stop_listening(self) -> None:
        """Accept no more connections."""
        for server in self._servers:
            server.close()

    async def wait_until_idle(self, timeout_seconds: float) -> None:
        """Wait until the server has answered all requests, at most ``timeout_seconds``.

        The server also answers requests that it has received but not read yet. aiohttp's own wait would drop them.
        """
        deadline, busy = self._loop.time() + timeout_seconds, True
        while busy and self._loop.time() < deadline:
            await asyncio.sleep(0.01)
            busy = any(connection.is_busy for connection in self.connections)

    async def close(self) -> None:
        """End all connections, and clean up the app."""
        self.stop_listening()
        for connection in list(self.connections):
            connection.end(Event.DRAIN)
        await asyncio.sleep(0)
        await self._app.shutdown()
        self._http.pre_shutdown()
        await self._http.shutdown(self._shutdown_seconds)
        for connection in list(self.connections):
            connection.end(Event.ABORT)
        await self._app.cleanup()


async def drain(app: web.Application, door: FrontDoor, timeout_seconds: float) -> None:
    """Shut down in an order in which every client gets an answer. Takes at most about ``timeout_seconds``.

    1. The hub stops: `/readyz` fails, new streams are refused with a retry delay, open streams get a `goodbye`.
    2. Meanwhile the listening sockets stay open. If they closed first, new clients would see a reset without a reason.
    3. The listening sockets close. Otherwise new requests could keep the server busy without an end. Connections
       made at this moment are reset, but the server has not acted on their requests.
    4. The requests in progress finish. Then the background tasks end and the remaining connections close.
    """
    hub, shutdown, clock = app[HUB], app[SHUTDOWN], asyncio.get_running_loop().time
    deadline = clock() + timeout_seconds
    hub.stop(shutdown.next_disconnect_reason)
    for close_unproven in app[UNPROVEN].copy():
        close_unproven()
    await hub.wait_until_empty(timeout_seconds / 2)
    door.stop_listening()
    await door.wait_until_idle(deadline - timeout_seconds / 4 - clock())
    await hub.wait_until_empty(deadline - clock())  # streams that were just opening get their goodbye too
    await hub.background_tasks.cancel_all()
    await door.close()
