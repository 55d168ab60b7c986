"""Looking at processes that are not one's own children."""

import os
import subprocess
from pathlib import Path


def alive(pid: int) -> bool:
    """Whether the process runs; a zombie is dead, whoever still has to collect it."""
    stat = Path(f"/proc/{pid}/stat")
    if Path("/proc/self/stat").exists():
        try:
            state = stat.read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return False
    else:
        asked = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False)
        state = asked.stdout
    return state.strip()[:1] not in {"", "Z", "X"}


def children(pid: int) -> list[int]:
    """The ids of the processes that it has started and that run."""
    asked = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True, check=False)
    return [child for child in map(int, asked.stdout.split()) if alive(child)]


def cpu_seconds(pid: int) -> float:
    """The processor time that the process has used itself, all its threads together; by Linux' /proc."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def listening(port: int) -> int:
    """How many sockets listen on this TCP port of IPv4: one a worker; by Linux' /proc."""
    rows = [row.split() for row in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return sum(row[1].endswith(f":{port:04X}") and row[3] == "0A" for row in rows)
