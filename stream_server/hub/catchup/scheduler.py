"""Selects the clients that read their next page: pages of a few milliseconds in one iteration of the event loop.

Without a limit, ten thousand returning clients would read a page each in the same iteration. It would take seconds. In
this time the process reads no socket, and the supervisor kills a process that is blocked for too long.

The client nearest to the head reads first, because it is finished soon. If all clients were served in turn, the log
would grow faster than all of them together advance. One page in `OLDEST_FIRST_EVERY` goes to the client that has waited
longest, however far behind it is.

The scheduler reads the pages of waiting clients itself. So it can stop when the time is over. If it woke the clients
instead, it would have to estimate how many pages fit. After one slow page it would wake too few clients for long.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Any, NamedTuple, TypeVar

from stream_server.runtime.event_loop import IterationBudget

MAX_ITERATION_SECONDS = 0.01
"""Most CPU time in seconds of all pages in one iteration of the event loop. The last page may take longer."""

OLDEST_FIRST_EVERY = 4
"""One page in this many goes to the client that has waited longest, not to the nearest one."""

MAX_FINISHED_WAITERS = 64
"""Finished waiters are removed from the heap when it holds this many more than twice the present waiters."""

Page = TypeVar("Page")


class Waiter(NamedTuple):
    """A client that waits for its next page. ``read`` reads the page, and the future ``page`` gets it."""

    read: Callable[[], Any]
    page: "asyncio.Future[Any]"


class CatchUpScheduler:
    """Lets catching-up clients read, for a few ms per event loop iteration, mostly those nearest to the head."""

    def __init__(self, clock: Callable[[], float] = time.thread_time) -> None:
        self._loop = asyncio.get_running_loop()
        self._by_distance: list[tuple[int, int, Waiter]] = []
        self._by_arrival: deque[Waiter] = deque()
        self._sequence = count()
        self._turns = count()
        self._budget = IterationBudget(self._loop, MAX_ITERATION_SECONDS, self._read_waiting, clock)

    @property
    def is_free(self) -> bool:
        """Whether a client may read a page without waiting: nobody waits, and this iteration has time left."""
        return not self._by_arrival and self._budget.is_left

    def read_now(self, read: Callable[[], Page]) -> Page:
        """Return what ``read`` returns. Its time counts for this iteration. Call it only if `is_free`."""
        return self._budget.run(read)

    async def read_in_turn(self, entry_number: int, read: Callable[[], Page]) -> Page:
        """Call ``read`` when a client at this entry number may read a page, and return its result."""
        if self.is_free:
            return self.read_now(read)
        waiter = Waiter(read, self._loop.create_future())
        self._by_arrival.append(waiter)
        heappush(self._by_distance, (-entry_number, next(self._sequence), waiter))
        self._budget.renew()
        page: Page = await waiter.page
        return page

    def _read_waiting(self) -> None:
        """Read pages of waiting clients, at least one, until the time of this iteration is over."""
        while self._budget.is_left and (waiter := self._next_waiter()) is not None:
            try:
                waiter.page.set_result(self.read_now(waiter.read))
            except Exception as error:  # noqa: BLE001 - it belongs to the client that waits
                waiter.page.set_exception(error)
        if len(self._by_distance) > 2 * len(self._by_arrival) + MAX_FINISHED_WAITERS:
            self._by_distance = [waiting for waiting in self._by_distance if not waiting[2].page.done()]
            heapify(self._by_distance)
        if self._by_arrival:
            self._budget.renew()

    def _next_waiter(self) -> Waiter | None:
        while self._by_arrival and self._by_arrival[0].page.done():
            self._by_arrival.popleft()
        if not self._by_arrival:
            self._by_distance.clear()
            return None
        if next(self._turns) % OLDEST_FIRST_EVERY == 0:
            return self._by_arrival.popleft()
        while (waiter := heappop(self._by_distance)[2]).page.done():
            pass
        return waiter
