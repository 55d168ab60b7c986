"""Which client reads its next page: a few pages in each iteration of the event loop, however many clients catch up.

Without a limit, ten thousand returning clients would read a page each in the same iteration. It would take seconds, in
which the process reads no socket, and the supervisor takes a process that is blocked for too long for dead.

The client nearest to the head reads first, because it is finished soon. If all clients were served in turn, the log
would grow faster than all of them together advance. One page in `OLDEST_FIRST_EVERY` goes to the client that has waited
longest, however far behind it is.
"""

import asyncio
from collections import deque
from heapq import heapify, heappop, heappush
from itertools import count

MAX_ITERATION_SECONDS = 0.01
"""Longest time in seconds of all pages in one iteration of the event loop, estimated from recent pages."""

MIN_PAGES_PER_ITERATION, MAX_PAGES_PER_ITERATION = 4, 64
"""Fewest and most pages in one iteration. The iteration ends earlier if its first pages take all the time."""

OLDEST_FIRST_EVERY = 4
"""One page in this many goes to the client that has waited longest, not to the nearest one."""

MAX_FINISHED_WAITERS = 64
"""Finished waiters are removed from the heap when it holds this many more than twice the present waiters."""

QueuedWaiter = tuple[int, int, "asyncio.Future[None]"]
"""A waiting client: minus its entry number, a sequence number, and the future that ends its wait."""


class CatchUpScheduler:
    """Admits catching-up clients to read, a few pages per event loop iteration, mostly those nearest to the head."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._by_distance: list[QueuedWaiter] = []
        self._by_arrival: deque[asyncio.Future[None]] = deque()
        self._sequence = count()
        self._average_page_seconds = 0.0
        self._spent_seconds = 0.0
        self._pages_left = MIN_PAGES_PER_ITERATION
        self._is_refill_scheduled = False

    async def wait_turn(self, entry_number: int) -> None:
        """Wait until a client whose position has this entry number may read a page. Do not wait if few clients read."""
        if self._pages_left and not self._by_arrival:
            self._use_page()
            return
        turn = self._loop.create_future()
        self._by_arrival.append(turn)
        heappush(self._by_distance, (-entry_number, next(self._sequence), turn))
        self._schedule_refill()
        await turn

    def record_page(self, seconds: float) -> None:
        """Record the seconds that a page took. A slow page immediately lowers the number of pages per iteration."""
        average = self._average_page_seconds
        self._average_page_seconds = max(seconds, average + (seconds - average) / MAX_PAGES_PER_ITERATION)
        self._spent_seconds += seconds
        if self._spent_seconds >= MAX_ITERATION_SECONDS:
            self._pages_left = 0

    def _use_page(self) -> None:
        self._pages_left -= 1
        self._schedule_refill()

    def _schedule_refill(self) -> None:
        if not self._is_refill_scheduled:
            self._is_refill_scheduled = True
            self._loop.call_soon(self._refill)

    def _refill(self) -> None:
        """Let as many waiting clients read one page each as one iteration of the event loop has time for."""
        self._is_refill_scheduled = False
        self._spent_seconds = 0.0
        pages = int(MAX_ITERATION_SECONDS / max(self._average_page_seconds, 1e-6))
        self._pages_left = max(MIN_PAGES_PER_ITERATION, min(MAX_PAGES_PER_ITERATION, pages))
        while self._pages_left and (turn := self._next_waiter()) is not None:
            turn.set_result(None)
            self._use_page()
        if len(self._by_distance) > 2 * len(self._by_arrival) + MAX_FINISHED_WAITERS:
            self._by_distance = [waiting for waiting in self._by_distance if not waiting[2].done()]
            heapify(self._by_distance)

    def _next_waiter(self) -> asyncio.Future[None] | None:
        while self._by_arrival and self._by_arrival[0].done():
            self._by_arrival.popleft()
        if not self._by_arrival:
            self._by_distance.clear()
            return None
        if self._pages_left % OLDEST_FIRST_EVERY == 0:
            return self._by_arrival.popleft()
        while (turn := heappop(self._by_distance)[2]).done():
            pass
        return turn
