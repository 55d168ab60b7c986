"""The resources of this process: memory, CPU time and open files, from ``/proc`` (proc(5)) if there is one."""

import os
import resource
import sys
import time
from pathlib import Path
from typing import NamedTuple


class ProcessUsage(NamedTuple):
    """The use of resources of this process.

    Attributes:
        memory_bytes: Resident memory. Without ``/proc``, the most that the process ever had.
        cpu_seconds: Processor time of all threads since the start of the process.
        open_files: Number of open file descriptors; 0 if unknown.
        max_files: Limit of open file descriptors.
    """

    memory_bytes: int
    cpu_seconds: float
    open_files: int
    max_files: int


def read_usage() -> ProcessUsage:
    """Return the present use of resources of this process. It takes some tenths of a millisecond."""
    return ProcessUsage(
        _memory_bytes(), time.process_time(), _open_files(), resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    )


def _memory_bytes() -> int:
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most if sys.platform == "darwin" else most * 1024


def _open_files() -> int:
    try:
        return len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - a list of names; paths of 10,000 files would be slow
    except OSError:
        return 0
