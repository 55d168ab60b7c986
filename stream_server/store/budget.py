"""How long one request may wait for Redis all in all, and whether it has written anything by now.

A request asks Redis several times (who is it, the write, the first timelines), each within a time-out of its own. Only
time that was waited counts: a slow body or the hashing of a password takes nothing from it.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from stream_server.errors import OutcomeUnknown, Unavailable


class Budget:
    """``left`` is in seconds; ``written`` is set by whoever was answered that something is on the log."""

    __slots__ = ("left", "written")

    def __init__(self, seconds: float) -> None:
        self.left = seconds
        self.written = False


_CURRENT: ContextVar[Budget | None] = ContextVar("budget", default=None)


def current() -> Budget | None:
    """That of the request that is being answered; None for everything else, which has each time-out anew."""
    return _CURRENT.get()


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """All that is asked of Redis in here waits at most so long together.

    Unavailable promises that nothing was written: behind a write it leaves here as OutcomeUnknown.
    """
    budget = Budget(seconds)
    token = _CURRENT.set(budget)
    try:
        yield
    except Unavailable as error:
        if not budget.written:
            raise
        raise unknown() from error
    finally:
        _CURRENT.reset(token)


def unknown() -> OutcomeUnknown:
    """What a caller is told who may have written."""
    return OutcomeUnknown(
        "the data store did not answer; it may have been written. Repeat it under the same Idempotency-Key: "
        "without one it may be made twice",
        retry_after=1,
    )
