"""Starts Python modules of the server as forks of a process that has imported them (see ``parent``)."""

import atexit
import json
import os
import select
import shlex
import signal
import socket
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import IO, Protocol

from tests.preloaded.identity import ROOM

ROOT = Path(__file__).resolve().parents[2]
SHARED = "PRELOADED_PARENT"
"""The variable by which a run of tests gives its workers the address of the parent that they share.

An address is the name of a socket in Linux' abstract namespace, without the zero byte.
"""

_shared = os.environ.pop(SHARED, "")  # not for the runs of tests that a test starts: they may have other code
_OWN = {name: value for name, value in os.environ.items() if not name.startswith("STREAM_SERVER_")}
"""The environment of this process, before a test changes it."""


class AnyProcess(Protocol):
    """The part of ``subprocess.Popen`` that the suite uses."""

    pid: int

    @property
    def returncode(self) -> int | None: ...

    def poll(self) -> int | None: ...

    def wait(self, timeout: float | None = None) -> int: ...

    def send_signal(self, sig: signal.Signals) -> None: ...

    def terminate(self) -> None: ...

    def kill(self) -> None: ...


class PreloadedProcess:
    """A process with the methods of ``subprocess.Popen`` that the suite uses."""

    def __init__(self, pid: int, launcher: "Launcher") -> None:
        self.pid = pid
        self._launcher = launcher
        self._ended = _ended_descriptor(pid)

    @property
    def returncode(self) -> int | None:
        return self._launcher.codes.get(self.pid)

    def poll(self) -> int | None:
        self._launcher.listen(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end and return the exit code. Raises subprocess.TimeoutExpired after ``timeout`` seconds."""
        if self.poll() is None and self._ended is not None and not select.select([self._ended], [], [], timeout)[0]:
            assert timeout is not None
            raise subprocess.TimeoutExpired(["stream-server"], timeout)
        while (code := self.poll()) is None:
            time.sleep(0.001)  # the process has ended; its code is on the way
        return code

    def send_signal(self, sig: signal.Signals) -> None:
        if self.poll() is None:
            with suppress(ProcessLookupError):  # it has just ended
                os.kill(self.pid, sig)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def __del__(self) -> None:
        if self._ended is not None:
            os.close(self._ended)


def _ended_descriptor(pid: int) -> int | None:
    """Return a descriptor that is readable when the process has ended. None if it has ended already."""
    try:
        return os.pidfd_open(pid)
    except ProcessLookupError:
        return None


class Launcher:
    """The side of the suite: sends requests to the parent at ``address``, or to the ``program`` that it starts.

    ``codes`` has the exit codes of ended processes, by pid.
    """

    def __init__(self, address: str = "", program: Sequence[str] = ("tests.preloaded.parent", ROOM)) -> None:
        self.codes: dict[int, int] = {}
        self._started: list[int] = []
        self._lock = threading.RLock()
        self._parent: subprocess.Popen[bytes] | None = None
        self.address = address
        self._channel = _connect(address) if address else self._start_parent(*program)
        atexit.register(self.close)

    def _start_parent(self, module: str, *arguments: str) -> socket.socket:
        channel, first = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.address = f"preloaded-{uuid.uuid4()}"
        listener.bind(f"\0{self.address}")
        listener.listen()
        with first, listener:
            given = (first.fileno(), listener.fileno())
            self._parent = subprocess.Popen(
                [sys.executable, "-u", "-m", module, *map(str, given), *arguments],
                cwd=ROOT, env=_OWN, stdin=subprocess.DEVNULL, pass_fds=given,
            )  # fmt: skip
        return channel

    def start(
        self, arguments: Sequence[str], env: Mapping[str, str], files: Sequence[IO[bytes] | int], folder: Path
    ) -> PreloadedProcess:
        """Start the module ``arguments[0]`` with the other arguments. ``files`` are the three standard files."""
        request = {"arguments": list(arguments), "env": dict(env), "folder": str(folder)}
        descriptors = [file if isinstance(file, int) else file.fileno() for file in files]
        with self._lock:
            socket.send_fds(self._channel, [json.dumps(request).encode()], descriptors)
            while not self._started:
                self.listen(None)
            return PreloadedProcess(self._started.pop(), self)

    def listen(self, seconds: float | None) -> None:
        """Take what the parent has reported. Wait up to ``seconds`` for the first report; None waits without end."""
        with self._lock:
            while select.select([self._channel], [], [], seconds)[0]:
                data = self._channel.recv(4096)
                assert data, "the process that imported the server's code has ended"
                self._take(json.loads(data))
                seconds = 0

    def _take(self, message: dict[str, int]) -> None:
        if "started" in message:
            self._started.append(message["started"])
        else:
            self.codes[message["ended"]] = message["code"]

    def close(self) -> None:
        """End what the parent has started for this side, and the parent if it was started here."""
        self._channel.close()
        if self._parent is not None:
            self._parent.wait(10)


def _connect(address: str) -> socket.socket:
    """Connect to a parent that another process has started, which may still be importing."""
    channel = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    channel.connect(f"\0{address}")
    return channel


@cache
def launcher() -> Launcher:
    """Return the launcher of this process. It uses the parent of the run if there is one, else a parent of its own."""
    return Launcher(_shared)


def share_parent() -> None:
    """Start a parent for the processes that this one starts, until it ends."""
    os.environ[SHARED] = launcher().address


def interpreter_of_workers(arguments: Sequence[str]) -> str:
    """Return the command that a run with these ``arguments`` of pytest gives to xdist as the interpreter of workers."""
    workers = Launcher(program=("tests.preloaded.worker", *arguments))
    return shlex.join([sys.executable, "-m", "tests.preloaded.stub", workers.address])


def start_module(
    arguments: Sequence[str], env: Mapping[str, str], out: IO[bytes], err: IO[bytes], *, preloaded: bool = True
) -> AnyProcess:
    """Start ``python -m`` with ``arguments``, in the folder of the project, without input.

    With ``preloaded`` it is a fork, unless ``env`` has other variables for the interpreter than this process: the
    interpreter reads them at its start.
    """
    if preloaded and _for_interpreter(env) == _for_interpreter(_OWN):
        with Path(os.devnull).open("rb") as nothing:
            return launcher().start(arguments, env, (nothing, out, err), ROOT)
    command = [sys.executable, "-m", *arguments]
    return subprocess.Popen(
        command, cwd=ROOT, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True
    )


def _for_interpreter(env: Mapping[str, str]) -> dict[str, str]:
    return {name: env[name] for name in env if name.startswith(("PYTHON", "LC_", "LANG")) and name not in _SAME}


_SAME = {"PYTHONUNBUFFERED"}
"""Variables that the parent of the forks has, because it runs with the option that means the same."""
