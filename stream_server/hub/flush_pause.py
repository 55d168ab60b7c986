"""How busy the process is, and how long a flush waits so that more entries join it."""

import time
from collections.abc import Callable
from typing import NamedTuple

NO_PAUSE_PRESSURE = 0.50
"""Pressure up to which a flush follows at once. A thousand clients with fifty events a second each take 45 % of a core.
Their median wait is then 5 ms; with the whole tick at any pressure it was 20 ms, for 33 % of a core."""

WHOLE_PAUSE_PRESSURE = 0.70
"""Pressure from which on a flush waits for the whole tick. In between, the pause grows in proportion.

So a higher load finds a balance between the two. With 0.60 and 0.85 the balance for two hundred events a second was at
66 % of a core, and the median wait no shorter than half of the tick's."""

TICK_FLUSHES = 3
"""The tick, as a multiple of the last flush's duration. So flushes take a quarter of the time under full load."""

MAX_TICK_SECONDS = 0.020
"""Longest tick in seconds. People do not notice it."""

WINDOW_SECONDS = 0.200
"""Length in seconds of the recent past. Half of it, when its older half was just dropped."""


class _Mark(NamedTuple):
    """The clocks at one moment, in seconds. ``flushing`` is the duration of all flushes until then."""

    wall: float
    cpu: float
    flushing: float


class FlushPause:
    """Measures how busy the thread is that flushes (its *pressure*), and says when the next flush may begin.

    ``next_flush_at`` is the earliest time of the next flush, in seconds of the clock ``monotonic``. Before the first
    flush it is 0.
    """

    def __init__(
        self, monotonic: Callable[[], float] = time.monotonic, thread_time: Callable[[], float] = time.thread_time
    ) -> None:
        """``thread_time`` returns the CPU time of the calling thread in seconds. So call all methods in one thread."""
        self.next_flush_at = 0.0
        self._monotonic = monotonic
        self._thread_time = thread_time
        self._flushing_seconds = 0.0
        self._older = self._newer = _Mark(monotonic(), thread_time(), 0.0)

    @property
    def flush_share(self) -> float:
        """Share of the recent past that flushes took by the clock, from 0.0 to 1.0."""
        return self._measure()[1]

    @property
    def pressure(self) -> float:
        """Share of the recent past in which the process worked or waited for a core, from 0.0 to 1.0."""
        return self._measure()[2]

    def end_flush(self, duration: float) -> None:
        """Count a flush that ends now and took ``duration`` seconds by the clock. Decide when the next may begin."""
        self._flushing_seconds += duration
        now, _, pressure = self._measure()
        tick = min(MAX_TICK_SECONDS, TICK_FLUSHES * duration)
        self.next_flush_at = now.wall + tick * pause_share(pressure)
        if now.wall - self._newer.wall >= WINDOW_SECONDS / 2:
            self._older, self._newer = self._newer, now

    def _measure(self) -> tuple[_Mark, float, float]:
        """Return the clocks now, `flush_share` and `pressure`. Both are shares (0.0 to 1.0) of the time since a mark.

        That time counts as half of `WINDOW_SECONDS` at least, or the first flush would seem to fill it.
        """
        now, older = _Mark(self._monotonic(), self._thread_time(), self._flushing_seconds), self._older
        elapsed = max(now.wall - older.wall, WINDOW_SECONDS / 2)
        flush_share = (now.flushing - older.flushing) / elapsed
        return now, flush_share, max(flush_share, (now.cpu - older.cpu) / elapsed)


def pause_share(pressure: float) -> float:
    """Return which share of the tick (the longest wait) a flush waits at this ``pressure``. Both are 0.0 to 1.0."""
    ramp = (pressure - NO_PAUSE_PRESSURE) / (WHOLE_PAUSE_PRESSURE - NO_PAUSE_PRESSURE)
    return min(1.0, max(0.0, ramp))
