"""Limits the time that the rules of one filter take, so that the rules of one user cannot block the event loop.

One event may cost FREE_SECONDS. More than that is taken from an allowance, which refills slowly. A filter that is
costly again and again uses its allowance up. It then raises `TooCostly`, and the server disables it on its stream.
"""

import time
from collections.abc import Callable

FREE_SECONDS = 0.0005
"""Processor time in seconds that each event may cost. A hundred ordinary rules take a tenth of it."""

MAX_EVENT_SECONDS = 0.002
"""Most processor time in seconds that one event may cost."""

ALLOWANCE_SECONDS = 0.02
"""Largest allowance, in seconds of processor time."""

REFILL_RATE = 0.005
"""Seconds of allowance that are added in each second."""


class TooCostly(Exception):
    """The rules of a filter took more processor time than a filter may take."""

    def __init__(self) -> None:
        super().__init__("its rules take too long")


class MatchingBudget:
    """The allowance of one filter. ``cpu_clock`` counts processor time of this thread, ``clock`` real time, in seconds.

    The budget counts processor time, so that a busy machine does not disable filters.
    """

    __slots__ = ("_allowance", "_clock", "_cpu_clock", "_cpu_started_at", "_started_at")

    def __init__(
        self, cpu_clock: Callable[[], float] = time.thread_time, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._cpu_clock = cpu_clock
        self._clock = clock
        self._allowance = ALLOWANCE_SECONDS
        self._started_at = clock()
        self._cpu_started_at = 0.0

    def start(self) -> None:
        """Begin to count the time for one event. Raises `TooCostly` if the allowance is used up."""
        now = self._clock()
        refill = (now - self._started_at) * REFILL_RATE
        self._allowance = min(ALLOWANCE_SECONDS, self._allowance + refill)
        self._started_at = now
        if self._allowance <= 0:
            raise TooCostly
        self._cpu_started_at = self._cpu_clock()

    def check(self) -> None:
        """Raise `TooCostly`, also for the events of the next seconds, if the event has cost more than it may cost."""
        if self._excess() > min(self._allowance, MAX_EVENT_SECONDS):
            self._allowance = -ALLOWANCE_SECONDS
            raise TooCostly

    def finish(self) -> None:
        """End the count for the event. Take the time beyond FREE_SECONDS from the allowance."""
        self._allowance -= self._excess()

    def _excess(self) -> float:
        if (
            self._clock() - self._started_at <= FREE_SECONDS
        ):  # as nearly always; the other clock takes nine times longer
            return 0.0
        return max(0.0, self._cpu_clock() - self._cpu_started_at - FREE_SECONDS)
