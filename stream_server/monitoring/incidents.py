"""What an operator should look at: the last warnings and errors of the log, and how often each limit was met."""

import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from stream_server.runtime.logs import LogThrottle, redact

MAX_ERRORS = 20

MAX_ERROR_CHARS = 500
"""Longest remembered message in characters; the rest is cut off."""


class RecentError(NamedTuple):
    """A warning or error of the log. ``at_ms`` is the time of the last of ``times``, in ms since 1970."""

    at_ms: int
    logger: str
    message: str
    times: int


class RecentErrors(logging.Handler):
    """A handler of the root logger that keeps the last :data:`MAX_ERRORS` different warnings and errors.

    Equal ones are counted, so a flood of one error does not hide the others. Secrets are replaced as in the log. The
    type of an exception is kept, but not its traceback, which the log has. As in the log, at most 20 records of one
    place in the code are taken in 10 s, so that a flood costs little. The next record of the place adds the others.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        super().__init__(logging.WARNING)
        self.addFilter(LogThrottle(monotonic))
        self._errors: OrderedDict[tuple[str, str], RecentError] = OrderedDict()

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether to remember a record.

        Its number of suppressed records (``suppressed``) becomes 0: the log's own handler has set it for itself.
        """
        record.suppressed = 0
        return bool(super().filter(record))

    def emit(self, record: logging.LogRecord) -> None:
        """Remember a record. The logging library calls this under the lock of the handler."""
        try:
            text = record.getMessage()
            error = record.exc_info[1] if isinstance(record.exc_info, tuple) else None
            shown = text if error is None else f"{text}: {type(error).__name__}: {error}"
            message = redact(shown)[:MAX_ERROR_CHARS]
        except Exception:  # noqa: BLE001 - a record with wrong arguments; the log's own handler reports it
            return
        key = (record.name, message)
        known = self._errors.pop(key, None)
        unheard: int = record.suppressed  # type: ignore[attr-defined]  # set by `filter`
        times = (0 if known is None else known.times) + 1 + unheard
        self._errors[key] = RecentError(int(record.created * 1000), record.name, message, times)
        if len(self._errors) > MAX_ERRORS:
            self._errors.popitem(last=False)

    def newest_first(self) -> list[RecentError]:
        """Return the remembered errors, those that occurred last first."""
        return list(reversed(self._errors.values()))

    @contextmanager
    def attached(self) -> Iterator[None]:
        """A context: remember the warnings and errors that the process logs during the block."""
        root = logging.getLogger()
        root.addHandler(self)
        try:
            yield
        finally:
            root.removeHandler(self)


class LimitHit(NamedTuple):
    """The number of times that a limit was met, and the last time, in ms since 1970."""

    times: int
    last_ms: int


class LimitHits:
    """The limits that were met in this process, by their names. The names are those of settings where there is one.

    The names come from the code and never from a client, so the table stays small.
    """

    def __init__(self) -> None:
        self._hits: dict[str, LimitHit] = {}

    def add(self, limit: str) -> None:
        """Count that a limit was met."""
        known = self._hits.get(limit)
        self._hits[limit] = LimitHit(1 if known is None else known.times + 1, time.time_ns() // 1_000_000)

    def items(self) -> dict[str, LimitHit]:
        """Return all limits that were met."""
        return dict(self._hits)

    def counts(self) -> dict[str, int]:
        """Return how often each limit was met. That of all connections counts from 0, because an alert watches it."""
        return {"connections_max": 0, **{name: hit.times for name, hit in self._hits.items()}}
