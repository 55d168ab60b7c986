"""Whose turn it is to read on: a few pages in each turn of the loop, however many clients return at once.

Without it every one of ten thousand would read a page in the same turn, which then takes seconds: nobody is heard,
accepted or written to meanwhile, and a worker that stands still for too long is taken for dead.
"""

import asyncio
from collections import deque

AT_ONCE = 4
"""Pages in one turn of the loop, each bounded in time by the reader."""


class Turns:
    """First come, first served."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._left = AT_ONCE
        self._renewing = False

    async def mine(self) -> None:
        """Wait until it is one's turn; at once while few others read."""
        if self._left and not self._waiting:
            self._give()
            return
        turn = self._loop.create_future()
        self._waiting.append(turn)
        await turn

    def _give(self) -> None:
        self._left -= 1
        if not self._renewing:
            self._renewing = True
            self._loop.call_soon(self._renew)

    def _renew(self) -> None:
        """Who is given a turn here runs in the next turn of the loop, before this is called again."""
        self._renewing = False
        self._left = AT_ONCE
        while self._left and self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():  # else its client left
                turn.set_result(None)
                self._give()
