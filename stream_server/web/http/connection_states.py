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
    ABORT         -                                             HEAD IDLE QUEUED BODY RUNNING REST SENDING CLOSING

In CLOSING, what was written leaves, and further bytes of the client are dropped. After DETACH a stream has the socket.
BODY_BROKEN, and each other event that a state may receive, does not change the state.

A :class:`State` is the whole truth about itself: what it may receive, its deadline, what the bytes of the client are,
whether a request counts as held bytes, and whether the connection may be closed to make room. An event for which a
state has no move raises :class:`ImpossibleEvent`. Nothing that a client sends, and nothing that a handler does, in any
order, reaches such a pair.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, IntEnum


class Event(IntEnum):
    """The events of a connection: its client, a handler or the server causes them.

    They have numbers because the hash of a number is fast. Python computes that of an `Enum` in 0.1 µs.
    """

    BYTES = 0
    """The first bytes of a head lie there, and not the whole. Other bytes are held, or dropped, and change no state."""
    END_OF_INPUT = 1
    """The client has shut down its sending side, and all that it sent before has been taken."""
    WHOLE_HEAD = 2
    """All bytes of a request head have come."""
    QUEUE = 3
    """A stream that a handler has begun must wait for its turn to ask Redis."""
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
    ABORT = 16
    """The socket is lost, or the server gives the connection up at once."""


class Received(Enum):
    """The meaning of the bytes that a client sends in a state."""

    OF_HEAD = "bytes of a request head"
    OF_BODY = "bytes of the body of the present request"
    HELD = "bytes of later requests: they are held until the present one is answered"
    DROPPED = "bytes without a meaning"


class Eviction(Enum):
    """When a connection may be closed to make room for others.

    A connection whose client has left bytes of an answer unread is closed only after some seconds, in each state.
    """

    ALWAYS = "at any time: nobody waits for it"
    UNREAD = "only if its client has left bytes of an answer unread for some seconds"
    SILENT = "as UNREAD, and also if its client has sent nothing of a body for some seconds"
    NEVER = "at no time"


# A look-up in an enumeration takes 0.1 µs on Python 3.11, so those of each request have names of their own.
OF_HEAD, OF_BODY, HELD, DROPPED = Received
WHOLE_HEAD, START, BODY_BEGINS, BODY_WHOLE = Event.WHOLE_HEAD, Event.START, Event.BODY_BEGINS, Event.BODY_WHOLE
ANSWERED, SENT = Event.ANSWERED, Event.SENT


@dataclass(eq=False, slots=True)
class State:
    """A state of a connection, and its rules. A connection is in one state at a time.

    Attributes:
        name: The name of the constant that is this state.
        received: What the bytes are that the client sends.
        deadline: The field of `ConnectionTimeouts` after which DEADLINE comes. Empty if another clock runs: in SENDING,
            that of the unsent bytes.
        eviction: When the connection may be closed to make room.
        has_request: Whether a request waits or is handled. Its head and body count as held bytes then, and the deadline
            waits while the client takes an answer, or while the handler takes no body.
        moves: The next state after each event that may come.
    """

    name: str
    received: Received
    deadline: str
    eviction: Eviction
    has_request: bool = False
    moves: Mapping[Event, "State"] = field(default_factory=dict, repr=False)


HEAD = State("HEAD", OF_HEAD, "header_seconds", Eviction.ALWAYS)
"""It waits for its first request head, or for the rest of one."""

IDLE = State("IDLE", OF_HEAD, "idle_seconds", Eviction.ALWAYS)
"""It has answered all requests, and no byte of another has come."""

QUEUED = State("QUEUED", HELD, "request_seconds", Eviction.NEVER, has_request=True)
"""A head is whole, and no handler has it yet. A stream waits here for its turn."""

BODY = State("BODY", OF_BODY, "idle_seconds", Eviction.SILENT, has_request=True)
"""A handler has the request, and its body has not come wholly."""

RUNNING = State("RUNNING", HELD, "request_seconds", Eviction.UNREAD, has_request=True)
"""A handler has the whole request, and has not answered."""

REST = State("REST", OF_BODY, "linger_seconds", Eviction.ALWAYS)
"""The answer is over before the body was. The rest of the body is read and dropped."""

SENDING = State("SENDING", HELD, "", Eviction.UNREAD)
"""The answer is over, and the kernel has not taken all of it."""

CLOSING = State("CLOSING", DROPPED, "linger_seconds", Eviction.ALWAYS)
"""Nothing more is read as a request. What was written leaves, and further bytes are dropped for a while."""

CLOSED = State("CLOSED", DROPPED, "", Eviction.NEVER)
"""The socket is lost, aborted, or with a stream."""

STATES = (HEAD, IDLE, QUEUED, BODY, RUNNING, REST, SENDING, CLOSING, CLOSED)

_ENDS = {
    Event.DEADLINE: CLOSED, Event.EVICTION: CLOSED, Event.ABORT: CLOSED, Event.CLOSE: CLOSING,
}  # fmt: skip
"""What may end a connection in most states."""

HEAD.moves = IDLE.moves = _ENDS | {
    Event.BYTES: HEAD,
    Event.DEADLINE: CLOSING,
    Event.END_OF_INPUT: CLOSING,
    Event.WHOLE_HEAD: QUEUED,
    Event.REFUSAL: CLOSING,
    Event.DRAIN: CLOSING,
}
QUEUED.moves = {
    Event.DEADLINE: CLOSED,
    Event.ABORT: CLOSED,
    Event.CLOSE: CLOSING,
    Event.END_OF_INPUT: CLOSING,
    Event.START: RUNNING,
    Event.REFUSAL: CLOSING,
    Event.DRAIN: QUEUED,
}
BODY.moves = _ENDS | {
    Event.END_OF_INPUT: CLOSING,
    Event.BODY_WHOLE: RUNNING,
    Event.BODY_BROKEN: BODY,
    Event.ANSWERED: REST,
    Event.REFUSAL: CLOSED,
    Event.DRAIN: BODY,
    Event.DETACH: CLOSED,
}
RUNNING.moves = _ENDS | {
    Event.END_OF_INPUT: RUNNING,
    Event.QUEUE: QUEUED,
    Event.BODY_BEGINS: BODY,
    Event.ANSWERED: SENDING,
    Event.REFUSAL: CLOSED,
    Event.DRAIN: RUNNING,
    Event.DETACH: CLOSED,
}
REST.moves = _ENDS | {
    Event.END_OF_INPUT: CLOSING,
    Event.BODY_WHOLE: SENDING,
    Event.BODY_BROKEN: REST,
    Event.REFUSAL: CLOSED,
    Event.DRAIN: CLOSING,
    Event.DEADLINE: CLOSING,
}
SENDING.moves = {
    Event.EVICTION: CLOSED,
    Event.ABORT: CLOSED,
    Event.CLOSE: CLOSING,
    Event.END_OF_INPUT: SENDING,
    Event.SENT: IDLE,
    Event.REFUSAL: CLOSED,
    Event.DRAIN: CLOSING,
}
# A handler may learn late that its connection has ended, so it may still find a body.
CLOSING.moves = _ENDS | dict.fromkeys((Event.BODY_BEGINS, Event.DRAIN, Event.DEADLINE, Event.END_OF_INPUT), CLOSING)
CLOSED.moves = dict.fromkeys((Event.BODY_BEGINS, Event.END_OF_INPUT), CLOSED)


class ImpossibleEvent(Exception):
    """An event came in a state that has no move for it: the server has an error."""
