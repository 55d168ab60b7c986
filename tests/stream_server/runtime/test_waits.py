"""Waits that end by their time-out, again and again for months, leave nothing behind."""

import asyncio
import gc
import signal
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import pytest
import uvloop

from stream_server.feed.log_reader import LogReader
from stream_server.runtime.supervisor import WorkerProcess
from stream_server.store.redis.shared_query import SharedQuery
from tests.waiting import PATIENCE

TICKS = 5000
"""Number of waits: so many that an object which one in fifty of them left would be too much."""

SOON = 1e-9
"""A time-out in seconds that is over in the next iteration of the event loop, and not before the wait has begun."""

Tick = Callable[[], Awaitable[object]]
Wait = Callable[[], AbstractAsyncContextManager[Tick]]


@asynccontextmanager
async def waiting_for_a_worker() -> AsyncIterator[Tick]:
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", "import time; time.sleep(600)")
    own, other = socket.socketpair()
    worker = WorkerProcess(1, process, own, {}, lambda _: None)
    try:
        yield lambda: worker.wait_ended(SOON)
        assert not await worker.wait_ended(SOON)
    finally:
        worker.signal(signal.SIGKILL)
        assert await worker.wait_ended(PATIENCE)
        worker.close()
        other.close()


@asynccontextmanager
async def waiting_for_the_log() -> AsyncIterator[Tick]:
    log = LogReader(None)  # type: ignore[arg-type] # nothing is read
    yield lambda: log.wait_until_readable(SOON)


@asynccontextmanager
async def waiting_for_a_shared_answer() -> AsyncIterator[Tick]:
    query = SharedQuery(asyncio.Event().wait, lambda _: None)

    async def ask() -> None:
        try:
            async with asyncio.timeout(SOON):
                await query.recent()
        except TimeoutError:
            return

    yield ask
    await query.close()


async def objects_left_by(wait: Wait) -> int:
    """Return how many more objects there are after :data:`TICKS` waits."""
    async with wait() as tick:
        for _ in range(100):
            await tick()
        gc.collect()
        before = len(gc.get_objects())
        for _ in range(TICKS):
            await tick()
        gc.collect()
        return len(gc.get_objects()) - before


@pytest.mark.parametrize("loop_factory", [uvloop.new_event_loop, asyncio.new_event_loop], ids=["uvloop", "asyncio"])
@pytest.mark.parametrize("wait", [waiting_for_a_worker, waiting_for_the_log, waiting_for_a_shared_answer])
def test_a_wait_that_times_out_leaves_nothing(
    wait: Wait, loop_factory: Callable[[], asyncio.AbstractEventLoop]
) -> None:
    with asyncio.Runner(loop_factory=loop_factory) as runner:
        assert runner.run(objects_left_by(wait)) < 100
