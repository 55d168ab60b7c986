"""The process between a server and its private Redis, so that Redis never outlives the server.

It takes the data folder's lock, starts ``redis-server`` with the lock's descriptor, and ends it when
the server's pipe (standard input) reaches its end: that happens however the server died, ``kill -9``
included. On Linux the kernel kills Redis when this process dies, so killing both leaves nothing either.
The lock belongs to the open file, which Redis inherits: it is held as long as Redis lives, even alone.

Standard library only and run by file path with ``-I -S``, because its start is part of the server's.
Arguments: the lock file, Redis' log file, a folder to remove at the end, Redis' command.
It says ``locked``, ``started PID``, ``exit CODE``, or ``busy PID`` and ``failed WHY``, a line each, on standard
output, and waits for the line ``go`` between ``locked`` and ``started``, so that the server can look
at the folder while nobody else may change it.
"""

import ctypes
import fcntl
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from enum import Enum

LOCK_SECONDS = 2.0
"""Patience for the lock: the Redis of a server just killed needs a moment to end."""

STOP_GRACE_SECONDS = 2.0
"""Time for Redis to end by itself after SIGTERM, before SIGKILL, which costs nothing that was acknowledged: a server
has five seconds for all of its end."""

PRIVATE_FOLDER_PREFIX = "stream-server-"
"""How the private folders' names begin."""

PR_SET_PDEATHSIG = 1


class ShimCommand(Enum):
    """What the shim can be told."""

    GO = "go"
    END = "end"
    NOTHING = "nothing"


class CommandChannel:
    """The server's pipe and the signals, heard in one place without a race between them."""

    def __init__(self) -> None:
        self._wake, write = os.pipe()
        os.set_blocking(self._wake, False)
        os.set_blocking(write, False)
        signal.set_wakeup_fd(write)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD):
            # A handler must exist for the wake-up to be written; the byte in the pipe says the rest.
            signal.signal(number, lambda _number, _frame: None)

    def receive(self, seconds: float | None) -> ShimCommand:
        """The next order, or NOTHING after ``seconds`` (None: no limit) or when a child changed."""
        ready, _, _ = select.select([0, self._wake], [], [], seconds)
        if self._wake in ready and {signal.SIGTERM, signal.SIGINT} & set(os.read(self._wake, 512)):
            return ShimCommand.END
        if 0 not in ready:
            return ShimCommand.NOTHING
        return ShimCommand.GO if os.read(0, 512) else ShimCommand.END


def send_line(line: str) -> None:
    """One line to the server; a server that is gone is noticed by its pipe, not here."""
    with suppress(OSError):
        os.write(1, f"{line}\n".encode())


def take_lock(lock: int, commands: CommandChannel) -> bool:
    """Whether the lock was had within :data:`LOCK_SECONDS`, and nobody said to end meanwhile."""
    end = time.monotonic() + LOCK_SECONDS
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > end or commands.receive(0.02) is ShimCommand.END:
                return False
        else:
            return True


def die_with_parent() -> Callable[[], None] | None:
    """What the child does before it becomes Redis: ask the kernel to be killed when the shim dies.

    SIGKILL and not SIGTERM, since a stopped or busy Redis would outlive the latter; what it acknowledged is
    in the kernel's hands by then (``appendfsync always``: on the disk). None where there is no such call.
    """
    if sys.platform != "linux":
        return None
    libc, shim = ctypes.CDLL(None), os.getpid()

    def prepare() -> None:
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != shim:  # it died before the call above, which then waits for ever
            os._exit(1)

    return prepare


def spawn(command: list[str], log: str, lock: int) -> subprocess.Popen[bytes]:
    """Start Redis with both its outputs in ``log``; raises OSError if it cannot be executed."""
    with open(log, "ab", opener=_private) as output:
        return subprocess.Popen(  # noqa: S603 - the server's own command
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            pass_fds=(lock,),
            preexec_fn=die_with_parent(),  # noqa: PLW1509 - there is one thread, so the child may run Python
        )


def wait_for_exit(redis: subprocess.Popen[bytes], commands: CommandChannel) -> int:
    """Wait until Redis ends or is to be ended; its exit code, negative for a signal."""
    while redis.poll() is None:
        if commands.receive(None) is ShimCommand.END:
            return terminate(redis)
    return redis.returncode


def terminate(redis: subprocess.Popen[bytes]) -> int:
    """SIGTERM, then SIGKILL after :data:`STOP_GRACE_SECONDS`; its exit code."""
    redis.terminate()
    try:
        return redis.wait(STOP_GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        redis.kill()
        return redis.wait()


def read_lock_owner(lock: int) -> tuple[str, str]:
    """Who wrote the lock file last: the process id of its Redis, and its private folder; empty if nobody did."""
    pid, _, scratch = os.fsdecode(os.pread(lock, 4096, 0)).partition(" ")
    return pid, scratch


def remove_leftover_folder(scratch: str) -> None:
    """Remove the private folder of a server that was killed together with its shim; there is none otherwise."""
    if scratch.rpartition("/")[2].startswith(PRIVATE_FOLDER_PREFIX):
        shutil.rmtree(scratch, ignore_errors=True)


def run_shim(lock_file: str, log: str, scratch: str, command: list[str]) -> int:
    """Lock, wait for the word, start, attend; 0 if Redis was run."""
    orders = CommandChannel()
    lock = os.open(lock_file, os.O_RDWR | os.O_CREAT, 0o600)
    if not take_lock(lock, orders):
        send_line(f"busy {read_lock_owner(lock)[0]}")
        return 1
    remove_leftover_folder(read_lock_owner(lock)[1])
    send_line("locked")
    if orders.receive(None) is not ShimCommand.GO:
        return 1
    redis = spawn(command, log, lock)
    os.ftruncate(lock, 0)
    os.pwrite(lock, os.fsencode(f"{redis.pid} {scratch}"), 0)
    send_line(f"started {redis.pid}")
    send_line(f"exit {wait_for_exit(redis, orders)}")
    return 0


def main(arguments: list[str]) -> int:
    """Run to the end of Redis, then remove the private folder, which holds the socket."""
    lock_file, log, scratch, *command = arguments
    try:
        return run_shim(lock_file, log, scratch, command)
    except OSError as error:
        send_line(f"failed {error.strerror}: {error.filename or command[0]}")
        return 1
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
