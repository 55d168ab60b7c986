"""Lets requests begin in the order of their arrival, for a few milliseconds in each iteration of the event loop.

After a restart, ten thousand clients send their requests at once. If one iteration began all of them, it would take
seconds. In this time live streams would wait for their events, and the server would accept no connections.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable

from stream_server.runtime.event_loop import IterationBudget

MAX_ITERATION_SECONDS = 0.005
"""Most CPU time in seconds of all requests that begin in one iteration of the event loop. The last may take longer."""


class StartQueue:
    """Lets requests begin, for a few ms per event loop iteration. The others wait in their order."""

    def __init__(self, loop: asyncio.AbstractEventLoop, clock: Callable[[], float] = time.thread_time) -> None:
        self._waiting: deque[Callable[[], None]] = deque()
        self._budget = IterationBudget(loop, MAX_ITERATION_SECONDS, self._begin_waiting, clock)

    def __len__(self) -> int:
        return len(self._waiting)

    def begin_in_turn(self, begin: Callable[[], None]) -> None:
        """Call ``begin`` now if nobody waits and this iteration has time left, else in a later one.

        An exception of a call that waited goes to the event loop's handler, and the others go on.
        """
        if not self._waiting and self._budget.is_left:
            self._budget.run(begin)
        else:
            self._waiting.append(begin)

    def _begin_waiting(self) -> None:
        """Begin waiting requests, at least one, until the time of this iteration is over."""
        while self._waiting and self._budget.is_left:
            self._budget.run(self._waiting.popleft())
