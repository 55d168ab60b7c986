"""The memory of this machine, or of the container in which this process runs."""

import os
from contextlib import suppress
from pathlib import Path

CGROUP_FILES = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))
"""Files with the limit of a container (cgroup v2 and v1) in bytes. Without a limit: a word, or a huge number."""


def total_bytes() -> int:
    """Return the memory that this process and its children may use together, in bytes."""
    found = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    for file in CGROUP_FILES:
        with suppress(OSError, ValueError):
            found.append(int(file.read_text()))
    return min(found)
