"""Counts how often each limit was met, and when it last was."""

import time
from collections.abc import Callable
from typing import NamedTuple


class LimitHit(NamedTuple):
    """The number of times that a limit was met, and the last time, in ms since 1970."""

    times: int
    last_ms: int


class LimitHits:
    """The limits that were met in this process, by their names. The names are those of settings where there is one.

    The names come from the code and never from a client, so the table stays small.
    """

    def __init__(self, now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000) -> None:
        self._now_ms = now_ms
        self._hits: dict[str, LimitHit] = {}

    def add(self, limit: str) -> None:
        """Count that a limit was met."""
        known = self._hits.get(limit)
        self._hits[limit] = LimitHit(1 if known is None else known.times + 1, self._now_ms())

    def items(self) -> dict[str, LimitHit]:
        """Return all limits that were met."""
        return dict(self._hits)

    def counts(self) -> dict[str, int]:
        """Return how often each limit was met. That of all connections counts from 0, because an alert watches it."""
        return {"connections_max": 0, **{name: hit.times for name, hit in self._hits.items()}}
