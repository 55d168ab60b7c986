"""The child processes of a demo: they write into files of its folder, and all end with it."""

import asyncio
import os
import random
import signal
import socket
from collections.abc import Awaitable, Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Self

from stream_server.runtime.shim import die_with_parent

STOP_SECONDS = 8.0
"""Seconds that a process has to end after SIGTERM, before SIGKILL. A server takes 4 s to send its goodbyes."""

START_SECONDS = 60.0
POLL_SECONDS = 0.05

FIRST_PORT, LAST_PORT = 12_000, 30_000
"""Ports that Linux gives to no outgoing connection, so a process that was killed can have its port again."""


class DemoFault(Exception):
    """Raised if the demo cannot start. The message is one sentence for a person."""


class ChildProcesses:
    """Starts processes in ``folder``, and ends them in reverse order at the end of ``async with``.

    Each has a session of its own, so Ctrl-C reaches only the demo, which ends them in order. On Linux they also end
    when the demo is killed.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._running: list[asyncio.subprocess.Process] = []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        while self._running:
            await _end(self._running.pop())

    async def start(self, name: str, *command: str | Path) -> asyncio.subprocess.Process:
        """Start a process. What it says is in the file ``name.log`` of the folder."""
        with (self.folder / f"{name}.log").open("wb") as said:
            process = await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                start_new_session=True,
                preexec_fn=die_with_parent(signal.SIGTERM),
            )
        self._running.append(process)
        return process

    async def wait_for(
        self, name: str, process: asyncio.subprocess.Process, check: Callable[[], Awaitable[bool]]
    ) -> None:
        """Wait until ``check`` is true. Raises :class:`DemoFault` with the end of the log if the process ends first."""
        with suppress(TimeoutError):
            async with asyncio.timeout(START_SECONDS):
                while process.returncode is None:
                    if await check():
                        return
                    await asyncio.sleep(POLL_SECONDS)
        said = (self.folder / f"{name}.log").read_text(errors="replace").splitlines()[-3:]
        raise DemoFault(f"{name} did not start: {' '.join(said) or 'it said nothing'}")


async def _end(process: asyncio.subprocess.Process) -> None:
    """End a process, which may have ended or be stopped."""
    if process.returncode is None:
        for number in (signal.SIGTERM, signal.SIGCONT):
            with suppress(ProcessLookupError):
                os.kill(process.pid, number)  # asyncio's method would read the exit code, which it then misses
        try:
            async with asyncio.timeout(STOP_SECONDS):
                await process.wait()
        except TimeoutError:
            process.kill()
    await process.wait()


def free_ports(count: int) -> list[int]:
    """Return TCP ports that are free now on the loopback."""
    found: list[int] = []
    chance = random.SystemRandom()  # the common one may be seeded, and programs then look for the same ports
    with ExitStack() as stack:
        while len(found) < count:
            port = chance.randrange(FIRST_PORT, LAST_PORT)
            with suppress(OSError):
                stack.enter_context(socket.create_server(("127.0.0.1", port)))
                found.append(port)
    return found
