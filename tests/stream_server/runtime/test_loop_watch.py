"""The time for which the event loop is blocked, measured by a task."""

import asyncio
import time

from stream_server.runtime.loop_watch import BLOCKED_SECONDS, WINDOW_SECONDS, LoopWatch
from tests.waiting import eventually


async def test_a_blocked_loop_is_counted_and_measured() -> None:
    watch = LoopWatch()
    task = asyncio.create_task(watch.run())
    await asyncio.sleep(0)
    time.sleep(BLOCKED_SECONDS * 3)  # noqa: ASYNC251 - this is the fault that the watch has to see
    await eventually(lambda: watch.blocked_count > 0, what="a blocked loop")
    assert watch.longest_seconds >= BLOCKED_SECONDS * 2
    assert watch.recent_seconds == watch.longest_seconds
    task.cancel()


async def test_a_window_later_the_recent_time_forgets() -> None:
    now = 0.0
    watch = LoopWatch(lambda: now)
    watch._record(0.2, now)
    now = WINDOW_SECONDS
    watch._record(0.1, now)
    assert watch.recent_seconds == 0.2
    now = 2 * WINDOW_SECONDS
    watch._record(0.001, now)
    assert watch.recent_seconds == 0.1
    assert watch.longest_seconds == 0.2
