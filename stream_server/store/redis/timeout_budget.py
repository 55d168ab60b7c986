"""The timeout budget of one request: how long it may wait for Redis in total, and whether it has written.

A request calls Redis several times (authentication, the write, the first timelines), each with its own timeout. Only
time spent waiting for Redis uses up the budget. A slow request body or password hashing does not.

The trace of a request has its calls of Redis, and the position of its entry.
"""

import math
import time
from contextvars import ContextVar
from typing import NamedTuple

import msgspec

from stream_server.errors import Unavailable
from stream_server.events.position import Position
from stream_server.store.redis.refusals import outcome_unknown_error

LARGEST_WRITE_ENTRIES = 5
"""Most entries that one write appends: a post, a reply, a quote, and mentions with the quoted status and without it."""

TEXT_BYTES, BYTES_OF_CHAR = 24_576, 32
"""Most bytes of a text on the log: of its author, `meta` and four links of media, and of each code point of a message.

A message of short links takes most for a code point, because each link stands in the entities too.
"""

SMALL_WRITES = 8
"""Writes of a batch that together append at most as much as the largest single write: each is about two users."""


def bound_appended(message_max_chars: int, write_count: int) -> int:
    """Return the bytes of the log to charge for writes whose replies nobody reads, because the client has left.

    They are at least as many as the largest writes append.

    An entry has at most two texts: a status, and the one that it quotes or answers.
    """
    largest = LARGEST_WRITE_ENTRIES * 2 * (TEXT_BYTES + BYTES_OF_CHAR * message_max_chars)
    return math.ceil(write_count / SMALL_WRITES) * largest


LOST_TIMES = 4
"""A write whose reply was lost is charged for so many times the bytes that Redis was sent.

That is less than :func:`bound_appended`: no client can choose when Redis is slow, and an honest one that posts
meanwhile must not be refused for the rest of an hour.
"""


class RedisCall(NamedTuple):
    """One round trip to Redis, with its times in ns since 1970."""

    started_ns: int
    ended_ns: int
    command_count: int


class RequestTrace:
    """Records of one request. Only requests that are traced have one.

    Attributes:
        calls: The round trips to Redis, in order.
        written: Position of the newest log entry that the request wrote, None if it wrote none.
    """

    __slots__ = ("calls", "written")

    def __init__(self) -> None:
        self.calls: list[RedisCall] = []
        self.written: Position | None = None


class TimeoutBudget(msgspec.Struct, eq=False):
    """Seconds for which a request may still wait for Redis, and whether Redis has confirmed a write of the request.

    ``appended_bytes`` is the number of bytes that the writes of the request have appended to the log, as Redis counted.
    ``is_unread`` says whether Redis was sent commands of the request whose replies nobody read. The budget holds for
    all code of the context in which it is the value of :data:`CURRENT`. ``trace`` records the calls of a request that
    is traced; it is None for the others.
    """

    remaining_seconds: float
    trace: RequestTrace | None = None
    has_written: bool = False
    appended_bytes: int = 0
    is_unread: bool = False

    def charge(self, seconds: float, command_count: int) -> None:
        """Count a call of Redis that took ``seconds`` and has just ended."""
        self.remaining_seconds -= seconds
        if self.trace is not None:
            ended_ns = time.time_ns()
            self.trace.calls.append(RedisCall(ended_ns - int(seconds * 1e9), ended_ns, command_count))

    def judge(self, error: Exception) -> Exception:
        """Return the error of a request that ``error`` ended.

        It is `OutcomeUnknown` for an `Unavailable` after a successful write, because that promises that nothing was
        written.
        """
        if isinstance(error, Unavailable) and self.has_written:
            unknown = outcome_unknown_error()
            unknown.__cause__ = error
            return unknown
        return error


CURRENT: ContextVar[TimeoutBudget | None] = ContextVar("timeout budget", default=None)
"""The budget of the current request, None outside of a request."""


def charge_lost(sent_bytes: int) -> None:
    """Charge the present request for writes of so many bytes, of which nobody knows what they have appended."""
    budget = CURRENT.get()
    if budget is not None:
        budget.appended_bytes += LOST_TIMES * sent_bytes
