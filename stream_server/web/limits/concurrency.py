"""Limits the requests of one subject that run at the same time in one server process."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from stream_server.errors import RateLimited

RETRY_SECONDS = 1.0


class Concurrency:
    """Counts the running requests of each subject, and refuses those above ``maximum``."""

    def __init__(self, maximum: int, noun: str) -> None:
        """``noun`` says in the plural what is counted, for the message of a refusal."""
        self._maximum = maximum
        self._noun = noun
        self._running: Counter[str] = Counter()

    def __len__(self) -> int:
        return self._running.total()

    @contextmanager
    def slot(self, subject: str) -> Iterator[None]:
        """Hold one of the subject's slots during the block. Raises `RateLimited` if all are taken."""
        if self._running[subject] >= self._maximum:
            message = f"you have {self._maximum} {self._noun} at the same time already"
            raise RateLimited(message, limit=f"concurrent {self._noun}", retry_after=RETRY_SECONDS)
        self._running[subject] += 1
        try:
            yield
        finally:
            self._running[subject] -= 1
            if not self._running[subject]:
                del self._running[subject]
