"""The time for which the event loop is blocked, and the time that work of one kind may take in an iteration of it."""

import asyncio
import time

import pytest

from stream_server.runtime.event_loop import BLOCKED_SECONDS, WATCH_WINDOW_SECONDS, IterationBudget, LoopWatch
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
    now = WATCH_WINDOW_SECONDS
    watch._record(0.1, now)
    assert watch.recent_seconds == 0.2
    now = 2 * WATCH_WINDOW_SECONDS
    watch._record(0.001, now)
    assert watch.recent_seconds == 0.1
    assert watch.longest_seconds == 0.2


@pytest.mark.parametrize(("used", "why"), [(0.1, "paused with its machine or container"), (39.0, "blocked by work")])
async def test_a_standstill_is_said_when_it_is_over(caplog: pytest.LogCaptureFixture, used: float, why: str) -> None:
    now, used_now = 0.0, 0.0
    watch = LoopWatch(lambda: now, lambda: used_now)
    task = asyncio.create_task(watch.run())
    await asyncio.sleep(0)
    now, used_now = 40.0, used
    await eventually(lambda: why in caplog.text)
    assert f"the process stood still for 40 s and used {used} s of processor time" in caplog.text
    task.cancel()


BUDGET_SECONDS = 0.005


def wait_for_a_core() -> None:
    """Do nothing for longer than the budget, as a process does that has no core."""
    time.sleep(4 * BUDGET_SECONDS)


def work() -> None:
    """Use more CPU time than the budget has."""
    end = time.thread_time() + 1.1 * BUDGET_SECONDS
    while time.thread_time() < end:
        pass


async def test_work_uses_the_budget_and_a_wait_for_a_core_does_not() -> None:
    iterations = asyncio.Queue[None]()
    budget = IterationBudget(asyncio.get_running_loop(), BUDGET_SECONDS, lambda: iterations.put_nowait(None))
    budget.run(wait_for_a_core)
    left = [budget.is_left]
    budget.run(work)
    left.append(budget.is_left)
    await iterations.get()
    left.append(budget.is_left)
    assert left == [True, False, True]
    assert iterations.empty(), "two pieces of work are followed by one iteration"
