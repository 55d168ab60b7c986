"""A block of code with the timeout of one request."""

from collections.abc import Iterator
from contextlib import contextmanager

from stream_server.errors import ApiError
from stream_server.store.redis.timeout_budget import CURRENT, TimeoutBudget


@contextmanager
def budget(seconds: float) -> Iterator[None]:
    """Let the block wait for Redis for so long in total, and turn its error into that of a request."""
    given = TimeoutBudget(seconds)
    before = CURRENT.set(given)
    try:
        yield
    except ApiError as error:
        raise given.judge(error) from None
    finally:
        CURRENT.reset(before)
