"""Whose turn it is to read on: a few pages in each turn of the loop, however many clients return at once.

Without it every one of ten thousand would read a page in the same turn, which then takes seconds: nobody is heard,
accepted or written to meanwhile, and a worker that stands still for too long is taken for dead.

Who is nearest to the head comes first, and is done with soon: were all served in turn, the log would go on faster than
all of them together get through it. One turn in :data:`OLDEST_FIRST_EVERY` goes to who has waited longest, however far it has to go.
"""

import asyncio
from collections import deque
from heapq import heapify, heappop, heappush
from itertools import count

MAX_ITERATION_SECONDS = 0.01
"""As long as pages may take in one turn of the loop, by what they took of late."""

MIN_PAGES_PER_ITERATION, MAX_PAGES_PER_ITERATION = 4, 64
"""Pages in one turn of the loop, each bounded in time by the reader; fewer where the first of them take all of it."""

OLDEST_FIRST_EVERY = 4
"""One turn in so many is not by nearness."""

MAX_FINISHED_WAITERS = 64
"""So many more than those who wait may be held of those who do not wait any more."""

QueuedWaiter = tuple[int, int, "asyncio.Future[None]"]
"""Minus the number where one stands, a ticket, and the turn."""


class CatchUpScheduler:
    """Nearest to the head first."""

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
        """Wait until it is one's turn, who stands at number ``entry_number``; at once while few others read."""
        if self._pages_left and not self._by_arrival:
            self._use_page()
            return
        turn = self._loop.create_future()
        self._by_arrival.append(turn)
        heappush(self._by_distance, (-entry_number, next(self._sequence), turn))
        self._schedule_refill()
        await turn

    def record_page(self, seconds: float) -> None:
        """A page was read in so much time; what takes long is believed at once, and forgotten slowly."""
        self._average_page_seconds = max(
            seconds, self._average_page_seconds + (seconds - self._average_page_seconds) / MAX_PAGES_PER_ITERATION
        )
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
        """Who is given a turn here runs in the next turn of the loop, before this is called again."""
        self._is_refill_scheduled = False
        self._spent_seconds = 0.0
        self._pages_left = max(
            MIN_PAGES_PER_ITERATION,
            min(MAX_PAGES_PER_ITERATION, int(MAX_ITERATION_SECONDS / max(self._average_page_seconds, 1e-6))),
        )
        while self._pages_left and (turn := self._next_waiter()) is not None:
            turn.set_result(None)
            self._use_page()
        if len(self._by_distance) > 2 * len(self._by_arrival) + MAX_FINISHED_WAITERS:
            self._by_distance = [waiting for waiting in self._by_distance if not waiting[2].done()]
            heapify(self._by_distance)

    def _next_waiter(self) -> asyncio.Future[None] | None:
        """Whose turn it is; who left, or had it by the other order, is passed over."""
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
