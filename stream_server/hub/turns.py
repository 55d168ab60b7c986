"""Whose turn it is to read on: a few pages in each turn of the loop, however many clients return at once.

Without it every one of ten thousand would read a page in the same turn, which then takes seconds: nobody is heard,
accepted or written to meanwhile, and a worker that stands still for too long is taken for dead.

Who is nearest to the head comes first, and is done with soon: were all served in turn, the log would go on faster than
all of them together get through it. One turn in :data:`FAIR` goes to who has waited longest, however far it has to go.
"""

import asyncio
from collections import deque
from heapq import heapify, heappop, heappush
from itertools import count

TURN_SECONDS = 0.01
"""As long as pages may take in one turn of the loop, by what they took of late."""

AT_LEAST, AT_MOST = 4, 64
"""Pages in one turn of the loop, each bounded in time by the reader; fewer where the first of them take all of it."""

FAIR = 4
"""One turn in so many is not by nearness."""

SPARE = 64
"""So many more than those who wait may be held of those who do not wait any more."""

Waiting = tuple[int, int, "asyncio.Future[None]"]
"""Minus the number where one stands, a ticket, and the turn."""


class Turns:
    """Nearest to the head first."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._nearest: list[Waiting] = []
        self._oldest: deque[asyncio.Future[None]] = deque()
        self._tickets = count()
        self._page_seconds = 0.0
        self._spent = 0.0
        self._left = AT_LEAST
        self._renewing = False

    async def mine(self, n: int) -> None:
        """Wait until it is one's turn, who stands at number ``n``; at once while few others read."""
        if self._left and not self._oldest:
            self._give()
            return
        turn = self._loop.create_future()
        self._oldest.append(turn)
        heappush(self._nearest, (-n, next(self._tickets), turn))
        self._renew_soon()
        await turn

    def took(self, seconds: float) -> None:
        """A page was read in so much time; what takes long is believed at once, and forgotten slowly."""
        self._page_seconds = max(seconds, self._page_seconds + (seconds - self._page_seconds) / AT_MOST)
        self._spent += seconds
        if self._spent >= TURN_SECONDS:
            self._left = 0

    def _give(self) -> None:
        self._left -= 1
        self._renew_soon()

    def _renew_soon(self) -> None:
        if not self._renewing:
            self._renewing = True
            self._loop.call_soon(self._renew)

    def _renew(self) -> None:
        """Who is given a turn here runs in the next turn of the loop, before this is called again."""
        self._renewing = False
        self._spent = 0.0
        self._left = max(AT_LEAST, min(AT_MOST, int(TURN_SECONDS / max(self._page_seconds, 1e-6))))
        while self._left and (turn := self._next()) is not None:
            turn.set_result(None)
            self._give()
        if len(self._nearest) > 2 * len(self._oldest) + SPARE:
            self._nearest = [waiting for waiting in self._nearest if not waiting[2].done()]
            heapify(self._nearest)

    def _next(self) -> asyncio.Future[None] | None:
        """Whose turn it is; who left, or had it by the other order, is passed over."""
        while self._oldest and self._oldest[0].done():
            self._oldest.popleft()
        if not self._oldest:
            self._nearest.clear()
            return None
        if self._left % FAIR == 0:
            return self._oldest.popleft()
        while (turn := heappop(self._nearest)[2]).done():
            pass
        return turn
