"""A connection and its budgets: client, kernel, handlers and server do what they may do, in every order.

`test_request_cycle` drives the states alone. Here an event may come in the middle of another: a write finds the kernel
full, the budget has no room for its bytes, and the connection is closed while it answers.
"""

import asyncio
import random
from collections import Counter
from typing import Any, ClassVar

from stream_server.monitoring.incidents import LimitHits
from stream_server.web.http.chunks import ChunkedBody, SizedBody
from stream_server.web.http.connection import Connection, HttpHandler
from stream_server.web.http.connection_states import (
    BODY,
    CLOSED,
    QUEUED,
    RUNNING,
    STATES,
    Event,
    Eviction,
    State,
)
from stream_server.web.http.connection_timeouts import ConnectionTimeouts
from stream_server.web.http.request_cycle import RequestCycle
from stream_server.web.limits.byte_budget import ByteBudget, ByteLimits
from stream_server.web.limits.connections import NO_ROOM_FOR_REQUEST, ConnectionTable
from tests.stream_server import tokens

HISTORIES = 3000
"""Enough that each move of each state is reached several times."""

STREAM, PLAIN = b"GET /stream HTTP/1.1\r\nHost: a\r\n\r\n", b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
SIZED = b"POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\n"
CHUNKED = b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
SENT = (STREAM, PLAIN, SIZED + b"123456789", CHUNKED + b"3\r\nabc\r\n0\r\n\r\n", CHUNKED + b"no chunk\r\n", b"\r\n")
LAST = (b"", b"", b"rubbish", PLAIN[:20], SIZED + b"123")


class Counting(RequestCycle):
    """Counts how often an event came in a state of any connection."""

    pairs: ClassVar[Counter[tuple[State, Event]]] = Counter()

    def move(self, event: Event) -> None:
        Counting.pairs[self.state, event] += 1
        super().move(event)


class Kernel(asyncio.Transport):
    """A transport whose client reads nothing while it is ``full``. It calls its protocol as asyncio's does."""

    def __init__(self, protocol: asyncio.Protocol) -> None:
        super().__init__({"peername": ("198.51.100.1", 1)})
        self.protocol = protocol
        self.full = self.is_shut = self.closing = self.lost = False
        self.unsent = 0

    def write(self, data: Any) -> None:
        assert not self.is_shut, "asyncio raises an error"
        if self.full and not self.closing:
            before, self.unsent = self.unsent, self.unsent + len(data)
            if not before and data:
                self.protocol.pause_writing()

    def take(self) -> None:
        """Let the client read all that was written."""
        self.full = False
        if self.unsent:
            self.unsent = 0
            self.protocol.resume_writing()
        if self.closing:
            self.lose()

    def lose(self) -> None:
        """Tell the protocol once that the socket is gone."""
        if not self.lost:
            self.lost = self.closing = True
            self.unsent = 0
            self.protocol.connection_lost(None)

    def close(self) -> None:
        self.closing = True

    abort = close

    def is_closing(self) -> bool:
        return self.closing

    def get_write_buffer_size(self) -> int:
        return self.unsent

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        assert high == 0

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        self.is_shut = True

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        assert isinstance(protocol, asyncio.Protocol)
        self.protocol = protocol

    def is_reading(self) -> bool:
        return True

    def pause_reading(self) -> None:
        """Do nothing."""

    def resume_reading(self) -> None:
        """Do nothing."""


class Expecting(HttpHandler):
    """A handler that finds the body of each request behind its head."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection

    def data_received(self, data: bytes) -> None:
        if data in (SIZED, CHUNKED):
            self.connection.cycle.expect_body(SizedBody(9) if data == SIZED else ChunkedBody())


class Door:
    """The part of the front door that a connection uses, with little room."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.table = ConnectionTable(tokens.config(limits="on"), lambda _: False)
        self.connections: dict[Connection, None] = {}
        limits, hits = ByteLimits(600, 600, free=0), LimitHits()
        self.held_bytes = ByteBudget[Connection](
            "held", limits, hits, lambda address: address, lambda each: each.cycle.kept_bytes,
            lambda each: each.end(Event.REFUSAL, NO_ROOM_FOR_REQUEST.encode()),
        )  # fmt: skip
        self.unsent_bytes = ByteBudget[Connection](
            "unsent", limits, hits, lambda address: address, lambda each: each.unsent_bytes,
            lambda each: each.end(Event.EVICTION),
        )  # fmt: skip

    def handle(self, connection: Connection, head: bytes) -> None:
        if head == STREAM:
            connection.cycle.note_stream()
        if head != STREAM or self.chance.random() < 0.5:
            start(connection, head)


def start(connection: Connection, head: bytes) -> None:
    connection.cycle.move(Event.START)
    if connection.handler is None:
        connection.handler = Expecting(connection)
    connection.handler.data_received(head)


class History:
    """What happens to one connection, in an order by chance."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.door = Door(chance)
        loop = asyncio.get_running_loop()
        self.connection = Connection(self.door, loop, ConnectionTimeouts(), None)
        self.connection.cycle = Counting()
        self.kernel = Kernel(self.connection)
        self.data = b"".join(chance.choices(SENT, k=chance.randrange(5))) + chance.choice(LAST)
        self.has_ended = False
        self.connection.connection_made(self.kernel)

    def run(self) -> None:
        doings = (
            self.send, self.send, self.send, self.answer, self.answer, self.answer, self.act_as_kernel, self.start,
            self.end, self.end_input, self.pause, self.detach,
        )  # fmt: skip
        for _ in range(40):
            self.chance.choice(doings)()
            self.check()
        self.kernel.lose()
        self.check()
        assert (self.connection.cycle.state, self.connection.task) == (CLOSED, None)

    def check(self) -> None:
        door, connection = self.door, self.connection
        is_over = connection.cycle.state is CLOSED
        assert (connection.transport is None) == (connection not in door.connections) == is_over
        if is_over:
            assert (len(door.table), door.held_bytes.total, door.unsent_bytes.total) == (0, 0, 0)
            assert (connection._timer, connection._write_deadline) == (None, None)
        else:
            assert len(door.table) == 1

    @property
    def is_read(self) -> bool:
        """Whether the connection may hear of its client. With TLS it may do so also after it was closed."""
        return not self.has_ended and not self.kernel.lost and self.kernel.protocol is self.connection

    def send(self) -> None:
        size = self.chance.choice((1, 20, 100))
        piece, self.data = self.data[:size], self.data[size:]
        if piece and self.is_read:
            self.connection.data_received(piece)

    def end_input(self) -> None:
        if self.is_read and self.chance.random() < 0.3:
            self.has_ended = True
            self.connection.eof_received()

    def answer(self) -> None:
        """Let a handler answer, by itself or by aiohttp. It may not know that the connection has ended."""
        connection, size = self.connection, self.chance.choice((1, 100, 400, 700))
        if connection.cycle.state in {QUEUED, *(each for each in STATES if not each.has_request)}:
            if connection.cycle.state is CLOSED:
                connection.answer(b"x", keep_alive=True)
            return
        keep_alive = self.chance.random() < 0.8
        if connection.cycle.state is RUNNING and self.chance.random() < 0.5:
            connection.answer(b"x" * size, keep_alive=keep_alive)
        else:
            self.kernel.write(b"x" * size)
            connection.answer(b"", keep_alive=keep_alive)

    def act_as_kernel(self) -> None:
        if self.chance.random() < 0.5:
            self.kernel.full = True
        elif self.kernel.protocol is self.connection:
            self.kernel.take()

    def start(self) -> None:
        """Let a stream begin whose turn has come. It may have to wait again."""
        connection = self.connection
        if connection.cycle.state is QUEUED:
            head = connection.cycle.request_head
            start(connection, head)
            if self.chance.random() < 0.5:
                connection.cycle.queue(head)
        elif connection.cycle.state.name in {"CLOSING", "CLOSED"} and connection.handler is not None:
            connection.handler.data_received(SIZED)  # a handler that learns late of the end

    def pause(self) -> None:
        self.connection.cycle.is_body_paused = self.chance.random() < 0.3
        self.connection.go_on()

    def end(self) -> None:
        """Let the server end the connection, when it would."""
        state, event = self.connection.cycle.state, self.chance.choice((None, None, None, None, *Event))
        may_end = {
            Event.CLOSE: True, Event.DRAIN: True, Event.ABORT: True, Event.DEADLINE: bool(state.deadline),
            Event.EVICTION: state.eviction is not Eviction.NEVER, Event.REFUSAL: self.connection.cycle.kept_bytes > 0,
        }  # fmt: skip
        if event is not None and may_end.get(event, False):
            self.connection.end(event)

    def detach(self) -> None:
        connection = self.connection
        if connection.cycle.state in {BODY, RUNNING} and self.chance.random() < 0.2:
            try:
                connection.require_client()
            except ConnectionResetError:
                return
            slot = connection.detach(asyncio.Protocol())
            assert len(self.door.table) == 1, "the stream has the slot"
            slot()


async def test_no_order_of_events_reaches_an_impossible_pair_or_leaves_anything() -> None:
    Counting.pairs.clear()
    for seed in range(HISTORIES):
        History(random.Random(seed)).run()
        await asyncio.sleep(0)
    table = {(state, event) for state in STATES for event in state.moves}
    assert set(Counting.pairs) == table, table ^ set(Counting.pairs)
