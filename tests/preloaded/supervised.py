"""Lets a supervisor that is a fork start its workers as forks too.

A supervisor starts each worker as `python -m stream_server serve ...`, which imports the code again. Here a helper does
it: a child of the supervisor that is forked before the supervisor's code runs, and forks for each worker. The worker is
a child of the supervisor, in a session of its own, with the files that it was given, its arguments and its environment.
"""

import asyncio
import ctypes
import json
import os
import socket
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from stream_server.runtime.child_processes import SERVE
from tests.preloaded.identity import HELPER, set_arguments

PR_SET_CHILD_SUBREAPER = 36
MAX_REQUEST_BYTES = 1 << 18
MAX_FILES = 16


class Worker(NamedTuple):
    """What a worker is started with: its module and arguments, its environment, and the files that it keeps open."""

    arguments: list[str]
    env: dict[str, str]
    kept: list[int]


class WorkerProcess:
    """A worker with the methods of ``asyncio.subprocess.Process`` that a supervisor uses."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._ended = asyncio.Event()
        self._descriptor = os.pidfd_open(pid)
        asyncio.get_running_loop().add_reader(self._descriptor, self._reap)

    async def wait(self) -> int:
        await self._ended.wait()
        assert self.returncode is not None
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Raises ProcessLookupError if the worker has ended."""
        if self.returncode is not None:
            raise ProcessLookupError
        os.kill(self.pid, number)

    def _reap(self) -> None:
        asyncio.get_running_loop().remove_reader(self._descriptor)
        os.close(self._descriptor)
        self.returncode = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        self._ended.set()


def fork_workers() -> Worker | None:
    """Return None in the supervisor, whose workers will be forks, and in each worker what it is started with."""
    own, others = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    if os.fork() == 0:
        own.close()
        set_arguments([HELPER])
        return _serve(others)
    others.close()
    started = asyncio.create_subprocess_exec

    async def create_subprocess_exec(*command: Any, **options: Any) -> Any:
        if command[: len(SERVE)] == SERVE:
            return WorkerProcess(_ask(own, command[SERVE.index("-m") + 1 :], options["env"], options["pass_fds"]))
        return await started(*command, **options)

    asyncio.create_subprocess_exec = create_subprocess_exec
    return None


def _ask(helper: socket.socket, arguments: Sequence[str], env: Mapping[str, str], files: Sequence[int]) -> int:
    """Have a worker forked, and return its pid. It becomes a child of this process when the one between has ended."""
    request = json.dumps({"arguments": list(arguments), "env": dict(env), "kept": list(files)})
    libc = ctypes.CDLL(None)
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    try:
        socket.send_fds(helper, [request.encode()], files)
        return int(helper.recv(64))
    finally:
        libc.prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


def _serve(supervisor: socket.socket) -> Worker:
    """Fork for each request until the supervisor ends. Returns only in the workers."""
    while True:
        data, files, _, _ = socket.recv_fds(supervisor, MAX_REQUEST_BYTES, MAX_FILES)
        if not data:
            os._exit(0)
        reading, writing = os.pipe()
        between = os.fork()
        if between == 0:
            if (worker := os.fork()) != 0:
                os.write(writing, str(worker).encode())
                os._exit(0)
            return _placed(Worker(**json.loads(data)), files)
        for descriptor in (*files, writing):
            os.close(descriptor)
        os.waitpid(between, 0)
        with suppress(OSError):  # the supervisor has ended
            supervisor.send(os.read(reading, 64))
        os.close(reading)


def _placed(worker: Worker, files: Sequence[int]) -> Worker:
    """Give the files the numbers that the arguments name, and close all others but the standard ones."""
    os.setsid()
    beyond = max([*worker.kept, *files, 2]) + 1
    high = [os.dup2(descriptor, beyond + n) for n, descriptor in enumerate(files)]
    for target, descriptor in zip(worker.kept, high, strict=True):
        os.dup2(descriptor, target)
    for descriptor in map(int, os.listdir("/proc/self/fd")):  # noqa: PTH208 - names only
        if descriptor > 2 and descriptor not in worker.kept:
            with suppress(OSError):  # that of the folder itself
                os.close(descriptor)
    return worker
