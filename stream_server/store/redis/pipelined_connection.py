"""One connection to Redis with automatic pipelining: the commands of one turn of the event loop leave in one write.

Redis answers in the order of the commands, so the oldest call that waits gets the next replies. A call that was given
up keeps its place in the order, and its late replies are dropped. No command is queued for later: a call whose deadline
passes before it is written is never written.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any, TypeVar

import msgspec
from hiredis import ProtocolError
from redis.exceptions import AuthenticationError, BusyLoadingError, InvalidResponse, RedisError, ResponseError
from redis.exceptions import ConnectionError as RedisConnectionError

from stream_server.store.redis.connecting import NOT_YET, RedisTransport
from stream_server.store.redis.refusals import is_demoted_primary

Error = TypeVar("Error", bound=RedisError)

MAX_UNANSWERED_COMMANDS = 512
"""Most commands without a reply on one connection. Further calls wait unsent, so an overloaded Redis is not given work
whose callers have left."""

MAX_WAITING_BYTES = 32 << 20
"""Most bytes of commands that wait to be written to one connection. A call beyond them fails at once."""

LATE_TIMER_SECONDS = 0.05
"""If the timer of the deadlines is later than this, the process stood still. It first reads what came meanwhile."""

READ_FIRST_SECONDS = 0.005
"""Time in seconds for reading these replies: two turns of the event loop."""

NOT_EXECUTED_ERRORS = (BusyLoadingError, AuthenticationError)
"""Error replies that redis-py treats as a broken connection. Redis did not execute the command."""

_USUAL_REPLIES = frozenset((bytes, int, list, type(None)))


class NoReply(Exception):
    """Raised when a command was sent to Redis and no reply came. Redis may have executed the command."""


class NotSent(Exception):
    """Raised when a connection ended before a command was written to it. Another connection may take the command."""


class Call(msgspec.Struct, eq=False):
    """Some commands that one caller sends together, and the future of their replies.

    The future ends with the list of replies, in which an error reply is an exception. Otherwise it raises one of these:
    `TimeoutError` (not written before the deadline), :class:`NotSent`, :class:`NoReply`, `NOT_EXECUTED_ERRORS`.

    Attributes:
        packed: The commands in Redis' protocol.
        command_count: Number of commands.
        deadline: When the call is given up, by `time.monotonic`.
        future: The future of the replies.
        is_write: Whether the commands may change data.
        is_refused: Whether one of the replies is an error.
    """

    packed: bytes
    command_count: int
    deadline: float
    future: "asyncio.Future[list[Any]]"
    is_write: bool = False
    replies: list[Any] = []
    is_refused: bool = False

    def fail(self, error: Exception) -> None:
        """Let the caller of this call get ``error``, if the caller still waits for the replies."""
        if not self.future.done():
            self.future.set_exception(error)


class PipelinedConnection(asyncio.Protocol):
    """An open connection to Redis that many callers share."""

    def __init__(
        self,
        opened: RedisTransport,
        late_reply_seconds: float,
        is_current: Callable[[], bool] | None,
        on_lost: Callable[["PipelinedConnection"], None],
    ) -> None:
        """Take over the transport ``opened``.

        ``late_reply_seconds`` is the time after a call's deadline for which the connection waits for its replies.
        ``is_current`` returns whether new commands may still go to this server; None if they always may. ``on_lost`` is
        called once, when the connection is closed.
        """
        self._loop = asyncio.get_running_loop()
        self._opened = opened  # it would close the transport when it is collected as garbage
        self._transport = opened.transport
        self._late_reply_seconds = late_reply_seconds
        self._is_current = is_current
        self._on_lost = on_lost
        self._waiting = deque[Call]()
        self._waiting_bytes = 0
        self._unanswered = deque[Call]()
        self._unanswered_commands = 0
        self._quiet_since = 0.0
        self._is_flush_scheduled = self._is_blocked = self._is_retired = False
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = 0.0
        self._has_read_first = False
        self._closed = self._loop.create_future()
        self._reader = opened.attach(self)
        # What the socket does not take stays here, where it can be removed. With a limit of 0, TLS would never write.
        self._transport.set_write_buffer_limits(high=1, low=0)

    @property
    def load(self) -> int:
        """Number of calls that wait for this connection or for replies."""
        return len(self._unanswered) + len(self._waiting)

    def is_usable(self, now: float, silent_seconds: float) -> bool:
        """Whether a new call may use the connection. ``now`` is the time by `time.monotonic`.

        A connection from which nothing has come for ``silent_seconds``, although replies are outstanding, is not
        usable: the server is frozen, or the network has lost the connection without telling.
        """
        if self._is_retired or (self._is_current is not None and not self._is_current()):
            return False
        return not self._unanswered or now - self._quiet_since < silent_seconds

    def submit(self, call: Call) -> None:
        """Send the commands of a call at the end of this iteration of the event loop, with those of other calls."""
        if self._is_retired or self._waiting_bytes + len(call.packed) > MAX_WAITING_BYTES:
            call.fail(NotSent("the connection is closed" if self._is_retired else "too many commands wait"))
            return
        self._waiting.append(call)
        self._waiting_bytes += len(call.packed)
        if self._timer is None or call.deadline < self._timer_at:
            self._wake_at(call.deadline)
        if not self._is_flush_scheduled:
            self._is_flush_scheduled = True
            self._loop.call_soon(self._flush)

    def retire(self) -> None:
        """Take no new calls, and close the connection as soon as the outstanding replies have come or are given up."""
        if not self._is_retired:
            self._is_retired = True
            self._fail_waiting(NotSent("the connection is retired"))
        if not self._unanswered:
            self._transport.abort()

    async def close(self) -> None:
        """Close the connection. Calls that wait for replies get :class:`NoReply`."""
        self._is_retired = True
        self._transport.abort()
        await self._closed

    def data_received(self, data: bytes) -> None:
        """Parse the bytes that Redis sent, and give each call its replies, in the order of the calls."""
        self._quiet_since = time.monotonic()
        arrived, unanswered = iter(self._reader.gets, NOT_YET), self._unanswered
        self._reader.feed(data)
        try:
            for first in arrived:
                call = unanswered[0]
                found = [first, *islice(arrived, call.command_count - len(call.replies) - 1)]
                call.replies += found
                if not _USUAL_REPLIES.issuperset(map(type, found)):
                    for error in found:
                        self._note_refusal(call, error)
                if len(call.replies) == call.command_count:
                    self._finish(call)
        except (ProtocolError, InvalidResponse, IndexError):  # no Redis, or a reply that no command asked for
            self._is_retired = True
            self._transport.abort()
        if self._waiting:
            self._flush()

    def pause_writing(self) -> None:
        """Keep further commands here, because the socket takes no more bytes."""
        self._is_blocked = True

    def resume_writing(self) -> None:
        """Write the commands that have waited for the socket."""
        self._is_blocked = False
        self._flush()

    def connection_lost(self, exc: Exception | None) -> None:
        """Fail all calls: those that were written have no reply, the others were not sent."""
        self._is_retired = True
        if self._timer is not None:
            self._timer.cancel()
        for call in self._unanswered:
            lost = NoReply("the connection was lost")
            lost.__cause__ = exc
            call.fail(lost)
        self._unanswered.clear()
        self._fail_waiting(NotSent("the connection was lost"))
        self._closed.set_result(None)
        self._on_lost(self)

    def _flush(self) -> None:
        """Write the calls that wait, up to `MAX_UNANSWERED_COMMANDS` commands without a reply."""
        self._is_flush_scheduled = False
        if self._is_blocked or not self._waiting:
            return
        is_outdated = self._is_current is not None and not self._is_current()
        if self._is_retired or self._transport.is_closing() or is_outdated:
            self.retire()
            return
        now = time.monotonic()
        if not self._unanswered:
            self._quiet_since = now
        packed = []
        while self._waiting and self._unanswered_commands < MAX_UNANSWERED_COMMANDS:
            call = self._waiting.popleft()
            self._waiting_bytes -= len(call.packed)
            if call.future.done():
                continue
            if call.deadline <= now:
                call.fail(TimeoutError())
                continue
            packed.append(call.packed)
            call.packed = b""
            self._unanswered.append(call)
            self._unanswered_commands += call.command_count
        if packed:
            self._transport.write(packed[0] if len(packed) == 1 else b"".join(packed))

    def _finish(self, call: Call) -> None:
        """Give the oldest call its replies, unless it was given up."""
        self._unanswered.popleft()
        self._unanswered_commands -= call.command_count
        if not call.future.done():
            error = _find_failure(call.replies) if call.is_refused else None
            is_doubted = call.is_write and error is None and self._is_current is not None and not self._is_current()
            # A primary that stood still or was cut off still makes waiting writes before it learns of the new primary,
            # and is about to lose them. If it refused all commands, nothing is lost.
            if is_doubted and not all(isinstance(reply, RedisError) for reply in call.replies):
                error = NoReply("Redis is a replica now")
            if error is None:
                call.future.set_result(call.replies)
            else:
                call.future.set_exception(error)
        if self._is_retired and not self._unanswered:
            self._transport.abort()

    def _note_refusal(self, call: Call, error: object) -> None:
        """Note that a reply is an error.

        Retire the connection if a new one may avoid it: this server is not ready, or is no primary now.
        """
        call.is_refused = call.is_refused or isinstance(error, RedisError)
        if isinstance(error, RedisConnectionError) or (isinstance(error, ResponseError) and is_demoted_primary(error)):
            self._is_retired = True
            self._fail_waiting(NotSent("the server does not take commands"))

    def _fail_waiting(self, error: Exception) -> None:
        for call in self._waiting:
            call.fail(error)
        self._waiting.clear()
        self._waiting_bytes = 0

    def _wake_at(self, when: float) -> None:
        """Let :meth:`_on_timer` run at ``when`` or earlier. All calls share one timer, so most calls set none."""
        if self._timer is not None:
            if self._timer_at <= when:
                return
            self._timer.cancel()
        self._timer_at = when
        self._timer = self._loop.call_later(max(0.0, when - time.monotonic()), self._on_timer)

    def _on_timer(self) -> None:
        """Give up the calls whose deadline has passed, and the connection if even late replies do not come."""
        now, was_due_at, self._timer = time.monotonic(), self._timer_at, None
        self._has_read_first = now - was_due_at > LATE_TIMER_SECONDS and not self._has_read_first
        if self._has_read_first:  # once, so that a process that is always late gives up its calls too
            self._wake_at(now + READ_FIRST_SECONDS)
            return
        for call in self._unanswered:
            if call.deadline <= now:
                late = NoReply()
                late.__cause__ = TimeoutError()
                call.fail(late)
        if self._unanswered and self._unanswered[0].deadline + self._late_reply_seconds <= now:
            self._is_retired = True
            self._transport.abort()
            return
        for call in self._waiting:
            if call.deadline <= now:
                call.fail(TimeoutError())
        self._waiting = deque(call for call in self._waiting if not call.future.done())
        self._waiting_bytes = sum(len(call.packed) for call in self._waiting)
        ends = [call.deadline for call in (*self._unanswered, *self._waiting) if not call.future.done()]
        if self._unanswered:
            ends.append(self._unanswered[0].deadline + self._late_reply_seconds)
        if ends:
            self._wake_at(min(ends))


def find_instance(replies: Sequence[Any], kind: type[Error]) -> Error | None:
    """Return the first reply that is an error of this kind, None if there is none, as in nearly all calls."""
    if _USUAL_REPLIES.issuperset(map(type, replies)):
        return None
    return next((reply for reply in replies if isinstance(reply, kind)), None)


def _find_failure(replies: list[Any]) -> Exception | None:
    """Return the error with which a call fails as a whole, because Redis refused to execute one of its commands.

    If Redis executed an earlier command of the call, the outcome of the rest is unknown: the error is `NoReply`.
    """
    for index, reply in enumerate(replies):
        if isinstance(reply, RedisConnectionError):
            if index == 0 and isinstance(reply, NOT_EXECUTED_ERRORS):
                return reply
            lost = NoReply()
            lost.__cause__ = reply
            return lost
    return None
