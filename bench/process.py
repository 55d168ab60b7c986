"""A child process of the benchmark: its CPU core, its CPU time and its memory."""

import os
import subprocess
import time
from pathlib import Path

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


def first_core() -> set[int]:
    """Return the core of the measured server."""
    return {min(os.sched_getaffinity(0))} if hasattr(os, "sched_getaffinity") else set()


def last_core() -> set[int]:
    """Return the core of everything else. On a machine with one core it is the same."""
    return {max(os.sched_getaffinity(0))} if hasattr(os, "sched_getaffinity") else set()


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
    """Return the user and system time of a process so far. The resolution is one clock tick, usually 10 ms."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_SECOND


def memory_kib(pid: int) -> int:
    """Return anonymous and shared memory of a process in KiB, without the kernel's socket buffers."""
    rows = dict(row.split(":", 1) for row in Path(f"/proc/{pid}/status").read_text().splitlines())
    return sum(int(rows[name].split()[0]) for name in ("RssAnon", "RssShmem"))


def wait_for_line(path: Path, start: str, process: "subprocess.Popen[bytes]", seconds: float = 30.0) -> str:
    """Return the rest of the first line in the file that begins with ``start``.

    Raises RuntimeError if it does not appear.
    """
    end = time.monotonic() + seconds
    while time.monotonic() < end and process.poll() is None:
        for line in path.read_text().splitlines():
            if line.startswith(start):
                return line.removeprefix(start).strip()
        time.sleep(0.02)
    errors = path.with_suffix(".err").read_text()[-2000:]
    raise RuntimeError(f"the process behind {path.name} did not start: {errors}")


def end(process: "subprocess.Popen[bytes]") -> None:
    """Send SIGTERM, and SIGKILL if the process does not end within 10 seconds."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
