"""Measures how long the event loop is blocked, which is how long no client is served."""

import asyncio
import time
from collections.abc import Callable

TICK_SECONDS = 0.01
"""Seconds between two looks at the clock."""

WINDOW_SECONDS = 30.0
"""`LoopWatch.recent_seconds` covers between one and two of these windows, so that a scraper misses no blocked loop."""

BLOCKED_SECONDS = 0.05
"""A loop that is late by more than this counts as blocked. No request and no event may block it that long."""


class LoopWatch:
    """A timer that runs again and again, and measures how late it is.

    Attributes:
        longest_seconds: Longest time that the loop was blocked since the start.
        blocked_count: How often the loop was blocked for longer than BLOCKED_SECONDS.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.longest_seconds = 0.0
        self.blocked_count = 0
        self._clock = clock
        self._due_at = 0.0
        self._window_ends_at = clock() + WINDOW_SECONDS
        self._longest_now = self._longest_before = 0.0

    @property
    def recent_seconds(self) -> float:
        """Longest time in seconds that the loop was blocked in the last 30 to 60 seconds."""
        return max(self._longest_now, self._longest_before)

    async def run(self) -> None:
        """Measure how long the event loop is blocked, until cancelled."""
        self._schedule()
        try:
            await asyncio.Event().wait()
        finally:
            self._timer.cancel()

    def _schedule(self) -> None:
        """Set the timer. A task that sleeps would do the same at one and a half times the cost."""
        self._due_at = self._clock() + TICK_SECONDS
        self._timer = asyncio.get_running_loop().call_later(TICK_SECONDS, self._tick)

    def _tick(self) -> None:
        now = self._clock()
        self._record(now - self._due_at, now)
        self._schedule()

    def _record(self, late_seconds: float, now: float) -> None:
        if now >= self._window_ends_at:
            self._longest_before, self._longest_now = self._longest_now, 0.0
            self._window_ends_at = now + WINDOW_SECONDS
        self._longest_now = max(self._longest_now, late_seconds)
        self.longest_seconds = max(self.longest_seconds, late_seconds)
        self.blocked_count += late_seconds > BLOCKED_SECONDS
