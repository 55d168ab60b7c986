"""Child processes of a server that never outlive it, however it ends.

Beside them runs a *watcher*, a shell that reads their ids from a pipe. When this process dies, even at ``kill -9``, the
kernel closes the pipe. The watcher then kills the children, and removes their folder. The watcher is a shell, because a
second Python would take half of the CPU time of a start.
"""

import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]

SERVE = (
    sys.executable, *(("-P",) if sys.flags.safe_path or sys.path[:1] != [str(ROOT)] else ()),
    "-m", "stream_server", "serve",
)  # fmt: skip
"""The command of another server process. ``-P``: it imports nothing from the present folder, as ``stream-server`` does.

A project may have a folder ``filters`` or a file ``secrets.py``, which would hide those of the server and of Python.
With ``python -m stream_server`` in the folder of its source, the present folder is where the server was found.
"""

WATCH = 'while read -r pid; do pids="$pids $pid"; done; [ -z "$pids" ] || kill -s KILL $pids; rm -rf "$1"'
"""What the watcher does. Its argument is the folder."""


class ChildProcess(NamedTuple):
    """A running child: its process, and a future with its exit code, or minus the signal that killed it."""

    process: "subprocess.Popen[bytes]"
    ended: "asyncio.Future[int]"

    @property
    def pid(self) -> int:
        """The id of the process."""
        return self.process.pid


class ChildProcesses:
    """Starts processes, and ends them in reverse order.

    Each has a session of its own, so Ctrl-C reaches only this process, which then ends them in order.

    Args:
        folder: The folder that the watcher removes when this process dies.
    """

    def __init__(self, folder: Path) -> None:
        self._running: list[ChildProcess] = []
        self._watcher = subprocess.Popen(  # noqa: S603 - a fixed text
            ["/bin/sh", "-c", WATCH, "watcher", folder],
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        self.watcher_pid = self._watcher.pid

    def start(self, log: Path, *command: str | Path, inherited_fds: Sequence[int] = ()) -> ChildProcess:
        """Start a process that inherits the descriptors. Append its output to the file ``log``. Raises OSError.

        Other users may not read the files that it makes, because they may hold e-mails and password hashes.
        """
        with os.fdopen(os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600), "ab") as output:
            process = subprocess.Popen(  # noqa: S603 - a command of the program
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, pass_fds=inherited_fds,
                umask=0o077, start_new_session=True,
            )  # fmt: skip
        child = ChildProcess(process, _future_of_exit(process))
        self._running.append(child)
        assert self._watcher.stdin is not None
        with suppress(BrokenPipeError):  # somebody killed the watcher
            self._watcher.stdin.write(b"%d\n" % process.pid)
            self._watcher.stdin.flush()
        return child

    async def stop(self, grace_seconds: float) -> None:
        """End the processes with SIGTERM, or with SIGKILL after ``grace_seconds``. A second call does nothing.

        A call that is cancelled kills them and waits for their ends, which blocks the event loop for a moment.
        """
        try:
            while self._running:
                await _end(self._running[-1], grace_seconds)
                self._running.pop()
        finally:
            while self._running:  # this was cancelled
                child = self._running.pop()
                child.process.kill()
                child.process.wait()
            self._watcher.kill()  # before its pipe closes, so that it sends no signal to another process with an old id
            self._watcher.communicate()


async def _end(child: ChildProcess, grace_seconds: float) -> None:
    for number in (signal.SIGTERM, signal.SIGCONT):  # it may be stopped
        child.process.send_signal(number)
    await asyncio.wait([child.ended], timeout=grace_seconds)
    child.process.kill()
    await asyncio.wait([child.ended])


def _future_of_exit(process: "subprocess.Popen[bytes]") -> "asyncio.Future[int]":
    """Return a future of the exit code of ``process``. A thread waits for the end of the process.

    asyncio could do this too, but it may lose a process if the task that starts the process is cancelled.
    """
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[int] = loop.create_future()

    def wait() -> None:
        code = process.wait()
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(ended.set_result, code)

    threading.Thread(target=wait, name=f"end of process {process.pid}", daemon=True).start()
    return ended
