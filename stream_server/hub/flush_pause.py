"""The pause between two flushes: none while the process has slack, longer as it has less, a whole tick without any.

A flush at once gives the shortest wait. A pause joins the entries that arrive meanwhile: sending twenty events together
costs about as much as sending one. So joining saves time of the process, and each client pays for it by waiting. It is
worth its price only if the process has no time to spare. `FlushPause` measures this and decides.

Pressure is the share of the recent past in which the process worked. It is the larger of two shares:

- its CPU time. It counts all work: to receive entries, to match them, to write them, to answer requests. So a flood
  keeps the pressure up although the pauses make its flushes rare. (A rule by the time of the flushes alone reaches a
  balance instead, in which the pauses are too short for a flood.)
- the time that flushes took by the clock. It counts the waits for a core that other processes use too.
"""

from collections.abc import Callable
from time import perf_counter, thread_time
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
    """Measures the pressure on the thread that flushes, and says when the next flush may begin.

    ``next_flush_at`` is the earliest time of the next flush, in seconds of the clock ``wall_time``. Before the first
    flush it is 0.
    """

    def __init__(
        self, wall_time: Callable[[], float] = perf_counter, cpu_time: Callable[[], float] = thread_time
    ) -> None:
        """``cpu_time`` returns the CPU time of the calling thread in seconds. So call all methods in one thread."""
        self.next_flush_at = 0.0
        self._wall_time = wall_time
        self._cpu_time = cpu_time
        self._flushing_seconds = 0.0
        self._older = self._newer = self._mark()

    @property
    def flush_share(self) -> float:
        """Share of the recent past that flushes took by the clock, from 0.0 to 1.0."""
        return self._flush_share(self._mark())

    @property
    def pressure(self) -> float:
        """Share of the recent past in which the process worked or waited for a core, from 0.0 to 1.0."""
        return self._pressure(self._mark())

    def end_flush(self, duration: float) -> None:
        """Count a flush that ends now and took ``duration`` seconds by the clock. Decide when the next may begin."""
        self._flushing_seconds += duration
        now = self._mark()
        tick = min(MAX_TICK_SECONDS, TICK_FLUSHES * duration)
        self.next_flush_at = now.wall + tick * pause_share(self._pressure(now))
        if now.wall - self._newer.wall >= WINDOW_SECONDS / 2:
            self._older, self._newer = self._newer, now

    def _mark(self) -> _Mark:
        return _Mark(self._wall_time(), self._cpu_time(), self._flushing_seconds)

    def _pressure(self, now: _Mark) -> float:
        return max(self._flush_share(now), (now.cpu - self._older.cpu) / self._elapsed(now))

    def _flush_share(self, now: _Mark) -> float:
        return (now.flushing - self._older.flushing) / self._elapsed(now)

    def _elapsed(self, now: _Mark) -> float:
        """Return the length of the recent past. It has a minimum, or the first flush of all would fill it."""
        return max(now.wall - self._older.wall, WINDOW_SECONDS / 2)


def pause_share(pressure: float) -> float:
    """Return how much of the tick a flush waits, from 0.0 to 1.0, at this pressure."""
    ramp = (pressure - NO_PAUSE_PRESSURE) / (WHOLE_PAUSE_PRESSURE - NO_PAUSE_PRESSURE)
    return min(1.0, max(0.0, ramp))
