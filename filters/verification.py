"""Verification of candidates: calls the filters of the items that the index terms found, for a limited time."""

import time
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Generic, TypeVar

T = TypeVar("T", bound=Hashable)

MAX_EVENT_SECONDS = 0.02
"""Time in seconds after which the remaining candidates of an event are not verified. It blocks the event loop."""

SLOW_SLICE_SECONDS = 0.001
"""A slice of candidates that takes longer is slow. Only slow slices count, and after one each slice has one item."""

MAX_COUNTED_SECONDS = 0.004
"""Most time in seconds that counts of one slice, because a pause of the whole process is not the fault of a filter."""

CANDIDATES_PER_SLICE = 4
"""Number of candidates that are verified between two looks at the clock."""


class Verification(Generic[T]):
    """Verifies the candidates of one event after the other. ``unverified`` are the items for which no time was left.

    The caller must empty the list ``unverified``.
    """

    __slots__ = ("_clock", "_spent_seconds", "unverified")

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.unverified: list[T] = []
        self._clock = clock
        self._spent_seconds = 0.0

    def start_event(self) -> None:
        """Begin with the next event."""
        self._spent_seconds = 0.0

    def verify(self, items: Sequence[T], check: Callable[[Sequence[T]], Iterable[T]]) -> list[T]:
        """Return the items that match. ``check`` returns those of a few items that match, and must not raise."""
        found: list[T] = []
        at, size, started_at = 0, CANDIDATES_PER_SLICE, self._clock()
        while at < len(items):
            if self._spent_seconds > MAX_EVENT_SECONDS:
                self.unverified.extend(items[at:])
                break
            found.extend(check(items[at : at + size]))
            at += size
            ended_at = self._clock()
            if ended_at - started_at > SLOW_SLICE_SECONDS:
                self._spent_seconds += min(ended_at - started_at, MAX_COUNTED_SECONDS)
                size = 1
            started_at = ended_at
        return found
