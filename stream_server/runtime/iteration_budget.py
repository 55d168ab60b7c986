"""The time that work of one kind may take in an iteration of the event loop. What finds no time waits for the next.

A crowd brings ten thousand times the same work in one iteration. Without a limit it would take seconds, in which the
process reads no socket.

The time is CPU time of the thread. On a busy machine the process often waits for a core in the middle of an iteration.
By the clock, the time would then be over after little work, while the log grows on: a crowd would never catch up.
"""

import asyncio
import time
from collections.abc import Callable
from typing import TypeVar

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
