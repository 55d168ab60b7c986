"""The program that has imported the server's code. It forks for each request on one of its sockets.

It inherits the first socket, and a second one at which others connect. A request is a JSON object with ``arguments``,
``env`` and ``folder``, and the descriptors of standard input, output and error. The answer is the pid, and later the
exit code. At the end of a socket the program kills what was started for it. It ends with its first socket.
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
from typing import NamedTuple

from tests.preloaded.identity import set_module
from tests.preloaded.supervised import fork_workers

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
    """Forks for requests and reports exit codes to the side that asked. It ends with the ``first`` channel."""

    def __init__(self, first: socket.socket, listener: socket.socket) -> None:
        self._first = first
        self._listener = listener
        self._selector = selectors.DefaultSelector()
        self._selector.register(listener, selectors.EVENT_READ)
        self._selector.register(first, selectors.EVENT_READ)
        self._running: dict[int, Running] = {}  # by the descriptor that becomes readable when the process ends

    def serve(self) -> Request | None:
        """Serve requests. Return None when the first channel ends; return the request in each forked process."""
        while True:
            for key, _ in self._selector.select():
                if key.fileobj is self._listener:
                    self._selector.register(self._listener.accept()[0], selectors.EVENT_READ)
                elif key.fd in self._running:
                    self._report(key.fd)
                elif isinstance(key.fileobj, socket.socket):
                    request = self._receive(key.fileobj)
                    if request is None and key.fileobj is self._first:
                        return None
                    if request is not None and self._fork(request, key.fileobj) == 0:
                        return request

    def _receive(self, channel: socket.socket) -> Request | None:
        """Return the next request. At the end of the channel, kill what it asked for, and return None."""
        data, files, _, _ = socket.recv_fds(channel, MAX_REQUEST_BYTES, 3)
        if data:
            return Request(**json.loads(data), files=files)
        self._selector.unregister(channel)
        for running in self._running.values():
            if running.channel is channel or channel is self._first:
                with suppress(ProcessLookupError):
                    os.kill(running.pid, signal.SIGKILL)
        channel.close()
        return None

    def _fork(self, request: Request, channel: socket.socket) -> int:
        pid = os.fork()
        if pid == 0:
            self._close_all()
            return 0
        for descriptor in request.files:
            os.close(descriptor)
        watched = os.pidfd_open(pid)
        self._running[watched] = Running(pid, channel)
        self._selector.register(watched, selectors.EVENT_READ)
        _send(channel, {"started": pid})
        return pid

    def _close_all(self) -> None:
        """Close, in the forked process, what belongs to the parent."""
        for key in self._selector.get_map().values():
            if isinstance(key.fileobj, socket.socket):
                key.fileobj.close()
            else:
                os.close(key.fd)
        self._selector.close()

    def _report(self, descriptor: int) -> None:
        running = self._running.pop(descriptor)
        self._selector.unregister(descriptor)
        os.close(descriptor)
        _, status = os.waitpid(running.pid, 0)
        _send(running.channel, {"ended": running.pid, "code": os.waitstatus_to_exitcode(status)})


class Running(NamedTuple):
    """A process that has not ended, and the channel that asked for it."""

    pid: int
    channel: socket.socket


def _send(channel: socket.socket, message: dict[str, int]) -> None:
    with suppress(OSError):  # that side has ended
        channel.send(json.dumps(message).encode())


def fork_for_requests(first: str, listener: str) -> Request | None:
    """Serve the sockets with these descriptors. Return the request in each forked process, and None at the end."""
    return Parent(*(socket.socket(fileno=int(descriptor)) for descriptor in (first, listener))).serve()


def become(request: Request) -> None:
    """Take over the files, folder, environment and arguments of the request."""
    for target, descriptor in enumerate(request.files):
        os.dup2(descriptor, target)
        os.close(descriptor)
    os.chdir(request.folder)
    _take_over(request.arguments, request.env)


def _take_over(arguments: list[str], env: dict[str, str]) -> None:
    os.environ.clear()
    os.environ.update(env)
    sys.argv[1:] = arguments[1:]
    set_module(arguments)


def main() -> None:
    """Import, serve, and in each forked process run the module that its request names."""
    commands = (name for _, name, _ in pkgutil.iter_modules(importlib.import_module(COMMANDS).__path__, f"{COMMANDS}."))
    for name in (*MODULES, *commands):
        importlib.import_module(name)
    gc.collect()
    gc.freeze()  # a collection in a child would copy every page of the parent's objects
    request = fork_for_requests(*sys.argv[1:3])
    if request is None:
        return
    become(request)
    arguments = request.arguments
    if "--workers" in arguments and (worker := fork_workers()) is not None:
        arguments = worker.arguments
        _take_over(arguments, worker.env)
    runpy.run_module(arguments[0], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
