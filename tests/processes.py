"""Facts about processes that this process did not start."""

import os
import subprocess
from pathlib import Path

from tests.preloaded.identity import HELPER


def state(pid: int) -> str:
    """Return the letter of a process's state: T if it is stopped, Z if it is a zombie. Empty if there is none."""
    if Path("/proc/self/stat").exists():
        try:
            return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return ""
    asked = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return asked.stdout.strip()[:1]


def alive(pid: int) -> bool:
    """Whether the process runs. A zombie does not."""
    return state(pid) not in {"", "Z", "X"}


def arguments(pid: int) -> list[str]:
    """Return the command line of the process, by Linux' /proc. It is empty if the process has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().split("\0")
    except (FileNotFoundError, ProcessLookupError):
        return []


def children(pid: int) -> list[int]:
    """Return the children that run, without the helper of a preloaded supervisor, which is no part of it."""
    if Path("/proc/self/stat").exists():
        return [child for child in _processes() if _parent(child) == pid and alive(child) and not _is_helper(child)]
    asked = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True, check=False)
    return [child for child in map(int, asked.stdout.split()) if alive(child)]


def _is_helper(pid: int) -> bool:
    return HELPER in arguments(pid)[:1]


def _processes() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdecimal()]


def _parent(pid: int) -> int | None:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except (FileNotFoundError, ProcessLookupError):
        return None


def cpu_seconds(pid: int) -> float:
    """Return the processor time of the process, all threads together, by Linux' /proc."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def listening(port: int) -> int:
    """Return the number of sockets that listen on this IPv4 port, by Linux' /proc: one per worker."""
    rows = [row.split() for row in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return sum(row[1].endswith(f":{port:04X}") and row[3] == "0A" for row in rows)
