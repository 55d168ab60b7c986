"""The timeout budget of one request: how long it may wait for Redis in total, and whether it has written.

A request calls Redis several times (authentication, the write, the first timelines), each with its own timeout. Only
time spent waiting for Redis uses up the budget. A slow request body or password hashing does not.
"""

import time
from contextvars import ContextVar

from stream_server.errors import Unavailable
from stream_server.store.redis.refusals import outcome_unknown_error
from stream_server.store.redis.request_trace import RedisCall, RequestTrace


class TimeoutBudget:
    """Seconds for which a request may still wait for Redis, and whether Redis has confirmed a write of the request.

    ``trace`` records the calls of a request that is traced; it is None for the others.

    As a context manager it limits the total time for which the code of the block waits for Redis. If a write inside the
    block succeeded and a later call raises `Unavailable`, the block raises `OutcomeUnknown` instead, because
    `Unavailable` promises that nothing was written. A generator would cost each request twice as much.
    """

    __slots__ = ("_token", "has_written", "remaining_seconds", "trace")

    def __init__(self, seconds: float, trace: RequestTrace | None = None) -> None:
        self.remaining_seconds = seconds
        self.trace = trace
        self.has_written = False

    def charge(self, seconds: float, command_count: int) -> None:
        """Count a call of Redis that took ``seconds`` and has just ended."""
        self.remaining_seconds -= seconds
        if self.trace is not None:
            ended_ns = time.time_ns()
            self.trace.calls.append(RedisCall(ended_ns - int(seconds * 1e9), ended_ns, command_count))

    def __enter__(self) -> None:
        self._token = CURRENT.set(self)

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        CURRENT.reset(self._token)
        if isinstance(error, Unavailable) and self.has_written:
            raise outcome_unknown_error() from error


CURRENT: ContextVar[TimeoutBudget | None] = ContextVar("timeout budget", default=None)
"""The budget of the current request, None outside of a request."""
