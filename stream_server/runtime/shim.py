"""The process between a server and its embedded Redis. It makes sure that Redis never outlives the server.

The shim takes the lock of the data folder, starts Redis with the lock's descriptor, and ends Redis when its
standard input, a pipe from the server, reaches its end. The kernel closes that pipe however the server died, even at
``kill -9``. On Linux the kernel kills Redis when the shim dies, so killing server and shim leaves no process. The lock
belongs to the open file, which Redis inherits, so the lock is held as long as Redis runs.

The server runs this file by its path with ``-I -S``. It imports only the standard library, because its start-up time is
part of the server's. Arguments: the lock file, the log file of Redis, a folder to remove at the end, the command of
Redis.

The shim writes lines to standard output: ``locked``, ``started PID`` and ``exit CODE`` of Redis; or ``busy PID`` if the
Redis of another server holds the lock; or ``failed WHY``. After ``locked`` it waits for the line ``go``. Meanwhile the
server checks the folder, which no other process can change because of the lock.
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
"""Seconds that Redis has to end after SIGTERM before SIGKILL, which loses no acknowledged write."""

PR_SET_PDEATHSIG = 1


class ShimCommand(Enum):
    """A command to the shim, from the server's pipe or a signal: start Redis, stop Redis, or (NOTHING) no command."""

    GO = "go"
    END = "end"
    NOTHING = "nothing"


class CommandChannel:
    """Receives commands from the server's pipe and from signals. Keeps a signal that arrives before :meth:`receive`."""

    def __init__(self) -> None:
        self._wake, write = os.pipe()
        os.set_blocking(self._wake, False)
        os.set_blocking(write, False)
        signal.set_wakeup_fd(write)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD):
            # A signal is written to the wake-up pipe only if it has a handler; the byte in the pipe is its number.
            signal.signal(number, lambda _number, _frame: None)

    def receive(self, seconds: float | None) -> ShimCommand:
        """Wait for a command from the server or by signal. Return NOTHING after ``seconds``, or if Redis ends."""
        ready, _, _ = select.select([0, self._wake], [], [], seconds)
        if self._wake in ready and {signal.SIGTERM, signal.SIGINT} & set(os.read(self._wake, 512)):
            return ShimCommand.END
        if 0 not in ready:
            return ShimCommand.NOTHING
        return ShimCommand.GO if os.read(0, 512) else ShimCommand.END


def send_line(line: str) -> None:
    """Send one line to the server. Ignore errors: if the server died, the end of its pipe makes the shim stop."""
    with suppress(OSError):
        os.write(1, f"{line}\n".encode())


def take_lock(lock: int, commands: CommandChannel) -> bool:
    """Lock the data folder. Return False if :data:`LOCK_SECONDS` pass first, or if the command END arrives."""
    end = time.monotonic() + LOCK_SECONDS
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > end or commands.receive(0.02) is ShimCommand.END:
                return False
        else:
            return True


def die_with_parent(number: signal.Signals = signal.SIGKILL) -> Callable[[], None] | None:
    """Return a ``preexec_fn`` for Redis: the kernel then kills Redis when the shim dies. Return None if not on Linux.

    The signal is SIGKILL, because a stopped or busy Redis would survive SIGTERM. No acknowledged write is lost. Another
    ``number`` is for children that must end children of their own.
    """
    if sys.platform != "linux":
        return None
    libc, shim = ctypes.CDLL(None), os.getpid()

    def prepare() -> None:
        libc.prctl(PR_SET_PDEATHSIG, number)
        if os.getppid() != shim:  # the shim died before prctl, so the kernel never sends the signal
            os._exit(1)

    return prepare


def spawn(command: list[str], log: str, lock: int) -> subprocess.Popen[bytes]:
    """Start Redis, which inherits the descriptor ``lock``; append its output to the file ``log``. Raises OSError.

    Other users may not read the files that Redis makes, because they hold e-mails and password hashes.
    """
    with open(log, "ab", opener=lambda path, flags: os.open(path, flags, 0o600)) as output:
        return subprocess.Popen(  # noqa: S603 - the server's own command
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, pass_fds=(lock,),
            umask=0o077, preexec_fn=die_with_parent(),  # noqa: PLW1509 - the shim has one thread, so the child may run Python
        )  # fmt: skip


def wait_for_exit(redis: subprocess.Popen[bytes], commands: CommandChannel) -> int:
    """Wait until Redis ends, or stop it if END arrives. Return its exit code, or minus the signal that killed it."""
    while redis.poll() is None:
        if commands.receive(None) is ShimCommand.END:
            return terminate(redis)
    return redis.returncode


def terminate(redis: subprocess.Popen[bytes]) -> int:
    """Stop Redis with SIGTERM, or with SIGKILL after :data:`STOP_GRACE_SECONDS`. Return its exit code."""
    redis.terminate()
    try:
        return redis.wait(STOP_GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        redis.kill()
        return redis.wait()


def run_shim(lock_file: str, log: str, command: list[str]) -> int:
    """Lock the data folder, wait for the server's ``go``, then run Redis to its end. Return 0 if Redis ran, else 1."""
    commands = CommandChannel()
    lock = os.open(lock_file, os.O_RDWR | os.O_CREAT, 0o600)
    if not take_lock(lock, commands):
        send_line(f"busy {os.pread(lock, 64, 0).decode()}")
        return 1
    send_line("locked")
    if commands.receive(None) is not ShimCommand.GO:
        return 1
    redis = spawn(command, log, lock)
    os.ftruncate(lock, 0)
    os.pwrite(lock, str(redis.pid).encode(), 0)
    send_line(f"started {redis.pid}")
    send_line(f"exit {wait_for_exit(redis, commands)}")
    return 0


def main(arguments: list[str]) -> int:
    """Run the shim until Redis ends, then remove the temporary folder of Redis' socket. Return the exit code."""
    lock_file, log, scratch, *command = arguments
    try:
        return run_shim(lock_file, log, command)
    except OSError as error:
        send_line(f"failed {error.strerror}: {error.filename or command[0]}")
        return 1
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
