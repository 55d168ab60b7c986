"""The timeout budget of one request: how long it may wait for Redis in total, and whether it has written.

A request calls Redis several times (authentication, the write, the first timelines), each with its own timeout. Only
time spent waiting for Redis uses up the budget. A slow request body or password hashing does not.
"""

from contextvars import ContextVar
from types import TracebackType

from stream_server.errors import Unavailable
from stream_server.store.redis.refusals import outcome_unknown_error


class TimeoutBudget:
    """Seconds for which a request may still wait for Redis, and whether Redis has confirmed a write of the request."""

    __slots__ = ("has_written", "remaining_seconds")

    def __init__(self, seconds: float) -> None:
        self.remaining_seconds = seconds
        self.has_written = False


_CURRENT: ContextVar[TimeoutBudget | None] = ContextVar("timeout budget", default=None)


def current_budget() -> TimeoutBudget | None:
    """Return the `TimeoutBudget` of the current request, or None outside a request."""
    return _CURRENT.get()


class limit_total_wait:  # noqa: N801 - used as a function. A generator would cost each request four times as much
    """Limit the total time in seconds for which the code inside the ``with`` block waits for Redis.

    If a write inside the block succeeded and a later call raises `Unavailable`, the block raises `OutcomeUnknown`
    instead, because `Unavailable` promises that nothing was written.
    """

    __slots__ = ("_budget", "_token")

    def __init__(self, seconds: float) -> None:
        self._budget = TimeoutBudget(seconds)

    def __enter__(self) -> None:
        self._token = _CURRENT.set(self._budget)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        _CURRENT.reset(self._token)
        if isinstance(error, Unavailable) and self._budget.has_written:
            raise outcome_unknown_error() from error
