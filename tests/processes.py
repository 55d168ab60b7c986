"""Looking at processes that are not one's own children."""

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
