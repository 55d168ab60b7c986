"""A child process of the benchmark: its CPU core, its CPU time and its memory."""

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

CPU_CLOCK = 2
"""The kernel's number of the clock that counts scheduled time."""


CORES = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
"""The cores that this program may use. It reads them at its start, because the command later binds itself to one."""


def first_core() -> set[int]:
    """Return the core of the measured server."""
    return set(CORES[:1])


def last_core() -> set[int]:
    """Return the core of everything else. On a machine with one core it is the same."""
    return set(CORES[-1:])


def pin(pid: int, cores: set[int]) -> None:
    """Bind a process, its threads and its descendants to ``cores``, if the system supports it."""
    if not cores:
        return
    for member in (pid, *descendants(pid)):
        for thread in (Path("/proc") / str(member) / "task").iterdir():
            os.sched_setaffinity(int(thread.name), cores)


def descendants(pid: int) -> list[int]:
    """Return the process ids of all descendants."""
    try:
        tasks = list((Path("/proc") / str(pid) / "task").iterdir())
        children = [int(c) for task in tasks for c in (task / "children").read_text().split()]
    except (FileNotFoundError, ProcessLookupError):
        return []
    return children + [other for child in children for other in descendants(child)]


def cpu_seconds(pid: int) -> float:
    """Return the user and system time of a process so far.

    Linux has a clock for each process, with nanoseconds; its id is computed as `clock_getcpuclockid` does.
    """
    return time.clock_gettime((~pid << 3) | CPU_CLOCK)


def tree_seconds(pid: int) -> float:
    """Return the CPU time of a process and of its descendants that run."""
    return sum(map(cpu_seconds, (pid, *descendants(pid))))


def busy_seconds() -> float:
    """Return how long the cores of this machine have worked since its start, all of them together."""
    user, nice, system, _, _, *rest = map(int, Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:8])
    return (user + nice + system + sum(rest)) / os.sysconf("SC_CLK_TCK")


def own_seconds() -> float:
    """Return the CPU time of this process and of all its descendants that have ended."""
    return sum(os.times()[:4])


def memory_kib(pid: int) -> int:
    """Return anonymous and shared memory of a process in KiB, without the kernel's socket buffers."""
    rows = dict(row.split(":", 1) for row in Path(f"/proc/{pid}/status").read_text().splitlines())
    return sum(int(rows[name].split()[0]) for name in ("RssAnon", "RssShmem"))


def wait_for_line(path: Path, start: str, process: "subprocess.Popen[bytes]") -> str:
    """Return the rest of the first line in the file that begins with ``start``.

    Raises RuntimeError if it does not appear.
    """
    end = time.monotonic() + 120
    while time.monotonic() < end and process.poll() is None:
        for line in path.read_text().splitlines():
            if line.startswith(start):
                return line.removeprefix(start).strip()
        time.sleep(0.02)
    errors = path.with_suffix(".err").read_text()[-2000:]
    raise RuntimeError(f"the process behind {path.name} did not start: {errors}")


def free_port() -> int:
    """Return a TCP port of the loopback address that is free now."""
    with socket.create_server(("127.0.0.1", 0)) as asked:
        return int(asked.getsockname()[1])


def end_cleanly() -> None:
    """Let SIGTERM end this program as an exception, so that it ends its child processes and removes its folders."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))


def end(process: "subprocess.Popen[bytes]") -> None:
    """Send SIGTERM, and SIGKILL if the process does not end within 10 seconds."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
