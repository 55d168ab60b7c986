"""The rate and the age of events over the last seconds, for the live lines of commands."""

import statistics
import time
from collections import deque
from collections.abc import Callable

WINDOW_SECONDS = 10.0
MAX_EVENTS = 20_000
"""Most events that are remembered. At a higher rate the window is shorter than ten seconds."""


class RateMeter:
    """Counts events, and computes rate and median age of those of the last ten seconds."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._began = now()
        self._recent: deque[tuple[float, float]] = deque(maxlen=MAX_EVENTS)
        self.count = 0

    def add(self, age_ms: float) -> None:
        """Count an event that is ``age_ms`` old."""
        self._recent.append((self._now(), age_ms))
        self.count += 1

    @property
    def per_second(self) -> float:
        """Events per second in the window, which begins with the meter."""
        self._forget()
        if len(self._recent) == MAX_EVENTS:
            seconds = self._now() - self._recent[0][0]
        else:
            seconds = min(WINDOW_SECONDS, self._now() - self._began)
        return len(self._recent) / max(seconds, 1.0)

    @property
    def median_age_ms(self) -> float | None:
        """Median age in the window, in milliseconds; None without an event."""
        self._forget()
        return statistics.median(age for _, age in self._recent) if self._recent else None

    def __rich__(self) -> str:
        """Return the rate line. A live display asks for it again and again, so it also falls without events."""
        age = self.median_age_ms
        shown = f" · age p50 {age:,.0f} ms" if age is not None else ""
        return f"{self.per_second:,.1f}/s · {self.count:,} events{shown}"

    def _forget(self) -> None:
        oldest = self._now() - WINDOW_SECONDS
        while self._recent and self._recent[0][0] < oldest:
            self._recent.popleft()
