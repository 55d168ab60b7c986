"""The program that has imported the server's code. It forks for each request on the socket that it inherits.

A request is a JSON object with ``arguments``, ``env`` and ``folder``, and the descriptors of standard input, output and
error. The answer is the pid, and later the exit code. At the end of the socket the program kills what it started.
"""

import gc
import importlib
import json
import os
import pkgutil
import runpy
import selectors
import signal
import socket
import sys
from contextlib import suppress
from typing import Any, NamedTuple

MODULES = ("stream_server.cli", "stream_server.runtime.process", "stream_server.app", "uvloop")
"""The modules that a server imports before it is ready."""

COMMANDS = "stream_server.commands"
"""The package of the commands, each of which the command line imports only when it is used."""

MAX_REQUEST_BYTES = 1 << 18


class Request(NamedTuple):
    """One process to start: its module and arguments, its environment, its folder, and its three standard files."""

    arguments: list[str]
    env: dict[str, str]
    folder: str
    files: list[int]


class Parent:
    """Forks for requests and reports exit codes."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._selector = selectors.DefaultSelector()
        self._selector.register(channel, selectors.EVENT_READ)
        self._pids: dict[int, int] = {}  # by the descriptor that becomes readable when the process ends

    def serve(self) -> Request | None:
        """Serve requests. Return None at the end of the socket; return the request in each process that was forked."""
        while True:
            for key, _ in self._selector.select():
                if key.fileobj is not self._channel:
                    self._report(key.fd)
                    continue
                request = self._receive()
                if request is None:
                    self._kill_all()
                    return None
                if self._fork(request) == 0:
                    return request

    def _receive(self) -> Request | None:
        data, files, _, _ = socket.recv_fds(self._channel, MAX_REQUEST_BYTES, 3)
        return Request(**json.loads(data), files=files) if data else None

    def _fork(self, request: Request) -> int:
        pid = os.fork()
        if pid == 0:
            self._selector.close()
            self._channel.close()
            for descriptor in self._pids:
                os.close(descriptor)
            return 0
        for descriptor in request.files:
            os.close(descriptor)
        watched = os.pidfd_open(pid)
        self._pids[watched] = pid
        self._selector.register(watched, selectors.EVENT_READ)
        self._send({"started": pid})
        return pid

    def _report(self, descriptor: int) -> None:
        pid = self._pids.pop(descriptor)
        self._selector.unregister(descriptor)
        os.close(descriptor)
        _, status = os.waitpid(pid, 0)
        self._send({"ended": pid, "code": os.waitstatus_to_exitcode(status)})

    def _send(self, message: dict[str, int]) -> None:
        with suppress(BrokenPipeError):  # the suite has ended; the end of the socket follows
            self._channel.send(json.dumps(message).encode())

    def _kill_all(self) -> None:
        for pid in self._pids.values():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def become(request: Request) -> None:
    """Take over the files, folder, environment and arguments of the request."""
    for target, descriptor in enumerate(request.files):
        os.dup2(descriptor, target)
        os.close(descriptor)
    os.chdir(request.folder)
    os.environ.clear()
    os.environ.update(request.env)
    sys.argv[1:] = request.arguments[1:]


def main() -> None:
    """Import, serve, and in each forked process run the module that its request names."""
    commands = (name for _, name, _ in pkgutil.iter_modules(importlib.import_module(COMMANDS).__path__, f"{COMMANDS}."))
    for name in (*MODULES, *commands):
        importlib.import_module(name)
    gc.collect()
    gc.freeze()  # a collection in a child would copy every page of the parent's objects
    request: Any = Parent(socket.socket(fileno=int(sys.argv[1]))).serve()
    if request is not None:
        become(request)
        runpy.run_module(request.arguments[0], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
