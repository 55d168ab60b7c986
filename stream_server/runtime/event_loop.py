"""The event loop: how long it is blocked, its time for work of one kind, and a thread for work that takes long.

A coroutine can begin without a task, see `run_to_wait`.

While the loop is blocked, no client is served.

The time that work of one kind may take in an iteration is limited. What finds no time waits for the next. A crowd
brings ten thousand times the same work in one iteration. Without a limit it would take seconds, in which the process
reads no socket.

That time is CPU time of the thread. On a busy machine the process often waits for a core in the middle of an iteration.
By the clock, the time would then be over after little work, while the log grows on: a crowd would never catch up.
"""

import asyncio
import logging
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from enum import Enum
from functools import partial
from typing import TypeVar

from stream_server.errors import RateLimited, Unavailable

logger = logging.getLogger(__name__)

WATCH_TICK_SECONDS = 0.01
"""Seconds between two looks at the clock."""

WATCH_WINDOW_SECONDS = 30.0
"""`LoopWatch.recent_seconds` covers between one and two of these windows, so that a scraper misses no blocked loop."""

BLOCKED_SECONDS = 0.05
"""A loop that is late by more than this counts as blocked. No request and no event may block it that long."""

STANDSTILL_SECONDS = 5.0
"""The log has a line about a loop that is late by more than this."""


class LoopWatch:
    """A timer that runs again and again, and measures how late it is.

    Attributes:
        longest_seconds: Longest time that the loop was blocked since the start.
        blocked_count: How often the loop was blocked for longer than BLOCKED_SECONDS.
    """

    def __init__(
        self, monotonic: Callable[[], float] = time.monotonic, thread_time: Callable[[], float] = time.thread_time
    ) -> None:
        """Measure by ``monotonic``. ``thread_time`` returns the processor time of the thread of the loop."""
        self.longest_seconds = 0.0
        self.blocked_count = 0
        self._monotonic, self._thread_time = monotonic, thread_time
        self._due_at = self._used_before = 0.0
        self._window_ends_at = monotonic() + WATCH_WINDOW_SECONDS
        self._longest_now = self._longest_before = 0.0

    @property
    def recent_seconds(self) -> float:
        """Longest time in seconds that the loop was blocked in the last 30 to 60 seconds."""
        return max(self._longest_now, self._longest_before)

    async def run(self) -> None:
        """Measure how long the event loop is blocked, until cancelled."""
        self._schedule()
        try:
            await asyncio.Event().wait()
        finally:
            self._timer.cancel()

    def _schedule(self) -> None:
        """Set the timer. A task that sleeps would do the same at one and a half times the cost."""
        self._due_at, self._used_before = self._monotonic() + WATCH_TICK_SECONDS, self._thread_time()
        self._timer = asyncio.get_running_loop().call_later(WATCH_TICK_SECONDS, self._tick)

    def _tick(self) -> None:
        now = self._monotonic()
        late_seconds = now - self._due_at
        self._record(late_seconds, now)
        if late_seconds > STANDSTILL_SECONDS:  # afterwards clients return and requests fail
            used_seconds = self._thread_time() - self._used_before
            used_most = used_seconds > late_seconds / 2
            why = "blocked by work" if used_most else "paused with its machine or container, or without a processor"
            text = "the process stood still for %.0f s and used %.1f s of processor time: it was %s"
            logger.warning(text, late_seconds, used_seconds, why)
        self._schedule()

    def _record(self, late_seconds: float, now: float) -> None:
        if now >= self._window_ends_at:
            self._longest_before, self._longest_now = self._longest_now, 0.0
            self._window_ends_at = now + WATCH_WINDOW_SECONDS
        self._longest_now = max(self._longest_now, late_seconds)
        self.longest_seconds = max(self.longest_seconds, late_seconds)
        self.blocked_count += late_seconds > BLOCKED_SECONDS


Result = TypeVar("Result")


class IterationBudget:
    """Limits the work that is done in one iteration of the event loop.

    Attributes:
        is_left: Whether this iteration has time left. The last work of an iteration may take longer than that.
    """

    __slots__ = ("_is_scheduled", "_loop", "_max_seconds", "_on_iteration", "_spent_seconds", "_thread_time", "is_left")

    def __init__(
        self, loop: asyncio.AbstractEventLoop, max_seconds: float, on_iteration: Callable[[], None],
        thread_time: Callable[[], float] = time.thread_time,
    ) -> None:  # fmt: skip
        """Allow ``max_seconds`` of ``thread_time`` in each iteration of ``loop``.

        ``on_iteration`` is called in the iteration after work or :meth:`renew`, with a full budget.
        """
        self._loop = loop
        self._max_seconds = max_seconds
        self._on_iteration = on_iteration
        self._thread_time = thread_time
        self._spent_seconds = 0.0
        self._is_scheduled = False
        self.is_left = True

    def run(self, work: Callable[[], Result]) -> Result:
        """Call ``work`` and return its result. The time that it takes counts for this iteration, even if it raises."""
        self.renew()
        started_at = self._thread_time()
        try:
            return work()
        finally:
            self._spent_seconds += self._thread_time() - started_at
            self.is_left = self._spent_seconds < self._max_seconds

    def run_each(self, waiting: deque[Callable[[], object]]) -> None:
        """Do work from the left of ``waiting``, at least one piece, until this iteration has no time left.

        The clock is read once for each piece: a read is a system call. If one piece raises, the next iteration goes on.
        """
        self.renew()
        before = self._thread_time()
        while waiting and self.is_left:
            try:
                waiting.popleft()()
            finally:
                now = self._thread_time()
                self._spent_seconds += now - before
                before, self.is_left = now, self._spent_seconds < self._max_seconds

    def renew(self) -> None:
        """Let the next iteration of the event loop begin with a full budget and a call of ``on_iteration``."""
        if not self._is_scheduled:
            self._is_scheduled = True
            self._loop.call_soon(self._begin_iteration)

    def _begin_iteration(self) -> None:
        self._is_scheduled = False
        self._spent_seconds, self.is_left = 0.0, True
        self._on_iteration()


class TurnQueue:
    """Does work in the order of its arrival, for a limited time in each iteration of the event loop.

    When ten thousand clients come or leave at once, one iteration with all of the work would take a second. In this
    time live streams would wait for their events, and the server would accept no connections.
    """

    def __init__(
        self, loop: asyncio.AbstractEventLoop, max_seconds: float, thread_time: Callable[[], float] = time.thread_time
    ) -> None:
        """Work for ``max_seconds`` of ``thread_time`` in each iteration of ``loop``. The last work may take longer."""
        self._waiting: deque[Callable[[], object]] = deque()
        self._budget = IterationBudget(loop, max_seconds, self._run_waiting, thread_time)

    def __len__(self) -> int:
        return len(self._waiting)

    def run_in_turn(self, work: Callable[[], object]) -> None:
        """Call ``work`` now if no other work waits and this iteration has time left, else in a later one.

        An exception of work that waited goes to the event loop's handler, and the other work goes on.
        """
        if not self._waiting and self._budget.is_left:
            self._budget.run(work)
        else:
            self._waiting.append(work)

    def _run_waiting(self) -> None:
        if self._waiting:
            self._budget.run_each(self._waiting)


T = TypeVar("T")


class Ended(Enum):
    """The answer of `run_to_wait` for a coroutine that waits for nothing any more."""

    ENDED = "it has ended"


def run_to_wait(coroutine: Coroutine[T, None, object]) -> T | Ended:
    """Run a coroutine now, without a task, until it waits for something or ends.

    Return the future for which it waits, None if it only lets others go first (``sleep(0)``), or `Ended.ENDED`. A task
    can go on from there, when the future is done. Raises what the coroutine raises.

    This is what a task does in its first step. From Python 3.12 on, ``asyncio.Task(…, eager_start=True)`` does both.
    """
    try:
        return coroutine.send(None)
    except StopIteration:
        return Ended.ENDED


NICENESS = 5
"""Niceness of the thread above that of the process, see nice(2): the event loop gets a busy processor first. With a
higher value the thread could be interrupted while it holds Python's lock, for which the event loop waits."""


class WorkThread:
    """One thread with a bounded queue. Its work must be pure: it shares no mutable object with the event loop.

    Callers take turns: a caller waits for at most one piece of work of each other caller. Work in Python delays the
    event loop for a moment each time that the loop wakes up (`sys.setswitchinterval`). So there is only one such thread
    for each kind of work.
    """

    def __init__(self, name: str, *, max_pending: int, busy_message: str) -> None:
        # Redis and the event loop go first. Only on Linux threads have priorities; a number below that of the process
        # would need a right.
        lower = partial(os.nice, NICENESS) if sys.platform == "linux" else None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=name, initializer=lower)
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
        # One caller may hold half of the queue, so that a single flood leaves room for the others.
        if caller and len(self._turns.get(caller, ())) >= max(1, self._max_pending // 2):
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
        """Let the first caller in line start one piece of work, unless the thread works already.

        A caller that has more work moves to the end of the line.
        """
        while self._turns and not self._is_working:
            caller, waiting = next(iter(self._turns.items()))
            turn = waiting.popleft()
            del self._turns[caller]
            if waiting:
                self._turns[caller] = waiting
            if not turn.done():  # else its request was cancelled
                self._is_working = True
                turn.set_result(None)


async def in_daemon_thread(work: Callable[[], T]) -> T:
    """Return the result of ``work``, which reads for seconds or minutes, and changes nothing.

    If the process ends before that, the thread ends with it. The end of a process waits for all other threads, so that
    a signal would have no effect until the work is done.
    """
    result: Future[T] = Future()
    result.set_running_or_notify_cancel()

    def run() -> None:
        try:
            result.set_result(work())
        except Exception as error:  # noqa: BLE001 - whoever waits for the result gets it
            result.set_exception(error)

    threading.Thread(target=run, name="daemon work", daemon=True).start()
    return await asyncio.wrap_future(result)
