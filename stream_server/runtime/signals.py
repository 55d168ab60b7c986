"""What SIGTERM, SIGINT and SIGHUP do in a process that serves."""

import asyncio
import signal
from collections.abc import Coroutine
from typing import Any


async def ignore_signals_after(run: Coroutine[Any, Any, int]) -> int:
    """Await ``run``, then ignore SIGTERM, SIGINT and SIGHUP; return the exit code of ``run``.

    All work is done then. A signal while the interpreter shuts down would only turn the exit code into a failure.
    """
    try:
        return await run
    finally:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            asyncio.get_running_loop().remove_signal_handler(number)
            signal.signal(number, signal.SIG_IGN)


class StopRequest:
    """SIGTERM and SIGINT: they cancel a server that is starting, and stop a running server in order.

    A process makes one at its beginning. An unhandled signal would leave the embedded Redis to its shim and give a
    failure as exit code. A second signal has no effect: the stop that the first one began has a time limit, and
    cutting it short would lose the goodbyes.
    """

    def __init__(self) -> None:
        self._requested = asyncio.Event()
        self._starting_task = asyncio.current_task()
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, self._request)

    @property
    def is_requested(self) -> bool:
        """Whether a signal has arrived.

        Check it where the start is complete and :meth:`wait` is not used: a library that handles the cancellation
        itself may have swallowed it.
        """
        return self._requested.is_set()

    def _request(self) -> None:
        """Record the request; cancel the start if it is still under way."""
        if self._starting_task is not None and not self._requested.is_set():
            self._starting_task.cancel()
        self._requested.set()

    async def wait(self) -> None:
        """Wait for the first signal. Call it when the start is complete: from then on a signal cancels no task."""
        self._starting_task = None
        await self._requested.wait()
