"""A thread for work that takes long, so that the event loop is not blocked meanwhile."""

import asyncio
import os
import sys
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from stream_server.errors import RateLimited, Unavailable

T = TypeVar("T")

NICENESS = 5
"""Niceness of the thread, see nice(2): the event loop gets a busy processor first. With a higher value the thread could
be interrupted while it holds Python's lock, for which the event loop waits."""

CALLER_SHARE = 2
"""One caller may hold half of the queue, so that a single flood leaves room for the others."""


class WorkThread:
    """One thread with a bounded queue. Its work must be pure: it shares no mutable object with the event loop.

    Callers take turns: a caller waits for at most one piece of work of each other caller. Work in Python delays the
    event loop for a moment each time that the loop wakes up (`sys.setswitchinterval`). So there is only one such thread
    for each kind of work.
    """

    def __init__(self, name: str, *, max_pending: int, busy_message: str) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=name, initializer=_lower_priority)
        self._name = name
        self._max_pending = max_pending
        self._busy_message = busy_message
        self._pending = 0
        self._is_working = False
        self._turns: dict[str, deque[asyncio.Future[None]]] = {}

    def close(self) -> None:
        """Cancel the waiting work, wait for the running one, and end the thread."""
        self._thread.shutdown(wait=True, cancel_futures=True)

    async def run(self, work: Callable[[], T], caller: str = "") -> T:
        """Return the result of ``work``. Raises `Unavailable` at once if ``max_pending`` calls run or wait already.

        Raises `RateLimited` if half of them are of the same ``caller``, such as an address. An empty ``caller`` has no
        such limit.
        """
        if caller and len(self._turns.get(caller, ())) >= max(1, self._max_pending // CALLER_SHARE):
            raise RateLimited(self._busy_message, limit=self._name, retry_after=1)
        if self._pending >= self._max_pending:
            raise Unavailable(self._busy_message, retry_after=2)
        self._pending += 1
        try:
            await self._wait_for_turn(caller)
            try:
                return await asyncio.get_running_loop().run_in_executor(self._thread, work)
            finally:
                self._is_working = False
                self._give_turn()
        finally:
            self._pending -= 1

    async def _wait_for_turn(self, caller: str) -> None:
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._turns.setdefault(caller, deque()).append(turn)
        self._give_turn()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():  # it came at the same moment, and nobody uses it now
                self._is_working = False
                self._give_turn()
            raise

    def _give_turn(self) -> None:
        """Start the work of the next caller, unless other work runs. The caller then moves to the end of the queue."""
        while self._turns and not self._is_working:
            caller, waiting = next(iter(self._turns.items()))
            turn = waiting.popleft()
            del self._turns[caller]
            if waiting:
                self._turns[caller] = waiting
            if not turn.done():  # else its request was cancelled
                self._is_working = True
                turn.set_result(None)


def _lower_priority() -> None:
    """Lower this thread's priority, so that Redis and the event loop go first.

    Does nothing outside Linux, where threads have no priorities.
    """
    if sys.platform == "linux":
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)
