"""The timeout budget of one request: how long it may wait for Redis in total, and whether it has written.

A request calls Redis several times (authentication, the write, the first timelines), each with its own timeout. Only
time spent waiting for Redis uses up the budget. A slow request body or password hashing does not.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from stream_server.errors import Unavailable
from stream_server.store.redis.errors import outcome_unknown_error


class TimeoutBudget:
    """The budget of one request.

    Attributes:
        remaining_seconds: Time in seconds that the request may still wait for Redis.
        has_written: Whether Redis has confirmed a write of this request.
    """

    __slots__ = ("has_written", "remaining_seconds")

    def __init__(self, seconds: float) -> None:
        self.remaining_seconds = seconds
        self.has_written = False


_CURRENT: ContextVar[TimeoutBudget | None] = ContextVar("timeout budget", default=None)


def current_budget() -> TimeoutBudget | None:
    """Return the budget of the current request, or None outside a request, where each call has the full timeout."""
    return _CURRENT.get()


@contextmanager
def limit_total_wait(seconds: float) -> Iterator[None]:
    """Limit the total time that the code inside waits for Redis.

    `Unavailable` promises that nothing was written. If the code inside has written, `OutcomeUnknown` is raised instead.
    """
    budget = TimeoutBudget(seconds)
    token = _CURRENT.set(budget)
    try:
        yield
    except Unavailable as error:
        if not budget.has_written:
            raise
        raise outcome_unknown_error() from error
    finally:
        _CURRENT.reset(token)
