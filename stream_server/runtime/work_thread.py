"""A thread for work that takes long, so that the event loop is not blocked meanwhile."""

import asyncio
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from stream_server.errors import RateLimited, Unavailable

T = TypeVar("T")

CALLER_SHARE = 10
"""One caller may hold this part of the queue: a tenth. So a single flood leaves room for the others."""


class WorkThread:
    """One thread with a bounded queue. Its work must be pure: it shares no mutable object with the event loop.

    Work in Python delays the event loop for a moment each time that the loop wakes up (`sys.setswitchinterval`). So
    there is only one such thread for each kind of work: the loop would have to wait for several ones.
    """

    def __init__(self, name: str, *, max_pending: int, busy_message: str) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=name)
        self._max_pending = max_pending
        self._busy_message = busy_message
        self._pending = 0
        self._pending_by_caller: Counter[str] = Counter()

    def close(self) -> None:
        """Cancel the waiting work, wait for the running one, and end the thread."""
        self._thread.shutdown(wait=True, cancel_futures=True)

    async def run(self, work: Callable[[], T], caller: str = "") -> T:
        """Return the result of ``work``. Raises `Unavailable` at once if ``max_pending`` calls run or wait already.

        Raises `RateLimited` if too many of them are of the same ``caller``, such as an address. An empty ``caller`` has
        no such limit.
        """
        if caller and self._pending_by_caller[caller] >= max(1, self._max_pending // CALLER_SHARE):
            raise RateLimited(self._busy_message, retry_after=1)
        if self._pending >= self._max_pending:
            raise Unavailable(self._busy_message, retry_after=2)
        self._pending += 1
        self._pending_by_caller[caller] += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, work)
        finally:
            self._pending -= 1
            self._pending_by_caller[caller] -= 1
            if not self._pending_by_caller[caller]:
                del self._pending_by_caller[caller]
