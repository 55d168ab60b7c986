"""The states of one HTTP connection, and what each may receive.

A connection begins in HEAD, and carries one request at a time (RFC 9112 §9.3). The names on the arrows are events::

    HEAD --- WHOLE_HEAD --> QUEUED --- START ---> RUNNING --- BODY_BEGINS --> BODY
     ^                       ^  ^                  | | ^                      |  |
     | BYTES                 |  +----- QUEUE ------+ | +----- BODY_WHOLE -----+  |
     |                       |                       | ANSWERED                  | ANSWERED
     |                       |                       v                           v
    IDLE --- WHOLE_HEAD -----+                    SENDING <--- BODY_WHOLE --- REST
     ^                                               |
     +-------------------- SENT ---------------------+

    event         leads to CLOSING from                         leads to CLOSED from
    REFUSAL       HEAD IDLE QUEUED                              BODY RUNNING REST SENDING
    DEADLINE      HEAD IDLE REST                                QUEUED BODY RUNNING
    END_OF_INPUT  HEAD IDLE QUEUED BODY REST                    -
    DRAIN         HEAD IDLE REST SENDING                        -
    CLOSE         HEAD IDLE QUEUED BODY RUNNING REST SENDING    -
    DETACH        -                                             BODY RUNNING
    EVICTION      -                                             HEAD IDLE BODY RUNNING REST SENDING CLOSING
    LEFT          -                                             HEAD IDLE QUEUED BODY RUNNING REST SENDING CLOSING

In CLOSING, what was written leaves, and further bytes of the client are dropped. After DETACH a stream has the socket.
BODY_BROKEN, and each other event that a state may receive, does not change the state.

:data:`ROWS` is the whole truth: what each state may receive, its deadline, whether the request counts as held bytes,
and whether the connection may be closed to make room. A pair of a state and an event that has no cell raises
:class:`ImpossibleEvent`. Nothing that a client sends, and nothing that a handler does, in any order, reaches such a
pair.
"""

from collections.abc import Mapping
from enum import IntEnum
from typing import NamedTuple


class State(IntEnum):
    """The states of a connection. It is in one of them at a time.

    Their order has a meaning: up to IDLE no request has come, and from CLOSING on no other will.
    """

    HEAD = 0
    """It waits for its first request head, or for the rest of one."""
    IDLE = 1
    """It has answered all requests, and no byte of another has come."""
    QUEUED = 2
    """A head is whole, and no handler has it yet. A stream waits here for its turn."""
    BODY = 3
    """A handler has the request, and its body has not come wholly."""
    RUNNING = 4
    """A handler has the whole request, and has not answered."""
    REST = 5
    """The answer is over before the body was. The rest of the body is read and dropped."""
    SENDING = 6
    """The answer is over, and the kernel has not taken all of it."""
    CLOSING = 7
    """Nothing more is read as a request. What was written leaves, and further bytes are dropped for a while."""
    CLOSED = 8
    """The socket is lost, aborted, or with a stream."""


class Event(IntEnum):
    """The events of a connection: its client, a handler or the server causes them."""

    BYTES = 0
    """The first bytes of a head lie there, and not the whole. Other bytes are held, or dropped, and change no state."""
    END_OF_INPUT = 1
    """The client has shut down its sending side, and all that it sent before has been taken."""
    WHOLE_HEAD = 2
    """All bytes of a request head have come."""
    QUEUE = 3
    """A stream has begun, and must wait for its turn to ask Redis."""
    START = 4
    """A handler takes the request."""
    BODY_BEGINS = 5
    """The handler finds that the request has a body."""
    BODY_WHOLE = 6
    """All bytes of the body have come."""
    BODY_BROKEN = 7
    """The framing of the body is invalid: what follows means nothing."""
    ANSWERED = 8
    """The handler has written the whole answer."""
    SENT = 9
    """The kernel has taken all of the answer."""
    REFUSAL = 10
    """The server gives the request up: its head is no HTTP or too long, or too many bytes are held."""
    CLOSE = 11
    """The last answer is over, a handler ends the connection, or the client of a stream has stopped sending."""
    DRAIN = 12
    """The server stops."""
    DEADLINE = 13
    """The time of the present state is over."""
    EVICTION = 14
    """The server needs the room for others."""
    DETACH = 15
    """A stream takes the socket over."""
    LEFT = 16
    """The connection is lost, or the server gives it up at once."""


class Eviction(IntEnum):
    """When a connection may be closed to make room for others.

    A connection whose client has left bytes of an answer unread is closed only after some seconds, in each state.
    """

    ALWAYS = 0
    """At any time: nobody waits for it."""
    UNREAD = 1
    """Only if its client has left bytes of an answer unread for some seconds."""
    SILENT = 2
    """As UNREAD, and also if its client has sent nothing of a body for some seconds."""
    NEVER = 3


class Row(NamedTuple):
    """The rules of one state.

    Attributes:
        moves: The next state after each event that may come.
        deadline: The field of `ConnectionTimeouts` after which DEADLINE comes. Empty if another clock runs: in SENDING,
            that of the unsent bytes.
        holds_request: Whether head and body of the request count as held bytes.
        eviction: When it may be closed to make room.
    """

    moves: Mapping[Event, State]
    deadline: str
    holds_request: bool
    eviction: Eviction


_ENDS = dict.fromkeys((Event.DEADLINE, Event.EVICTION, Event.LEFT), State.CLOSED) | {Event.CLOSE: State.CLOSING}
"""What may end a connection in most states."""

ROWS: tuple[Row, ...] = (
    Row(  # HEAD
        _ENDS
        | {
            Event.BYTES: State.HEAD,
            Event.DEADLINE: State.CLOSING,
            Event.END_OF_INPUT: State.CLOSING,
            Event.WHOLE_HEAD: State.QUEUED,
            Event.REFUSAL: State.CLOSING,
            Event.DRAIN: State.CLOSING,
        },
        "header_seconds", holds_request=False, eviction=Eviction.ALWAYS,
    ),
    Row(  # IDLE
        _ENDS
        | {
            Event.DEADLINE: State.CLOSING,
            Event.BYTES: State.HEAD,
            Event.END_OF_INPUT: State.CLOSING,
            Event.WHOLE_HEAD: State.QUEUED,
            Event.REFUSAL: State.CLOSING,
            Event.DRAIN: State.CLOSING,
        },
        "idle_seconds", holds_request=False, eviction=Eviction.ALWAYS,
    ),
    Row(  # QUEUED
        {
            Event.DEADLINE: State.CLOSED,
            Event.LEFT: State.CLOSED,
            Event.CLOSE: State.CLOSING,
            Event.END_OF_INPUT: State.CLOSING,
            Event.START: State.RUNNING,
            Event.REFUSAL: State.CLOSING,
            Event.DRAIN: State.QUEUED,
        },
        "request_seconds", holds_request=True, eviction=Eviction.NEVER,
    ),
    Row(  # BODY
        _ENDS
        | {
            Event.END_OF_INPUT: State.CLOSING,
            Event.BODY_WHOLE: State.RUNNING,
            Event.BODY_BROKEN: State.BODY,
            Event.ANSWERED: State.REST,
            Event.REFUSAL: State.CLOSED,
            Event.DRAIN: State.BODY,
            Event.DETACH: State.CLOSED,
        },
        "idle_seconds", holds_request=True, eviction=Eviction.SILENT,
    ),
    Row(  # RUNNING
        _ENDS
        | {
            Event.END_OF_INPUT: State.RUNNING,
            Event.QUEUE: State.QUEUED,
            Event.BODY_BEGINS: State.BODY,
            Event.ANSWERED: State.SENDING,
            Event.REFUSAL: State.CLOSED,
            Event.DRAIN: State.RUNNING,
            Event.DETACH: State.CLOSED,
        },
        "request_seconds", holds_request=True, eviction=Eviction.UNREAD,
    ),
    Row(  # REST
        _ENDS
        | {
            Event.END_OF_INPUT: State.CLOSING,
            Event.BODY_WHOLE: State.SENDING,
            Event.BODY_BROKEN: State.REST,
            Event.REFUSAL: State.CLOSED,
            Event.DRAIN: State.CLOSING,
            Event.DEADLINE: State.CLOSING,
        },
        "linger_seconds", holds_request=False, eviction=Eviction.ALWAYS,
    ),
    Row(  # SENDING
        {
            Event.EVICTION: State.CLOSED,
            Event.LEFT: State.CLOSED,
            Event.CLOSE: State.CLOSING,
            Event.END_OF_INPUT: State.SENDING,
            Event.SENT: State.IDLE,
            Event.REFUSAL: State.CLOSED,
            Event.DRAIN: State.CLOSING,
        },
        "", holds_request=False, eviction=Eviction.UNREAD,
    ),
    Row(  # CLOSING
        _ENDS
        | dict.fromkeys(
            (Event.BODY_BEGINS, Event.ANSWERED, Event.DRAIN, Event.DEADLINE, Event.END_OF_INPUT), State.CLOSING
        ),
        "linger_seconds", holds_request=False, eviction=Eviction.ALWAYS,
    ),
    Row(  # CLOSED
        dict.fromkeys(
            (Event.BODY_BEGINS, Event.ANSWERED, Event.CLOSE, Event.END_OF_INPUT, Event.LEFT), State.CLOSED
        ),
        "", holds_request=False, eviction=Eviction.NEVER,
    ),
)  # fmt: skip
"""The row of each state, by its number. A handler may learn late that its connection has ended, so it may still answer
one in CLOSING or CLOSED."""

NEXT = tuple(tuple(row.moves.get(event) for event in Event) for row in ROWS)
"""The moves of all rows by the numbers of state and event, None for a pair without a cell: they are looked up often."""

TAKES_BODY = frozenset({State.BODY, State.REST})
"""The states in which the bytes of the client are those of a body."""

# A look-up in an enumeration takes 0.1 µs on Python 3.11. These are the states, and the events of each request.
HEAD, IDLE, QUEUED, BODY, RUNNING, REST, SENDING, CLOSING, CLOSED = State
WHOLE_HEAD, START, BODY_BEGINS, BODY_WHOLE = Event.WHOLE_HEAD, Event.START, Event.BODY_BEGINS, Event.BODY_WHOLE
ANSWERED, SENT = Event.ANSWERED, Event.SENT


class ImpossibleEvent(Exception):
    """An event came in a state that has no cell for it: the server has an error."""
