"""One accepted socket: the head of each request, the deadlines, the place in the table of connections.

A connection reads the bytes of its client until a request head is whole, and gives it to the front door. An unusual
request goes to aiohttp, which gets a transport that the connection lends to it. aiohttp gets one request at a time:
half a head takes its bytes alone, where aiohttp would keep objects that take more.

The connection ends if a head does not come in time (slowloris attack), if it has been idle for long, if the client
takes nothing of a pending answer during one write deadline, or if the server needs room for others.
"""

import asyncio
import math
from typing import Protocol, cast

from stream_server.runtime.listening import TcpKeepalive
from stream_server.web.http.chunks import BadChunks, Body
from stream_server.web.http.connection_timeouts import KEEPALIVE_TIMEOUT_SECONDS, ConnectionTimeouts, WriteDeadline
from stream_server.web.limits.connections import (
    HEAD_TOO_LARGE,
    MAX_HEAD_BYTES,
    NO_HTTP,
    ConnectionPlace,
    ConnectionTable,
    HeldHeads,
    Refusal,
)
from stream_server.web.shared_text import shared

EVICTED_AFTER_SECONDS = 5.0
"""Seconds for which a client must have left an answer unread before its connection may be closed to make room."""

CLOSE_SECONDS = 1.0
"""Seconds for which bytes of a refused client are still read: a close with unread ones would overtake the answer."""

HEAD_END = b"\r\n\r\n"

BLANK_LINES = b"\r\n"
"""Bytes that may stand before a request, and mean nothing (RFC 9112 §2.2)."""

HTTP2_BEGIN = b"PRI "  # RFC 9113 §3.4; aiohttp would wait for the rest of this preface

_FIRST_BYTES = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ")
"""Bytes with which a request may begin: those of its method."""

_IDLE, _BUSY, _ENDING = range(3)
"""Phases of a connection: it waits for a whole head; a request is handled or waits for that; nothing more is read."""


class HttpHandler(asyncio.Protocol):
    """aiohttp's handler of a connection, which lends it the transport."""

    __slots__ = ()

    def break_body(self) -> None:
        """Raise an error in the handler that waits for the body, because its framing is invalid."""


class Door(Protocol):
    """The part of the front door that a connection uses."""

    table: ConnectionTable
    held_heads: HeldHeads
    connections: "set[Connection]"

    def begin(self, connection: "Connection", head: bytes) -> None:
        """Begin to handle a request, or let a stream wait until its turn has come."""

    def make_handler(self, connection: "Connection") -> HttpHandler:
        """Return a handler of aiohttp, whose transport the connection lends to it."""


class Connection(asyncio.Protocol):
    """One accepted socket.

    Attributes:
        address: IP address of the client, or "" for a unix socket.
        held: The bytes that came and were not taken yet: the beginning of a head, or what follows a request.
        last_heard_at: Time of the loop at which the client connected or last sent bytes.
        task: The task that handles the present request, or None. It is cancelled if the client leaves.
        transport: The socket's transport. None before it is connected, and after it was lost or handed over.
        waiting_head: Head of a stream that waits for its turn to begin. Empty if it must not begin any more.
    """

    __slots__ = (
        "_body", "_deadline", "_door", "_handler", "_has_place", "_is_answered", "_is_body_paused", "_is_paused",
        "_is_reading_head", "_keepalive", "_loop", "_noted_bytes", "_peer", "_phase", "_searched", "_timeouts",
        "_timer", "_write_deadline", "address", "held", "last_heard_at", "task", "transport", "waiting_head",
    )  # fmt: skip

    def __init__(
        self, door: Door, loop: asyncio.AbstractEventLoop, timeouts: ConnectionTimeouts,
        keepalive: TcpKeepalive | None, peer: object = None,
    ) -> None:  # fmt: skip
        """``keepalive`` is None if it was inherited, and ``peer`` None if the transport must tell the address."""
        self._door = door
        self._loop = loop
        self._timeouts = timeouts
        self._keepalive = keepalive
        self._peer = peer
        self.address = ""
        self._body: Body | None = None
        self._deadline = math.inf
        self._handler: HttpHandler | None = None
        self.held = bytearray()
        self._has_place = self._is_answered = self._is_body_paused = self._is_paused = False
        self._is_reading_head = True
        self._noted_bytes = 0
        self._phase = _IDLE
        self._searched = 0
        self._timer: asyncio.TimerHandle | None = None
        self._write_deadline: WriteDeadline | None = None
        self.last_heard_at = 0.0
        self.task: asyncio.Task[object] | None = None
        self.transport: asyncio.Transport | None = None
        self.waiting_head = b""

    @property
    def is_busy(self) -> bool:
        """Whether the connection handles a request, or has received one that still waits to be handled."""
        return self._phase == _BUSY

    @property
    def writing_paused(self) -> bool:
        """Whether the kernel takes no more bytes of an answer at present."""
        return self._write_deadline is not None

    def is_evictable(self, now: float) -> bool:
        """Whether nobody waits for this connection at ``now`` (time of the loop): it is idle, or its client is."""
        if self._phase != _BUSY:
            return True
        return self._write_deadline is not None and now - self._write_deadline.began_at >= EVICTED_AFTER_SECONDS

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start the deadline of the first head. If there is no room for the connection, answer so and close it."""
        transport = cast("asyncio.Transport", transport)
        self.last_heard_at = self._loop.time()  # before others may be closed, or this one would seem the longest idle
        peer = self._peer or transport.get_extra_info("peername")
        self.address = shared(peer[0]) if isinstance(peer, tuple) else ""
        refusal = self._door.table.take(self.address)
        if refusal is not None:
            self._phase = _ENDING
            transport.write(refusal.encode())
            transport.close()
            return
        self._has_place = True
        self.transport = transport
        self._door.connections.add(self)
        if self._keepalive is not None and (client_socket := transport.get_extra_info("socket")) is not None:
            self._keepalive.set_on(client_socket)
        transport.set_write_buffer_limits(high=0)  # else closing a connection would wait for its last bytes
        self._set_deadline(self._timeouts.header_seconds)

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the handling of a request, and give everything back."""
        self._leave()
        handler, self._handler = self._handler, None
        task, self.task = self.task, None
        if handler is not None:
            handler.connection_lost(exc)
        if task is not None:
            task.cancel()

    def _leave(self) -> bytes:
        """Give back what the connection has in the server. Return the bytes that it holds."""
        self._phase, self.transport, self._body = _ENDING, None, None
        self._door.connections.discard(self)
        held, self.held, self.waiting_head = bytes(self.held), bytearray(), b""
        self._door.held_heads.note(self, 0)
        deadline, self._write_deadline = self._write_deadline, None
        if deadline is not None:
            deadline.stop()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._has_place:
            self._door.table.release(self.address)
            self._has_place = False
        return held

    def drop(self) -> None:
        """Close the connection at once, to make room for another."""
        transport = self.transport
        self._leave()
        if transport is not None:
            transport.abort()

    def own(self) -> asyncio.Transport:
        """Return the transport for its next owner. Raises ConnectionResetError if the client has left."""
        if self.transport is None or self.transport.is_closing():
            raise ConnectionResetError("the client left")
        return self.transport

    def hand_over(self, successor: asyncio.Protocol) -> ConnectionPlace:
        """Give the transport, which `own` has returned just now, to another protocol, such as a stream.

        Return its place in the table, which the caller gives back at the end. aiohttp's handler ends like at a close.
        """
        transport = self.transport
        assert transport is not None  # if it is closing, after a failed write, the successor is told of the end
        place, self._has_place = ConnectionPlace(self._door.table, self.address), False
        transport.set_protocol(successor)
        if self._write_deadline is None:
            successor.resume_writing()
        else:
            successor.pause_writing()  # the transport tells the successor when to resume
        if not transport.is_reading():
            transport.resume_reading()  # else the server would not notice the end of the connection
        handler, self._handler, self.task = self._handler, None, None
        early = self._leave()
        if handler is not None:
            handler.connection_lost(None)
        if early:
            successor.data_received(early)  # a client that asked for a WebSocket may not wait for the answer
        return place

    def data_received(self, data: bytes) -> None:
        """Hold the bytes, and take the requests and parts of bodies that can be handled now."""
        if self._phase == _ENDING:
            return
        self.last_heard_at = self._loop.time()
        self.held += data
        self._go_on(has_heard=True)

    def _go_on(self, *, has_heard: bool = False) -> None:
        """Take what can be handled of the held bytes. ``has_heard``: the client has sent some of them just now."""
        while self.held and self._phase != _ENDING:
            if self._body is not None:
                if self._is_body_paused or not self._take_body(self._body):
                    break
            elif self._phase == _BUSY or not self._take_head():
                break
        if self._phase == _ENDING:
            return
        size = len(self.held) + len(self.waiting_head)
        if size != self._noted_bytes:
            self._noted_bytes = size
            self._door.held_heads.note(self, size)
        if size or self._is_paused or self._is_body_paused:
            self._update_reading()
        if (self.held or has_heard) and self._phase == _IDLE and not self._is_reading_head:
            self._is_reading_head = True  # a head has begun, and further bytes do not extend its deadline
            self._set_deadline(self._timeouts.header_seconds)

    def _take_head(self) -> bool:
        """Take a whole head from the held bytes and begin its request. Return whether there was one."""
        held = self.held
        if held[0] in BLANK_LINES:
            held[:] = held.lstrip(BLANK_LINES)  # parsing each pair of them would take as long as parsing a request
            return bool(held)
        unseen = max(0, self._searched - len(HEAD_END) + 1)
        end = held.find(HEAD_END, unseen) + len(HEAD_END)
        is_whole = end >= len(HEAD_END)
        self._searched = 0 if is_whole else len(held)
        if (end if is_whole else len(held)) > MAX_HEAD_BYTES:
            self.refuse(HEAD_TOO_LARGE)
        elif held.startswith(HTTP2_BEGIN):
            self.refuse(NO_HTTP)
        elif is_whole:
            head = bytes(held[:end])
            del held[:end]
            self._phase, self._is_answered, self._is_reading_head, self._deadline = _BUSY, False, False, math.inf
            self._door.begin(self, head)
            return True
        elif held[0] not in _FIRST_BYTES or held.find(b"\n\n", unseen) >= 0:
            self.refuse(NO_HTTP)
        return False

    def pass_on(self, head: bytes) -> None:
        """Let aiohttp handle a request."""
        self.waiting_head = b""
        if self._handler is None:
            self._handler = self._door.make_handler(self)
        self._handler.data_received(head)

    def expect_body(self, body: Body | None) -> None:
        """Give ``body``, which the handler is about to read, the bytes that have come so far. None for no body."""
        self._body = body
        self._go_on()

    def _take_body(self, body: Body) -> bool:
        """Pass on a part of the body. Return whether anything can follow at once."""
        assert self._handler is not None
        before = len(self.held)
        try:
            part = body.take(self.held)
        except BadChunks:
            self._body = None
            self._phase = _ENDING  # bytes behind those that are not HTTP mean nothing
            self._handler.break_body()
            return False
        if body.is_complete:
            self._body = None
        if part:
            self._handler.data_received(part)
        if self._body is None:
            self._end_if_over()
            return True
        if self.held and len(self.held) < before:
            self._loop.call_soon(self._go_on)  # others have their turn before so many more chunks
        return False

    def set_body_paused(self, *, is_paused: bool) -> None:
        """Pause or continue giving the body to its handler. Paused, because the handler has not read what it got."""
        self._is_body_paused = is_paused
        if not is_paused and self.held:
            self._go_on()
        self._update_reading()

    def _update_reading(self) -> None:
        """Read nothing from a client whose body is not read, or that sends many requests before it has its answers."""
        must_pause = self._is_body_paused or len(self.held) > MAX_HEAD_BYTES
        transport = self.transport
        if must_pause == self._is_paused or transport is None or transport.is_closing():
            return
        self._is_paused = must_pause
        if must_pause:
            transport.pause_reading()
        else:
            transport.resume_reading()

    def end_request(self, *, goes_on: bool) -> None:
        """Note that the answer was sent, and read the next request. ``goes_on`` is False if there is to be no other."""
        self._is_answered, self.waiting_head = True, b""
        if goes_on:
            self._end_if_over()
            self._go_on()

    def _end_if_over(self) -> None:
        """Wait for the next head if the request was answered, the kernel has the answer, and the body has come."""
        if self._is_answered and self._body is None and self._phase == _BUSY and self._write_deadline is None:
            self._phase, self.task = _IDLE, None
            self._set_deadline(KEEPALIVE_TIMEOUT_SECONDS)

    def answer(self, data: bytes, *, goes_on: bool) -> None:
        """Send the whole answer of a request that aiohttp does not know. Then read the next one, or end."""
        if self.transport is not None and self._phase == _BUSY:  # else it was refused meanwhile
            self.transport.write(data)
            self.end_request(goes_on=True) if goes_on else self.end()

    def refuse(self, refusal: Refusal) -> None:
        """Answer without a request handler, and close the connection. Do not answer while another answer is sent."""
        if self._phase == _BUSY and not self._is_answered and (self.task is not None or not self.waiting_head):
            self.drop()
        elif self.transport is not None:
            self.transport.write(refusal.encode())
            self.end(is_early=True)

    def end(self, *, is_early: bool = False) -> None:
        """Close the connection when all that was written is sent. ``is_early``: the client may still be sending."""
        transport = self.transport
        if transport is None or transport.is_closing():
            return
        is_early = is_early or bool(self.held) or self._body is not None
        self._phase, self._body, self.held, self.waiting_head = _ENDING, None, bytearray(), b""
        self._door.held_heads.note(self, 0)
        if not is_early or not transport.can_write_eof():
            transport.close()
            return
        self._is_body_paused = False
        self._update_reading()
        transport.write_eof()
        self._set_deadline(CLOSE_SECONDS)

    def _set_deadline(self, seconds: float) -> None:
        """Close the connection in ``seconds`` unless a request begins. One timer serves many deadlines."""
        self._deadline = self._loop.time() + seconds
        if self._timer is None or self._timer.when() > self._deadline:
            if self._timer is not None:
                self._timer.cancel()
            self._timer = self._loop.call_at(self._deadline, self._check_deadline)

    def _check_deadline(self) -> None:
        self._timer = None
        if self._loop.time() >= self._deadline:
            if self.transport is not None:
                self.transport.close()
        elif self._deadline != math.inf:
            self._timer = self._loop.call_at(self._deadline, self._check_deadline)

    def pause_writing(self) -> None:
        """Start the write deadline. The transport calls this when the kernel's send buffer takes no more bytes."""
        if self._handler is not None:
            self._handler.pause_writing()
        if self.transport is not None:
            self._write_deadline = WriteDeadline(self.transport, self._loop, self._timeouts.write_seconds)

    def resume_writing(self) -> None:
        """Stop the write deadline. The transport calls this when the kernel has taken all pending bytes."""
        deadline, self._write_deadline = self._write_deadline, None
        if deadline is not None:
            deadline.stop()
        if self._handler is not None:
            self._handler.resume_writing()
        if self._is_answered:
            self.end_request(goes_on=True)
