"""The front door of a server process: accepts connections, opens streams, and hands all other requests to aiohttp."""

import asyncio
import logging
import socket
from collections.abc import Coroutine, Sequence
from functools import partial
from typing import Any

from aiohttp import web

from stream_server.hub.client_registry import EMPTY_CONTEXT
from stream_server.runtime.event_loop import TurnQueue
from stream_server.runtime.fair_queue import Slot
from stream_server.runtime.listening import TcpKeepalive, inherited_keepalive
from stream_server.web.http.acceptor import Acceptor
from stream_server.web.http.app_keys import CONFIG, HUB, OPENING, ROUTES, SHUTDOWN, UNPROVEN
from stream_server.web.http.connection import Connection
from stream_server.web.http.connection_states import START, Event
from stream_server.web.http.connection_timeouts import ConnectionTimeouts
from stream_server.web.http.http_handler import Dispatcher, Handler
from stream_server.web.http.middleware import handle_request
from stream_server.web.http.opening import Opening, OpeningState
from stream_server.web.http.request_limits import ALLOWANCE, LIMITS
from stream_server.web.http.responses import OPENED
from stream_server.web.http.usual_request import ApiRoutes, StreamRoutes, UsualRequest, encode_answer
from stream_server.web.limits.byte_budget import HELD_LIMITS, UNSENT_LIMITS, ByteBudget
from stream_server.web.limits.connections import NO_ROOM_FOR_REQUEST, OPERATOR_BEGINS

logger = logging.getLogger(__name__)

SHUTDOWN_SECONDS = 0.25
"""Seconds of each of aiohttp's two waits at shutdown. Short, because :meth:`FrontDoor.wait_until_idle` waits first."""

START_SECONDS = 0.005
"""Most CPU time in seconds of all streams that begin in one iteration of the event loop. The last may take longer."""


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
            lambda each: each.refuse(NO_ROOM_FOR_REQUEST),
        )  # fmt: skip
        self.unsent_bytes = ByteBudget[Connection](
            "unsent_bytes", UNSENT_LIMITS, hits, subject, lambda each: each.unsent_bytes,
            lambda each: each.abort(Event.EVICTION),
        )  # fmt: skip
        self._app = app
        config = app[CONFIG]
        self._timeouts = timeouts or ConnectionTimeouts(  # all connections share one object
            config.write_timeout_seconds, config.heartbeat_seconds, config.idle_seconds
        )
        self._shutdown_seconds = shutdown_seconds
        self._loop = asyncio.get_running_loop()
        self._start_queue = TurnQueue(self._loop, START_SECONDS)
        self._keepalive: TcpKeepalive | None = self._timeouts.keepalive
        self._acceptors: tuple[Acceptor, ...] = ()
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
        if self._keepalive == inherited_keepalive(listeners[0]):
            self._keepalive = None  # each connection has it already
        self._acceptors = tuple(Acceptor(listener, self._accept) for listener in listeners)
        for listener in listeners:
            self._servers.append(await self._loop.create_server(self._accept, sock=listener, backlog=backlog))

    def _accept(self, peer: object = None) -> Connection:
        """Return the protocol of an accepted connection.

        Without ``peer``, the address of its client, the loop has accepted it: then accept those that wait behind it.
        """
        if peer is None:
            for acceptor in self._acceptors:
                acceptor.accept_waiting()
        return Connection(self, self._loop, self._timeouts, self._keepalive, peer)

    def _evict_idle(self, count: int, *, of_operator: bool) -> None:
        """Close up to ``count`` connections, of the operator or not, that are idle or leave an answer unread.

        The idle ones go first, and of each kind those that were heard of the longest ago. The clock stands still in one
        iteration of the loop, in which many may come; of these the first ones go.
        """
        now = self._loop.time()
        found = [
            each for each in self.connections if of_operator is (each.refusal is not None) and each.is_evictable(now)
        ]
        for connection in sorted(found, key=lambda each: (each.is_busy, each.last_heard_at))[:count]:
            connection.abort(Event.EVICTION)

    def make_handler(self, connection: Connection) -> Handler:
        """Return a handler of aiohttp, whose transport the connection lends to it."""
        return Handler(self._http, connection, self._loop)

    def begin(self, connection: Connection, head: bytes) -> None:
        """Begin to handle a request. aiohttp gets one that is unusual.

        A stream begins now or when its turn has come. Until then its head stays bytes, which take the least.
        """
        if connection.refusal is not None and not head.startswith(OPERATOR_BEGINS):
            self.table.count_refusal(connection.refusal)
            connection.refuse(connection.refusal)
            return
        if head.startswith(self._streams.begins):
            connection.cycle.is_stream = True
            self._start_queue.run_in_turn(partial(self._try_at_once, connection))
            return
        request = self._requests.read(connection, head)
        if request is None:
            self._pass_on(connection, head)
        else:
            connection.cycle.move(START)
            connection.task = self._loop.create_task(self._answer(request))

    def _pass_on(self, connection: Connection, head: bytes) -> None:
        """Start an unusual request in aiohttp, or refuse it by its line: aiohttp would take too much."""
        if (refusal := connection.cycle.line_refusal()) is not None:
            connection.refuse(refusal)
            return
        connection.cycle.move(START)
        connection.pass_on(head)

    def _try_at_once(self, connection: Connection) -> None:
        """Open a stream, without a task if it needs to wait for nothing. aiohttp gets a request that is unusual."""
        head = connection.cycle.request_head
        if not head:
            return  # the client has left, or was refused
        request = self._streams.read(connection, head)
        if request is None:
            self._pass_on(connection, head)
            return
        connection.cycle.move(START)
        request[OPENING] = opening = Opening()
        answering = self._answer(request)
        try:
            answering.send(None)
        except StopIteration:
            return  # the stream is open, or was refused
        if opening.state is not OpeningState.MUST_ASK:
            logger.error("a stream waited for something before it asked whether it may: see `Opening.ask`")
            answering.close()
            connection.abort()
            return
        connection.cycle.queue(head)
        openings = self._app[LIMITS].openings
        slot = openings.take_now()
        if slot is not None:
            self._ask(request, answering, slot)
        elif ALLOWANCE in request:  # it was counted, and must not be counted again
            openings.begin_in_turn(partial(self._ask, request, answering))
        else:  # until its turn comes, only its bytes are kept
            answering.close()
            openings.begin_in_turn(partial(self._read_again_and_ask, connection))

    def _read_again_and_ask(self, connection: Connection, slot: Slot) -> bool:
        """Begin a stream anew whose turn to ask has come. Return False if it must not begin, so ``slot`` is free."""
        head = connection.cycle.request_head  # empty if the client has left, or was refused
        request = self._streams.read(connection, head)
        if request is None:
            return False
        request[OPENING] = Opening()
        return self._ask(request, self._answer(request), slot)

    def _ask(self, request: UsualRequest, answering: Coroutine[None, None, None], slot: Slot) -> bool:
        """Let a task go on with ``answering``, which holds ``slot`` until it ends. Return False if it must not."""
        connection = request.connection
        if not connection.cycle.request_head:
            answering.close()
            return False
        connection.cycle.move(START)
        opening = request[OPENING]
        opening.slot, opening.state = slot, OpeningState.MUST_ASK
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
            goes_on = request.keep_alive and response.keep_alive is not False
            answer = partial(connection.answer, encode_answer(response, keep_alive=goes_on), goes_on=goes_on)
            # The next request may have come already. It begins neither inside this one nor with its timeout of Redis.
            self._loop.call_soon(answer, context=EMPTY_CONTEXT)
        except ConnectionError:
            connection.abort()  # the client has left
        except Exception:
            logger.exception("a request could not be answered")
            connection.abort()

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
            connection.close(Event.DRAIN)
        await asyncio.sleep(0)
        await self._app.shutdown()
        self._http.pre_shutdown()
        await self._http.shutdown(self._shutdown_seconds)
        for connection in list(self.connections):
            connection.abort()
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
