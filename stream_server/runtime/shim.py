"""The process between a server and its embedded Redis. It makes sure that Redis never outlives the server.

The shim takes the lock of the data folder, starts ``redis-server`` with the lock's descriptor, and ends Redis when its
standard input, a pipe from the server, reaches its end. The kernel closes that pipe however the server died, even at
``kill -9``. On Linux the kernel kills Redis when the shim dies, so killing server and shim leaves no process. The lock
belongs to the open file, which Redis inherits, so the lock is held as long as Redis runs.

The server runs this file by its path with ``-I -S``. It imports only the standard library, because its start-up time is
part of the server's. Arguments: the lock file, the log file of Redis, a folder to remove at the end, the command of
Redis.

The shim writes lines to standard output: ``locked``, ``started PID``, ``exit CODE``, or ``busy PID`` and ``failed
WHY``. Between ``locked`` and ``started`` it waits for the line ``go``. Meanwhile the server checks the folder, which no
other process can change because of the lock.
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
"""Seconds to wait for the lock. The Redis of a server that was just killed needs a moment to end."""

STOP_GRACE_SECONDS = 2.0
"""Seconds that Redis has to end after SIGTERM before SIGKILL.

SIGKILL loses no acknowledged write, and the whole server must stop within five seconds.
"""

PRIVATE_FOLDER_PREFIX = "stream-server-"
"""Prefix of the names of the private temporary folders."""

PR_SET_PDEATHSIG = 1
"""Number of the prctl(2) option that sets the signal sent when the parent dies."""


class ShimCommand(Enum):
    """A command to the shim."""

    GO = "go"
    END = "end"
    NOTHING = "nothing"


class CommandChannel:
    """Reads the server's pipe and the process's signals in one place, without a race between them."""

    def __init__(self) -> None:
        self._wake, write = os.pipe()
        os.set_blocking(self._wake, False)
        os.set_blocking(write, False)
        signal.set_wakeup_fd(write)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD):
            # A signal is written to the wake-up pipe only if it has a handler; the byte in the pipe is its number.
            signal.signal(number, lambda _number, _frame: None)

    def receive(self, seconds: float | None) -> ShimCommand:
        """Return the next command; NOTHING after ``seconds`` (None: no limit) or when a child process changed state."""
        ready, _, _ = select.select([0, self._wake], [], [], seconds)
        if self._wake in ready and {signal.SIGTERM, signal.SIGINT} & set(os.read(self._wake, 512)):
            return ShimCommand.END
        if 0 not in ready:
            return ShimCommand.NOTHING
        return ShimCommand.GO if os.read(0, 512) else ShimCommand.END


def send_line(line: str) -> None:
    """Send one line to the server; ignore errors, because the pipe on standard input reports a dead server."""
    with suppress(OSError):
        os.write(1, f"{line}\n".encode())


def take_lock(lock: int, commands: CommandChannel) -> bool:
    """Wait up to :data:`LOCK_SECONDS` for the lock; return whether it was taken before a command to end arrived."""
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
    """Return the function by which the child process asks the kernel to kill it when the shim dies.

    None if not on Linux.

    The signal is SIGKILL, because a stopped or busy Redis would survive SIGTERM. The kernel already has every write
    that Redis acknowledged, and the disk has it with ``appendfsync always``.
    """
    if sys.platform != "linux":
        return None
    libc, shim = ctypes.CDLL(None), os.getpid()

    def prepare() -> None:
        """Run in the child before it becomes Redis."""
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != shim:  # the shim died before prctl, so the kernel never sends the signal
            os._exit(1)

    return prepare


def spawn(command: list[str], log: str, lock: int) -> subprocess.Popen[bytes]:
    """Start Redis with both outputs appended to ``log``; raises OSError if the command cannot run."""
    with open(log, "ab", opener=_private) as output:
        return subprocess.Popen(  # noqa: S603 - the server's own command
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            pass_fds=(lock,),
            preexec_fn=die_with_parent(),  # noqa: PLW1509 - the shim has one thread, so the child may run Python
        )


def wait_for_exit(redis: subprocess.Popen[bytes], commands: CommandChannel) -> int:
    """Wait until Redis ends, or end it on command; return its exit code, negative for a signal."""
    while redis.poll() is None:
        if commands.receive(None) is ShimCommand.END:
            return terminate(redis)
    return redis.returncode


def terminate(redis: subprocess.Popen[bytes]) -> int:
    """Send SIGTERM, and SIGKILL after :data:`STOP_GRACE_SECONDS`; return the exit code of Redis."""
    redis.terminate()
    try:
        return redis.wait(STOP_GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        redis.kill()
        return redis.wait()


def read_lock_owner(lock: int) -> tuple[str, str]:
    """Return what the last holder wrote into the lock file: the pid of its Redis and its private folder.

    Empty if nothing.
    """
    pid, _, scratch = os.fsdecode(os.pread(lock, 4096, 0)).partition(" ")
    return pid, scratch


def remove_leftover_folder(scratch: str) -> None:
    """Remove the private folder of a server that was killed together with its shim; do nothing for any other folder."""
    if scratch.rpartition("/")[2].startswith(PRIVATE_FOLDER_PREFIX):
        shutil.rmtree(scratch, ignore_errors=True)


def run_shim(lock_file: str, log: str, scratch: str, command: list[str]) -> int:
    """Take the lock, wait for ``go``, start Redis and wait for its end; return 0 if Redis ran, else 1."""
    commands = CommandChannel()
    lock = os.open(lock_file, os.O_RDWR | os.O_CREAT, 0o600)
    if not take_lock(lock, commands):
        send_line(f"busy {read_lock_owner(lock)[0]}")
        return 1
    remove_leftover_folder(read_lock_owner(lock)[1])
    send_line("locked")
    if commands.receive(None) is not ShimCommand.GO:
        return 1
    redis = spawn(command, log, lock)
    os.ftruncate(lock, 0)
    os.pwrite(lock, os.fsencode(f"{redis.pid} {scratch}"), 0)
    send_line(f"started {redis.pid}")
    send_line(f"exit {wait_for_exit(redis, commands)}")
    return 0


def main(arguments: list[str]) -> int:
    """Run the shim until Redis ends, then remove the private folder with the socket; return the exit code."""
    lock_file, log, scratch, *command = arguments
    try:
        return run_shim(lock_file, log, scratch, command)
    except OSError as error:
        send_line(f"failed {error.strerror}: {error.filename or command[0]}")
        return 1
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _private(path: str, flags: int) -> int:
    """Open a file that only its owner can read; used as the ``opener`` of ``open``."""
    return os.open(path, flags, 0o600)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
