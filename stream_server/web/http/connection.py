"""One accepted socket: its deadlines, its slot in the table of connections, and the bytes that it keeps.

What a connection may receive, and what follows, is in `connection_states`, which has a picture. The connection reads
the bytes of its client until a request head is whole, and gives it to the front door. The front door gives an unusual
request to aiohttp, with a lent transport. aiohttp gets one request at a time and no half heads, which would take more
memory there.

Each method that the transport, a handler or a timer calls changes the cycle first, if need be. Then it calls `go_on` or
`end`. Only these and `detach` may end the connection:

`end`              by an event, at once or behind what was written: the state that follows the event decides
`go_on`            when the client has shut down its sending side, and nothing that is whole is left of its requests
`detach`           gives the socket to a stream
`connection_lost`  the transport calls it when the socket is gone, whoever has closed it
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
    DROPPED,
    HELD,
    OF_BODY,
    OF_HEAD,
    RUNNING,
    SENDING,
    SENT,
    Event,
    Eviction,
    State,
)
from stream_server.web.http.connection_timeouts import EVICTED_AFTER_SECONDS, ConnectionTimeouts, WriteDeadline
from stream_server.web.http.request_cycle import MAX_HEAD_BYTES, RequestCycle
from stream_server.web.limits.byte_budget import ByteBudget
from stream_server.web.limits.connections import NO_SLOT, ConnectionSlot, ConnectionTable, Refusal, SlotKind
from stream_server.web.limits.processor_time import Payer
from stream_server.web.shared_text import shared

logger = logging.getLogger(__name__)


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

    def handle(self, connection: "Connection", head: bytes) -> None:
        """Let a handler have the request, which is QUEUED, or let a stream wait until its turn has come."""


class Connection(asyncio.Protocol):
    """One accepted socket.

    Attributes:
        address: IP address of the client, or "" for a unix socket.
        admission: The slot in the table of connections, and what answers a request for which it has none.
        cycle: The state, and the bytes that came and were not taken.
        handler: The handler of aiohttp that has the lent transport. None before the first unusual request.
        last_heard_at: Time of the loop at which the client connected or last sent bytes.
        payer: Whose processor time the chunks of the present body take. None without chunks.
        task: The task that handles the present request, or None. It is cancelled if the client leaves.
        transport: The socket's transport. None before it is connected, and after it was lost or detached.
    """

    __slots__ = (
        "_deadline", "_door", "_is_reading_paused", "_keepalive", "_loop", "_noted_bytes", "_peer", "_timed_state",
        "_timeouts", "_timer", "_write_deadline", "address", "admission", "cycle", "handler", "last_heard_at", "payer",
        "task", "transport",
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
        self.admission = NO_SLOT
        self.cycle = RequestCycle()
        self._deadline = math.inf
        self.handler: HttpHandler | None = None
        self._is_reading_paused = False
        self._noted_bytes = 0  # those that the budget of held bytes has noted
        self._timed_state: State | None = None  # the state whose deadline runs
        self._timer: asyncio.TimerHandle | None = None
        self._write_deadline: WriteDeadline | None = None  # while the kernel has not taken all that was written
        self.last_heard_at = 0.0
        self.payer: Payer | None = None
        self.task: asyncio.Task[object] | None = None
        self.transport: asyncio.Transport | None = None

    @property
    def is_busy(self) -> bool:
        """Whether a request waits or runs, or an answer has not left."""
        return self.cycle.state.received in (HELD, OF_BODY) or self._write_deadline is not None

    @property
    def unsent_bytes(self) -> int:
        """The bytes of an answer that the kernel has not taken."""
        return self.transport.get_write_buffer_size() if self.transport and self._write_deadline else 0

    def is_evictable(self, now: float) -> bool:
        """Whether the connection may be closed to make room at ``now`` (time of the loop), see `Eviction`."""
        eviction, longest = self.cycle.state.eviction, now - EVICTED_AFTER_SECONDS
        if self._write_deadline is not None:
            return self._write_deadline.began_at <= longest
        if eviction is Eviction.SILENT:
            return not self.cycle.is_body_paused and self.last_heard_at <= longest
        return eviction is Eviction.ALWAYS

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start the deadline of the first head. If there is no room for the connection, send a refusal and close it."""
        transport = cast("asyncio.Transport", transport)
        self.last_heard_at = self._loop.time()  # before others may be closed, or this one would seem the longest idle
        peer = self._peer or transport.get_extra_info("peername")
        self.address = shared(peer[0]) if isinstance(peer, tuple) else ""
        self.admission = self._door.table.take(self.address)
        if self.admission.slot is SlotKind.NONE:
            assert self.admission.refusal is not None
            self.cycle.move(Event.EVICTION)
            transport.write(self.admission.refusal.encode())
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
        if self.cycle.state is not CLOSED:
            self.cycle.move(Event.ABORT)
            self._give_back()
        handler, self.handler = self.handler, None
        task, self.task = self.task, None
        if handler is not None:
            handler.connection_lost(exc)
        if task is not None:
            task.cancel()

    def _give_back(self) -> None:
        """Give back the slot in the table, the counted bytes and the timers of a connection that is CLOSED now."""
        self.transport = None
        self._door.connections.pop(self, None)
        if self.payer is not None:
            self.payer.leave(self.go_on)
        if self._write_deadline is not None:
            self._stop_write_deadline()
        if self._noted_bytes:
            self._note_held()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        slot, self.admission = self.admission.slot, NO_SLOT
        if slot is not SlotKind.NONE:  # else a stream has it
            self._door.table.release(self.address, slot)

    def require_client(self) -> asyncio.Transport:
        """Return the transport, for a stream that is about to take it over by :meth:`detach`.

        Raises ConnectionResetError if the client has left or stopped sending: the stream would not hear of this later.
        """
        if self.transport is None or self.transport.is_closing() or self.cycle.has_input_ended:
            raise ConnectionResetError("the client left")
        return self.transport

    def detach(self, successor: asyncio.Protocol) -> ConnectionSlot:
        """Give the transport, which `require_client` has returned just now, to another protocol, such as a stream.

        Return the connection's slot in the table, to be given back when the stream ends. aiohttp's handler is closed.
        Raises ConnectionResetError, and tells the successor, if the first bytes had no room among the unsent bytes.
        """
        transport = self.transport
        if transport is None:
            successor.connection_lost(None)
            raise ConnectionResetError("the connection was closed to make room")
        slot, self.admission = ConnectionSlot(self._door.table, self.address), NO_SLOT
        transport.set_protocol(successor)
        if self._write_deadline is None:
            successor.resume_writing()
        else:
            successor.pause_writing()  # the transport tells the successor when to resume
        if not transport.is_reading():
            transport.resume_reading()  # else the server would not notice the end of the connection
        handler, self.handler, self.task = self.handler, None, None
        early = bytes(self.cycle.held)
        self.cycle.move(Event.DETACH)
        self._give_back()
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
        return self.cycle.state.received is not DROPPED

    def go_on(self) -> None:
        """Handle heads and parts of bodies in the held bytes. Then set what depends on the state.

        This is the deadline, whether the socket is read, and what the budget of held bytes knows of the connection.
        """
        cycle, free = self.cycle, self._door.held_bytes.limits.free
        while True:
            state = cycle.state
            if state.received is OF_HEAD:
                head = cycle.take_request_head() if cycle.held or cycle.has_input_ended else None
                if head is None:
                    break
                if isinstance(head, Refusal):
                    self.end(Event.REFUSAL, head.encode())
                    return
                self._timed_state = None  # the deadline of each request is a new one
                # A long one is charged before a parser takes memory for it: there may be no room.
                if cycle.request_bytes <= free or self._note_held():
                    self._door.handle(self, head)
            elif state is SENDING and self._write_deadline is None:
                cycle.move(SENT)
            elif state.received is not OF_BODY or cycle.is_body_paused or not self._pass_part():
                break
        state = cycle.state
        if state.received is DROPPED:
            if cycle.has_input_ended:  # else the end is under way
                self._close_socket(lingers=False)
            return
        if state is not self._timed_state or state is BODY:
            self._set_deadline()
        must_pause = cycle.is_body_paused or len(cycle.held) > MAX_HEAD_BYTES
        if must_pause != self._is_reading_paused:
            self._set_reading(is_paused=must_pause)
        if self._noted_bytes or len(cycle.held) + cycle.request_bytes > free:
            self._note_held()

    def _note_held(self) -> bool:
        """Charge the client for the bytes that are held. Return False if this has ended the connection."""
        self._noted_bytes = self.cycle.kept_bytes
        self._door.held_bytes.note(self, self._noted_bytes)
        return self.cycle.state.received is not DROPPED

    def _pass_part(self) -> bool:
        """Pass on a part of the body. Return whether anything can follow at once."""
        assert self.handler is not None
        cycle, before, payer = self.cycle, len(self.cycle.held), self.payer
        if before and payer is not None and payer.must_wait(self.go_on):
            return False
        try:
            part = cycle.take_part() if payer is None else payer.run(cycle.take_part)
        except BadChunks:
            self.handler.break_body()
            return True
        if part:
            self.handler.data_received(part)
        if cycle.state.received is not OF_BODY:
            return True
        if 0 < len(cycle.held) < before:
            self._loop.call_soon(self.go_on)  # others have their turn before so many more chunks
        return False

    def _set_reading(self, *, is_paused: bool) -> None:
        """Pause reading while nobody takes the body, or while the client is many requests ahead; or resume."""
        transport = self.transport
        if transport is None or transport.is_closing():
            return
        self._is_reading_paused = is_paused
        (transport.pause_reading if is_paused else transport.resume_reading)()

    def answer(self, data: bytes, *, keep_alive: bool) -> None:
        """Send ``data``, the whole answer, or nothing if aiohttp has sent it. Then read the next request, or close.

        Nothing is sent if the connection has ended meanwhile.
        """
        if data and self.transport is not None and self.cycle.state is RUNNING:
            self.transport.write(data)  # if there is no room for unsent bytes, this ends the connection
        if self.cycle.state.received is DROPPED:
            return
        if keep_alive:
            self.cycle.move(ANSWERED)
            self.task = None
            if self._write_deadline is not None:
                self._door.unsent_bytes.note(self, self.unsent_bytes)
            self.go_on()
        else:
            self.end(Event.CLOSE)

    def end(self, event: Event, answer: bytes = b"") -> None:
        """Let ``event`` end the connection as its states say. Nothing happens if it has ended.

        If the event leads to CLOSED, the socket is aborted: what was written and not sent is lost. If it leads to
        CLOSING, the client gets what was written, and ``answer`` behind it. From other states the connection goes on.
        """
        transport, is_client_sending = self.transport, self.cycle.is_client_sending
        if transport is None:
            return
        self.cycle.move(event)
        if self.cycle.state is CLOSED:
            self._give_back()
            transport.abort()
        elif self.cycle.state is CLOSING:
            if answer:
                transport.write(answer)
            self._close_socket(lingers=is_client_sending)

    def _close_socket(self, *, lingers: bool) -> None:
        """Close the socket when the bytes that were written have left.

        If it ``lingers``, bytes of the client may be under way. They are read and dropped for a while.
        """
        transport = self.transport
        if transport is None or transport.is_closing():
            return
        if lingers and transport.can_write_eof():
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
        self._deadline = self._loop.time() + (getattr(self._timeouts, state.deadline) if state.deadline else math.inf)
        if self._deadline < (math.inf if self._timer is None else self._timer.when()):
            if self._timer is not None:
                self._timer.cancel()
            self._timer = self._loop.call_at(self._deadline, self._check_deadline)

    def _check_deadline(self) -> None:
        self._timer = None
        state = self.cycle.state
        if self._loop.time() < self._deadline:
            if self._deadline != math.inf:
                self._timer = self._loop.call_at(self._deadline, self._check_deadline)
        elif state.has_request and (self._write_deadline is not None or self.cycle.is_body_paused):
            self._set_deadline()  # the client takes a long answer, or the handler is the one who takes nothing
        else:
            if state is RUNNING:
                logger.error("a request was not answered in %g s", self._timeouts.request_seconds)
            self.end(Event.DEADLINE)

    def pause_writing(self) -> None:
        """Start the write deadline. The transport calls this when the kernel's send buffer takes no more bytes."""
        if self.handler is not None:
            self.handler.pause_writing()
        if self.transport is not None:
            self._write_deadline = WriteDeadline(self.transport, self._loop, self._timeouts.write_seconds)
            self._door.unsent_bytes.note(self, self.unsent_bytes)

    def resume_writing(self) -> None:
        """Stop the write deadline. The transport calls this when the kernel has taken all pending bytes."""
        self._stop_write_deadline()
        if self.handler is not None:
            self.handler.resume_writing()
        if self.cycle.state is SENDING:
            self.go_on()

    def _stop_write_deadline(self) -> None:
        deadline, self._write_deadline = self._write_deadline, None
        if deadline is not None:
            deadline.stop()
            self._door.unsent_bytes.note(self, 0)
