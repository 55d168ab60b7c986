"""The time that work of one kind may take in an iteration of the event loop."""

import asyncio
import time

from stream_server.runtime.iteration_budget import IterationBudget

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
