"""The peers' programs: where they are, how they start and end."""

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from bench.process import descendants, end, first_core, pin
from bench.site import Site

BELOW = ("", "bin", "sbin", "usr/bin", "usr/sbin")
"""Subfolders of a given folder that may hold a program."""

START_SECONDS = 30.0
"""Longest time in seconds until a program is ready."""

ONE_THREAD = ("env", "GOMAXPROCS=1")
"""Runs a Go program with one thread for its code, because it has one core as every measured server."""


class Worker(NamedTuple):
    """A process that a peer started itself."""

    pid: int


class Missing(Exception):
    """A program of the peer was not found. The text says which."""


class Programs:
    """Finds programs in the given folders, then on PATH."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self._folders = folders

    def program(self, name: str) -> str:
        """Return the path of a program. Raises Missing."""
        for folder in self._folders:
            for below in BELOW:
                path = folder / below / name
                if path.is_file() and os.access(path, os.X_OK):
                    return str(path.resolve())
        found = shutil.which(name)
        if found is None:
            raise Missing(f"{name} not found")
        return found

    def file(self, name: str, *system: str) -> str:
        """Return the first file of this name in the given folders, else in the folders ``system``. Raises Missing."""
        for folder in (*self._folders, *map(Path, system)):
            for path in sorted(folder.rglob(name)):
                return str(path.resolve())
        raise Missing(f"{name} not found")


def said(*command: str) -> str:
    """Return what a command prints, on both outputs."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    return done.stdout + done.stderr


@contextmanager
def started(
    site: Site, name: str, command: list[str], port: int, *, cores: set[int] | None = None, ready: str = ""
) -> "Iterator[subprocess.Popen[bytes]]":
    """Start a program on the first core or on ``cores``, wait until it is ready, and end it afterwards.

    It is ready if it accepts connections on ``port`` and its log contains the text ``ready``. Raises RuntimeError
    with the end of its log if it is not ready in time.
    """
    process = site.start(name, command)
    where = first_core() if cores is None else cores
    try:
        pin(process.pid, where)
        _wait(site, name, process, port, ready)
        pin(process.pid, where)  # threads and child processes that it started meanwhile
        yield process
    finally:
        end(process)


def worker_of(process: "subprocess.Popen[bytes]") -> Worker:
    """Return the only child of a process. Raises RuntimeError if there is not exactly one."""
    children = descendants(process.pid)
    if len(children) != 1:
        raise RuntimeError(f"{len(children)} workers instead of one")
    return Worker(children[0])


def _wait(site: Site, name: str, process: "subprocess.Popen[bytes]", port: int, ready: str) -> None:
    logs = [site.folder / f"{name}.{kind}" for kind in ("out", "err")]
    latest = time.monotonic() + START_SECONDS
    while time.monotonic() < latest and process.poll() is None:
        if _accepts(port) and (not ready or any(ready in log.read_text(errors="replace") for log in logs)):
            return
        time.sleep(0.05)
    told = "".join(log.read_text(errors="replace") for log in logs)
    raise RuntimeError(f"{name} did not start: {told[-500:].strip()}")


def _accepts(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True
