"""The work thread: callers take turns, and no caller fills the queue."""

import asyncio
import os
import sys
import threading
from collections.abc import Iterator

import pytest

from stream_server.errors import RateLimited, Unavailable
from stream_server.runtime.event_loop import NICENESS, WorkThread

MAX_PENDING = 10

LOWEST = 19
"""The greatest number of nice(2)."""


@pytest.fixture
def thread() -> Iterator[WorkThread]:
    made = WorkThread("test", max_pending=MAX_PENDING, busy_message="busy")
    yield made
    made.close()


async def test_callers_take_turns(thread: WorkThread) -> None:
    hold, done = threading.Event(), list[str]()

    async def bring(caller: str) -> None:
        await thread.run(hold.wait, caller)
        done.append(caller)

    tasks = [asyncio.create_task(bring(caller)) for caller in "aaaaabbc"]
    await asyncio.sleep(0)  # each task starts and takes its place
    hold.set()
    await asyncio.gather(*tasks)
    assert "".join(done) == "aabcabaa", "the first works at once, and then they take turns"


async def test_a_caller_holds_half_of_the_queue(thread: WorkThread) -> None:
    hold = threading.Event()
    held = [asyncio.create_task(thread.run(hold.wait, "a")) for _ in range(MAX_PENDING // 2 + 1)]
    await asyncio.sleep(0)
    with pytest.raises(RateLimited):
        await thread.run(hold.wait, "a")
    held += [asyncio.create_task(thread.run(hold.wait, caller)) for caller in "bcde"[: MAX_PENDING - len(held)]]
    await asyncio.sleep(0)
    with pytest.raises(Unavailable):
        await thread.run(hold.wait, "f")
    hold.set()
    assert all(await asyncio.gather(*held))


async def test_cancelled_work_gives_its_turn_away(thread: WorkThread) -> None:
    hold = threading.Event()
    tasks = [asyncio.create_task(thread.run(hold.wait, caller)) for caller in "abc"]
    await asyncio.sleep(0)
    tasks[1].cancel()
    await asyncio.gather(tasks[1], return_exceptions=True)
    hold.set()
    assert await tasks[2]
    assert await thread.run(lambda: 7, "d") == 7


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has priorities of threads")
async def test_the_thread_stands_back_and_the_event_loop_does_not(thread: WorkThread) -> None:
    """Also in a process that `nice` has started: a lower number than that of the process would need a right."""
    before = os.getpriority(os.PRIO_PROCESS, 0)
    usual = os.nice(1 if os.geteuid() == 0 else 0)  # only root can go back
    try:
        found = await thread.run(lambda: os.getpriority(os.PRIO_PROCESS, threading.get_native_id()))
        assert found == min(usual + NICENESS, LOWEST)
        assert os.getpriority(os.PRIO_PROCESS, 0) == usual
    finally:
        os.setpriority(os.PRIO_PROCESS, 0, before)
