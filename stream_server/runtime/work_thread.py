"""A thread for work that takes long, so that the event loop is not blocked meanwhile."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from stream_server.errors import Unavailable

T = TypeVar("T")


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

    def close(self) -> None:
        """Cancel the waiting work, wait for the running one, and end the thread."""
        self._thread.shutdown(wait=True, cancel_futures=True)

    async def run(self, work: Callable[[], T]) -> T:
        """Return the result of ``work``. Raises `Unavailable` at once if ``max_pending`` calls run or wait already."""
        if self._pending >= self._max_pending:
            raise Unavailable(self._busy_message, retry_after=2)
        self._pending += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, work)
        finally:
            self._pending -= 1
