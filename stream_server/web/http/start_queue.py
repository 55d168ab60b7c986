"""Which request begins next: requests of a few milliseconds in each iteration of the event loop, and no more.

After a restart, ten thousand clients send their requests at once. If one iteration began all of them, it would take
seconds. Live streams would wait for their events, and nobody would accept connections in this time.

The request that came first begins first.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable

MAX_ITERATION_SECONDS = 0.005
"""Longest time in seconds of all requests that begin in one iteration of the event loop. The last may take longer."""


class StartQueue:
    """Lets requests begin, for a few ms per event loop iteration. The others wait in their order."""

    def __init__(self, loop: asyncio.AbstractEventLoop, clock: Callable[[], float] = time.monotonic) -> None:
        self._loop = loop
        self._clock = clock
        self._waiting: deque[Callable[[], None]] = deque()
        self._spent_seconds = 0.0
        self._is_iteration_scheduled = False

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def is_free(self) -> bool:
        """Whether a request may begin without waiting: nobody waits, and this iteration has time left."""
        return not self._waiting and self._spent_seconds < MAX_ITERATION_SECONDS

    def begin_in_turn(self, begin: Callable[[], None]) -> None:
        """Call ``begin`` now if the queue is free, else in a later iteration.

        An exception of a call that waited goes to the event loop's handler, and the others go on.
        """
        if self.is_free:
            self._begin_now(begin)
        else:
            self._waiting.append(begin)

    def _begin_now(self, begin: Callable[[], None]) -> None:
        self._schedule_iteration()
        started_at = self._clock()
        try:
            begin()
        finally:
            self._spent_seconds += self._clock() - started_at

    def _schedule_iteration(self) -> None:
        if not self._is_iteration_scheduled:
            self._is_iteration_scheduled = True
            self._loop.call_soon(self._begin_iteration)

    def _begin_iteration(self) -> None:
        """Begin waiting requests, at least one, until the time of this iteration is over."""
        self._is_iteration_scheduled = False
        self._spent_seconds = 0.0
        while self._waiting and self._spent_seconds < MAX_ITERATION_SECONDS:
            self._begin_now(self._waiting.popleft())
