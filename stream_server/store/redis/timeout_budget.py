"""How long one request may wait for Redis all in all, and whether it has written anything by now.

A request asks Redis several times (who is it, the write, the first timelines), each within a time-out of its own. Only
time that was waited counts: a slow body or the hashing of a password takes nothing from it.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from stream_server.errors import OutcomeUnknown, Unavailable


class TimeoutBudget:
    """``remaining_seconds`` is in seconds; ``has_written`` is set by whoever was answered that something is on the log."""

    __slots__ = ("has_written", "remaining_seconds")

    def __init__(self, seconds: float) -> None:
        self.remaining_seconds = seconds
        self.has_written = False


_CURRENT: ContextVar[TimeoutBudget | None] = ContextVar("budget", default=None)


def current_budget() -> TimeoutBudget | None:
    """That of the request that is being answered; None for everything else, which has each time-out anew."""
    return _CURRENT.get()


@contextmanager
def limit_total_wait(seconds: float) -> Iterator[None]:
    """All that is asked of Redis in here waits at most so long together.

    Unavailable promises that nothing was written: behind a write it leaves here as OutcomeUnknown.
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


def outcome_unknown_error() -> OutcomeUnknown:
    """What a caller is told who may have written."""
    return OutcomeUnknown(
        "the data store did not answer; it may have been written. Repeat it under the same Idempotency-Key: "
        "without one it may be made twice",
        retry_after=1,
    )
