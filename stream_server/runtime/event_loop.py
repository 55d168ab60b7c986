"""The event loop: how long it is blocked, which is how long no client is served, and how much work an iteration takes.

The time that work of one kind may take in an iteration is limited. What finds no time waits for the next. A crowd
brings ten thousand times the same work in one iteration. Without a limit it would take seconds, in which the process
reads no socket.

That time is CPU time of the thread. On a busy machine the process often waits for a core in the middle of an iteration.
By the clock, the time would then be over after little work, while the log grows on: a crowd would never catch up.
"""

import asyncio
import time
from collections.abc import Callable
from typing import TypeVar

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


Result = TypeVar("Result")


class IterationBudget:
    """Limits the work that is done in one iteration of the event loop.

    Attributes:
        is_left: Whether this iteration has time left. The last work of an iteration may take longer than that.
    """

    __slots__ = ("_clock", "_is_scheduled", "_loop", "_max_seconds", "_on_iteration", "_spent_seconds", "is_left")

    def __init__(
        self, loop: asyncio.AbstractEventLoop, max_seconds: float, on_iteration: Callable[[], None],
        clock: Callable[[], float] = time.thread_time,
    ) -> None:  # fmt: skip
        """Allow ``max_seconds`` by ``clock`` in each iteration of ``loop``.

        ``on_iteration`` is called in the iteration after work or :meth:`renew`, with a full budget.
        """
        self._loop = loop
        self._max_seconds = max_seconds
        self._on_iteration = on_iteration
        self._clock = clock
        self._spent_seconds = 0.0
        self._is_scheduled = False
        self.is_left = True

    def run(self, work: Callable[[], Result]) -> Result:
        """Call ``work`` and return its result. The time that it takes counts for this iteration, even if it raises."""
        self.renew()
        started_at = self._clock()
        try:
            return work()
        finally:
            self._spent_seconds += self._clock() - started_at
            self.is_left = self._spent_seconds < self._max_seconds

    def renew(self) -> None:
        """Let the next iteration of the event loop begin with a full budget and a call of ``on_iteration``."""
        if not self._is_scheduled:
            self._is_scheduled = True
            self._loop.call_soon(self._begin_iteration)

    def _begin_iteration(self) -> None:
        self._is_scheduled = False
        self._spent_seconds, self.is_left = 0.0, True
        self._on_iteration()
