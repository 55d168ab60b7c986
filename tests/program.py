"""A program of the test suite, run as its own process, which a test may kill."""

import asyncio
import json
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from tests.waiting import PATIENCE

ROOT = Path(__file__).parent.parent


class Program:
    """A Python module as a process in a session of its own. It prints one JSON object per line."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self.pid = process.pid
        self.said: list[dict[str, Any]] = []

    async def hear(self, word: str, *, seconds: float = PATIENCE) -> Any:
        """Wait for the first line with the member ``word``, also an earlier one, and return the value."""
        async with asyncio.timeout(seconds):
            while True:
                for message in self.said:
                    if word in message:
                        return message[word]
                await self._listen(word)

    async def _listen(self, word: str) -> None:
        assert self.process.stdout is not None
        line = await self.process.stdout.readline()
        assert line, f"the program ended without {word!r}; it said {self.said}"
        self.said.append(json.loads(line))

    async def end(self, *, seconds: float = PATIENCE) -> int:
        """Read all output until the program ends, and return its exit code."""
        assert self.process.stdout is not None
        async with asyncio.timeout(seconds):
            async for line in self.process.stdout:
                self.said.append(json.loads(line))
            return await self.process.wait()

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)

    def interrupt(self) -> None:
        """Send SIGINT to the whole process group, as Ctrl-C in a terminal does."""
        os.killpg(self.pid, signal.SIGINT)


@asynccontextmanager
async def running(module: str, *arguments: object, env: Mapping[str, str] | None = None) -> AsyncIterator[Program]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-W", "error", "-m", module, *map(str, arguments),
        cwd=ROOT, stdout=PIPE, start_new_session=True, env=None if env is None else {**os.environ, **env},
    )  # fmt: skip
    program = Program(process)
    try:
        yield program
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()
        await program.end()


def say(**message: object) -> None:
    sys.stdout.write(json.dumps(message) + "\n")  # in one write, since several processes share the pipe
    sys.stdout.flush()
