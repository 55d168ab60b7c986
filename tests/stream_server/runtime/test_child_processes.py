"""Child processes end with their owner, also those that ignore its signal."""

import asyncio
import signal
from pathlib import Path

from stream_server.runtime.child_processes import ChildProcesses
from tests.processes import alive
from tests.waiting import PATIENCE, eventually

STUBBORN = "trap '' TERM; echo ready; while :; do sleep 1; done"


async def test_a_child_that_ignores_sigterm_is_killed(tmp_path: Path) -> None:
    children = ChildProcesses(tmp_path / "folder")
    log = tmp_path / "log"
    child = children.start(log, "/bin/sh", "-c", STUBBORN)
    try:
        await eventually(lambda: log.read_text() == "ready\n")
        async with asyncio.timeout(PATIENCE):
            await children.stop(0.1)
        assert await child.ended == -signal.SIGKILL
    finally:
        child.process.kill()


async def test_a_stop_that_is_cancelled_leaves_no_process(tmp_path: Path) -> None:
    children = ChildProcesses(tmp_path / "folder")
    log = tmp_path / "log"
    first, second = (children.start(log, "/bin/sh", "-c", STUBBORN) for _ in range(2))
    try:
        await eventually(lambda: log.read_text() == "ready\nready\n")
        stop = asyncio.create_task(children.stop(PATIENCE))
        await asyncio.sleep(0)  # the stop waits for the end of the second one
        stop.cancel()
        await asyncio.wait({stop})
        assert stop.cancelled()
        assert not any(alive(pid) for pid in (first.pid, second.pid, children.watcher_pid))
        assert (await first.ended, await second.ended) == (-signal.SIGKILL, -signal.SIGKILL)
    finally:
        first.process.kill()
        second.process.kill()
