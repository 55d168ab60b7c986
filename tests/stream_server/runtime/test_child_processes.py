"""Child processes end with their owner, also those that ignore its signal."""

import asyncio
import signal
from pathlib import Path

from stream_server.runtime.child_processes import ChildProcesses
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
