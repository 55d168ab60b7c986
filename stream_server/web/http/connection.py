"""One accepted socket: its deadlines, its slot in the table of connections, and the bytes that it keeps.

What a connection may receive, and what follows, is in `connection_states`, which has a picture. The connection reads
the bytes of its client until a request head is whole, and gives it to the front door. An unusual request goes to
aiohttp, which gets a lent transport, and one request at a time: half a head would take more memory in aiohttp.

Each way in changes the cycle first. Then it ends with `go_on`, or with the end of the connection. Only these call what
may close the connection itself.
"""

import asyncio
import logging
import math
from typing import Protocol, cast

from stream_server.runtime.listening import TcpKeepalive
from stream_server.web.http.chunks import BadChunks
from stream_server.web.http.connection_states import (
    ANSWERED,
    BODY,
    CLOSED,
    CLOSING,
    IDLE,
    ROWS,
    RUNNING,
    SENDING,
    SENT,
    TAKES_BODY,
    Event,
    Eviction,
)
from stream_server.web.http.connection_timeouts import EVICTED_AFTER_SECONDS, ConnectionTimeouts, WriteDeadline
from stream_server.web.http.request_cycle import MAX_HEAD_BYTES, RequestCycle
from stream_server.web.limits.byte_budget import ByteBudget
from stream_server.web.limits.connections import ConnectionSlot, ConnectionTable, Refusal
from stream_server.web.shared_text import shared

logger = logging.getLogger(__name__)

_DEADLINES = [ConnectionTimeouts._fields.index(row.deadline) if row.deadline else None for row in ROWS]
"""The index of each state's deadline, which is looked up twice in each request."""


class HttpHandler(asyncio.Protocol):
    """aiohttp's handler of a connection, which lends it the transport."""

    __slots__ = ()

    def break_body(self) -> None:
        """Raise an error in the handler that waits for the body, because its framing is invalid."""


class Door(Protocol):
    """The part of the front door that a connection uses."""

    table: ConnectionTable
    held_bytes: "ByteBudget[Connection]"
    unsent_bytes: "ByteBudget[Connection]"
    connections: "dict[Connection, None]"

    def begin(self, connection: "Connection", head: bytes) -> None:
        """Begin to handle a request, or let a stream wait until its turn has come."""

    def make_handler(self, connection: "Connection") -> HttpHandler:
        """Return a handler of aiohttp, whose transport the connection lends to it."""


class Connection(asyncio.Protocol):
    """One accepted socket.

    Attributes:
        address: IP address of the client, or "" for a unix socket.
        cycle: The state, and the bytes that came and were not taken.
        last_heard_at: Time of the loop at which the client connected or last sent bytes.
        refusal: What answers each request that is not the operator's, or None if it may send all.
        task: The task that handles the present request, or None. It is cancelled if the client leaves.
        transport: The socket's transport. None before it is connected, and after it was lost or detached.
    """

    __slots__ = (
        "_deadline", "_door", "_handler", "_has_slot", "_is_reading_paused", "_keepalive", "_loop", "_noted_bytes",
        "_peer", "_timed_state", "_timeouts", "_timer", "_write_deadline", "address", "cycle", "last_heard_at",
        "refusal", "task", "transport",
    )  # fmt: skip

    def __init__(
        self, door: Door, loop: asyncio.AbstractEventLoop, timeouts: ConnectionTimeouts,
        keepalive: TcpKeepalive | None, peer: object = None,
    ) -> None:  # fmt: skip
        """``keepalive`` is None if the socket inherited it. ``peer`` is the client's address, None to ask for it."""
        self._door = door
        self._loop = loop
        self._timeouts = timeouts
        self._keepalive = keepalive
        self._peer = peer
        self.address = ""
        self.cycle = RequestCycle()
        self._deadline = math.inf
        self._handler: HttpHandler | None = None
        self._has_slot = self._is_reading_paused = False
        self._noted_bytes = 0
        self._timed_state = CLOSED
        self._timer: asyncio.TimerHandle | None = None
        self._write_deadline: WriteDeadline | None = None
        self.last_heard_at = 0.0
        self.refusal: Refusal | None = None
        self.task: asyncio.Task[object] | None = None
        self.transport: asyncio.Transport | None = None

    @property
    def is_busy(self) -> bool:
        """Whether a request waits or runs, or an answer has not left."""
        return IDLE < self.cycle.state < CLOSING or self._write_deadline is not None

    @property
    def unsent_bytes(self) -> int:
        """The bytes of an answer that the kernel has not taken."""
        if self.transport is None or self._write_deadline is None:
            return 0
        return self.transport.get_write_buffer_size()

    def is_evictable(self, now: float) -> bool:
        """Whether the connection may be closed to make room at ``now`` (time of the loop), see `Eviction`."""
        eviction, longest = ROWS[self.cycle.state].eviction, now - EVICTED_AFTER_SECONDS
        if self._write_deadline is not None:
            return self._write_deadline.began_at <= longest
        if eviction == Eviction.SILENT:
            return not self.cycle.is_body_paused and self.last_heard_at <= longest
        return eviction == Eviction.ALWAYS

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start the deadline of the first head. If there is no room for the connection, send a refusal and close it."""
        transport = cast("asyncio.Transport", transport)
        self.last_heard_at = self._loop.time()  # before others may be closed, or this one would seem the longest idle
        peer = self._peer or transport.get_extra_info("peername")
        self.address = shared(peer[0]) if isinstance(peer, tuple) else ""
        self.refusal, self._has_slot = self._door.table.take(self.address)
        if self.refusal is not None and not self._has_slot:
            self.cycle.move(Event.EVICTION)
            transport.write(self.refusal.encode())
            transport.close()
            return
        self.transport = transport
        self._door.connections[self] = None
        if self._keepalive is not None and (client_socket := transport.get_extra_info("socket")) is not None:
            self._keepalive.set_on(client_socket)
        transport.set_write_buffer_limits(high=0)  # else closing a connection would wait for its last bytes
        self._set_deadline()

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the handling of the present request, and give back what the connection holds in the server."""
        self._give_back()
        handler, self._handler = self._handler, None
        task, self.task = self.task, None
        if handler is not None:
            handler.connection_lost(exc)
        if task is not None:
            task.cancel()

    def _give_back(self, event: Event = Event.LEFT) -> None:
        """Move to CLOSED by ``event``, and give back the slot in the table, the counted bytes and the timers."""
        self.cycle.move(event)
        self.transport = None
        self._door.connections.pop(self, None)
        deadline, self._write_deadline = self._write_deadline, None
        if deadline is not None:
            deadline.stop()
            self._door.unsent_bytes.note(self, 0)
        if self._noted_bytes:
            self._note_held()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._has_slot:
            self._has_slot = False
            self._door.table.release(self.address) if self.refusal is None else self._door.table.release_operator()

    def abort(self, event: Event = Event.LEFT) -> None:
        """Close the connection at once. What was written and not sent is lost."""
        transport = self.transport
        if transport is not None:
            self._give_back(event)
            transport.abort()

    def require_client(self) -> asyncio.Transport:
        """Return the transport, for a stream that is about to take it over by :meth:`detach`.

        Raises ConnectionResetError if the client has left or stopped sending: the stream would not hear of this later.
        """
        if self.transport is None or self.transport.is_closing() or self.cycle.has_ended:
            raise ConnectionResetError("the client left")
        return self.transport

    def detach(self, successor: asyncio.Protocol) -> ConnectionSlot:
        """Give the transport, which `require_client` has returned just now, to another protocol, such as a stream.

        Return the connection's slot in the table, to be given back when the stream ends. aiohttp's handler is closed.
        """
        transport = self.transport
        assert transport is not None  # if it is closing, after a failed write, the successor is told of the end
        slot, self._has_slot = ConnectionSlot(self._door.table, self.address), False
        transport.set_protocol(successor)
        if self._write_deadline is None:
            successor.resume_writing()
        else:
            successor.pause_writing()  # the transport tells the successor when to resume
        if not transport.is_reading():
            transport.resume_reading()  # else the server would not notice the end of the connection
        handler, self._handler, self.task = self._handler, None, None
        early = bytes(self.cycle.held)
        self._give_back(Event.DETACH)
        if handler is not None:
            handler.connection_lost(None)
        if early:
            successor.data_received(early)  # a client that asked for a WebSocket may not wait for the answer
        return slot

    def data_received(self, data: bytes) -> None:
        """Hold the bytes that came, and handle the requests and parts of bodies that they complete."""
        self.last_heard_at = self._loop.time()
        self.cycle.receive(data)
        self.go_on()

    def eof_received(self) -> bool:
        """Let whole requests be answered. Return whether the connection stays open for their answers."""
        self.cycle.end_input()
        self.go_on()
        return self.cycle.state < CLOSING

    def go_on(self) -> None:
        """Handle heads and parts of bodies in the held bytes. Then set deadline, reading and account by the state."""
        cycle, free = self.cycle, self._door.held_bytes.limits.free
        while True:
            state = cycle.state
            if state <= IDLE:
                head = cycle.take_request_head() if cycle.held or cycle.has_ended else None
                if head is None:
                    break
                if isinstance(head, Refusal):
                    self.refuse(head)
                    return
                self._timed_state = CLOSED  # the deadline of the next head is a new one
                # A long one is charged before a parser takes memory for it: there may be no room.
                if cycle.request_bytes <= free or self._note_held():
                    self._door.begin(self, head)
            elif state == SENDING and self._write_deadline is None:
                cycle.move(SENT)
            elif state not in TAKES_BODY or cycle.is_body_paused or not self._pass_part():
                break
        state = cycle.state
        if state >= CLOSING:
            if cycle.has_ended and self.transport is not None:  # else the end is under way
                self._end()
            return
        if state != self._timed_state or state == BODY:
            self._set_deadline()
        must_pause = cycle.is_body_paused or len(cycle.held) > MAX_HEAD_BYTES
        if must_pause != self._is_reading_paused:
            self._set_reading(is_paused=must_pause)
        if self._noted_bytes or len(cycle.held) + cycle.request_bytes > free:
            self._note_held()

    def _note_held(self) -> bool:
        """Charge the client for the bytes that are held. Return False if this has closed the connection."""
        self._noted_bytes = self.cycle.kept_bytes
        self._door.held_bytes.note(self, self._noted_bytes)
        return self.cycle.state < CLOSING

    def _pass_part(self) -> bool:
        """Pass on a part of the body. Return whether anything can follow at once."""
        assert self._handler is not None
        cycle, before = self.cycle, len(self.cycle.held)
        try:
            part = cycle.take_part()
        except BadChunks:
            self._handler.break_body()
            return True
        if part:
            self._handler.data_received(part)
        if cycle.state in TAKES_BODY and 0 < len(cycle.held) < before:
            self._loop.call_soon(self.go_on)  # others have their turn before so many more chunks
        return cycle.state not in TAKES_BODY

    def _set_reading(self, *, is_paused: bool) -> None:
        """Pause reading while nobody takes the body, or while the client is many requests ahead; or resume."""
        transport = self.transport
        if transport is None or transport.is_closing():
            return
        self._is_reading_paused = is_paused
        if is_paused:
            transport.pause_reading()
        else:
            transport.resume_reading()

    def pass_on(self, head: bytes) -> None:
        """Let aiohttp handle the request with this head, because `usual_request` does not read it."""
        if self._handler is None:
            self._handler = self._door.make_handler(self)
        self._handler.data_received(head)

    def end_request(self, *, goes_on: bool) -> None:
        """Note that the answer was written. Read the next request, or close the connection unless it ``goes_on``."""
        if goes_on:
            self.cycle.move(ANSWERED)
            self.task = None
            if self._write_deadline is not None:
                self._door.unsent_bytes.note(self, self.unsent_bytes)
            self.go_on()
        else:
            self.close()

    def answer(self, data: bytes, *, goes_on: bool) -> None:
        """Send ``data``, the whole answer to a request without aiohttp. Then read the next request, or close."""
        if self.transport is not None and self.cycle.state == RUNNING:  # else it was refused meanwhile
            self.transport.write(data)
            self.end_request(goes_on=goes_on)

    def refuse(self, refusal: Refusal) -> None:
        """Give up the request, and close the connection. The client gets ``refusal`` if no handler has the request."""
        is_early = self.cycle.is_client_sending
        self.cycle.move(Event.REFUSAL)
        if self.cycle.state == CLOSED:
            self.abort()
        elif self.transport is not None:
            self.transport.write(refusal.encode())
            self._end(is_early=is_early)

    def close(self, event: Event = Event.CLOSE) -> None:
        """Close the connection when all that was written is sent. With DRAIN, a request that runs is answered first."""
        is_early = self.cycle.is_client_sending
        self.cycle.move(event)
        if self.cycle.state >= CLOSING:
            self._end(is_early=is_early)

    def _end(self, *, is_early: bool = False) -> None:
        """Close the socket when the bytes that were written have left.

        If ``is_early``, bytes of the client may be under way. They are read and dropped for a while.
        """
        transport = self.transport
        if transport is None or transport.is_closing():
            return
        if is_early and transport.can_write_eof():
            if self._is_reading_paused:
                self._set_reading(is_paused=False)
            transport.write_eof()
            self._set_deadline()
        else:
            transport.close()
        if self._noted_bytes:
            self._note_held()
        if self._write_deadline is not None:
            self._door.unsent_bytes.note(self, self.unsent_bytes)

    def _set_deadline(self) -> None:
        """Start the deadline of the present state. One timer serves many deadlines."""
        self._timed_state = state = self.cycle.state
        field = _DEADLINES[state]
        if field is None:
            self._deadline = math.inf
            return
        self._deadline = self._loop.time() + self._timeouts[field]
        if self._timer is None or self._timer.when() > self._deadline:
            if self._timer is not None:
                self._timer.cancel()
            self._timer = self._loop.call_at(self._deadline, self._check_deadline)

    def _check_deadline(self) -> None:
        self._timer = None
        state = self.cycle.state
        if self._loop.time() < self._deadline:
            if self._deadline != math.inf:
                self._timer = self._loop.call_at(self._deadline, self._check_deadline)
        elif ROWS[state].holds_request and (self._write_deadline is not None or self.cycle.is_body_paused):
            self._set_deadline()  # the client takes a long answer, or the handler is the one who takes nothing
        elif ROWS[state].holds_request:
            if state == RUNNING:
                logger.error("a request was not answered in %g s", self._timeouts.request_seconds)
            self.abort(Event.DEADLINE)
        elif self.transport is not None:
            self.close(Event.DEADLINE)

    def pause_writing(self) -> None:
        """Start the write deadline. The transport calls this when the kernel's send buffer takes no more bytes."""
        if self._handler is not None:
            self._handler.pause_writing()
        if self.transport is not None:
            self._write_deadline = WriteDeadline(self.transport, self._loop, self._timeouts.write_seconds)
            self._door.unsent_bytes.note(self, self.unsent_bytes)

    def resume_writing(self) -> None:
        """Stop the write deadline. The transport calls this when the kernel has taken all pending bytes."""
        deadline, self._write_deadline = self._write_deadline, None
        if deadline is not None:
            deadline.stop()
            self._door.unsent_bytes.note(self, 0)
        if self._handler is not None:
            self._handler.resume_writing()
        if self.cycle.state == SENDING:
            self.go_on()
