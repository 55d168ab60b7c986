"""How much memory this process may use: that of the machine, or less by the limits of its control groups.

Containers, systemd (``MemoryMax=``) and Kubernetes limit a group of processes. Groups are nested, and the least limit
of all groups around the process counts (cgroups(7): ``memory.max`` of version 2, ``memory.limit_in_bytes`` of 1).
"""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path


def total_memory_bytes(groups: Path = Path("/proc/self/cgroup"), hierarchies: Path = Path("/sys/fs/cgroup")) -> int:
    """Return the memory that this process and its children may use together, in bytes.

    The arguments are the places of the kernel's files. ``groups`` lists the groups of the process, one hierarchy a
    line.
    """
    machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return min([machine, *_group_limits(groups, hierarchies)])


def _group_limits(groups: Path, hierarchies: Path) -> Iterator[int]:
    """Yield the limits in bytes. A group without one has a word there (version 2), or a huge number (version 1)."""
    paths = {"": "/", "memory": "/"}
    with suppress(OSError):
        for line in groups.read_text().splitlines():
            _, controllers, path = line.split(":", 2)  # ID:CONTROLLERS:PATH. Version 2 names no controllers.
            paths |= dict.fromkeys(controllers.split(","), path)
    of_version_1 = hierarchies / "memory", "memory.limit_in_bytes", paths["memory"]
    for top, name, path in ((hierarchies, "memory.max", paths[""]), of_version_1):
        group = top / path.lstrip("/")
        # A container may see its own group as the top, and the path as the machine sees it: then only the top exists.
        for folder in (group, *group.parents):
            with suppress(OSError, ValueError):
                yield int((folder / name).read_text())
            if folder == top:
                break
