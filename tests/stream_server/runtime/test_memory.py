"""The memory that a process may use, by the files in which the kernel tells it."""

from collections.abc import Callable
from pathlib import Path

import pytest

from stream_server.runtime.memory import total_memory_bytes

GIB = 2**30
UNLIMITED_V1 = "9223372036854771712"
"""What version 1 shows without a limit: the greatest number of whole pages."""

Machine = Callable[[str, dict[str, str]], int]


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """Return a function that gives the memory on a machine of 64 GiB with these groups and files of limits."""
    monkeypatch.setattr("os.sysconf", {"SC_PHYS_PAGES": 16 * 2**20, "SC_PAGE_SIZE": 4096}.__getitem__)

    def measure(groups: str, limits: dict[str, str]) -> int:
        (tmp_path / "cgroup").write_text(groups)
        for name, limit in limits.items():
            file = tmp_path / "fs" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(f"{limit}\n")
        return total_memory_bytes(tmp_path / "cgroup", tmp_path / "fs")

    return measure


SERVICE = "system.slice/stream-server.service"
V1 = f"9:name=systemd:/{SERVICE}\n4:memory:/{SERVICE}\n3:cpu,cpuacct:/elsewhere\n"
DOCKER = "4:memory:/docker/0123abcd\n0::/docker/0123abcd\n"


@pytest.mark.parametrize(
    ("groups", "limits", "total"),
    [
        ("0::/\n", {}, 64 * GIB),
        ("", {"memory.max": str(2 * GIB)}, 2 * GIB),
        ("0::/\n", {"memory.max": str(2 * GIB)}, 2 * GIB),
        (f"0::/{SERVICE}\n", {f"{SERVICE}/memory.max": str(2 * GIB)}, 2 * GIB),
        (f"0::/{SERVICE}\n", {f"{SERVICE}/memory.max": "max", "system.slice/memory.max": str(3 * GIB)}, 3 * GIB),
        (f"0::/{SERVICE}\n", {f"{SERVICE}/memory.max": str(GIB), "system.slice/memory.max": str(3 * GIB)}, GIB),
        (f"0::/{SERVICE}\n", {f"{SERVICE}/memory.max": "max"}, 64 * GIB),
        (f"0::/{SERVICE}\n", {"user.slice/memory.max": str(GIB)}, 64 * GIB),
        (V1, {f"memory/{SERVICE}/memory.limit_in_bytes": str(5 * GIB)}, 5 * GIB),
        (V1, {f"memory/{SERVICE}/memory.limit_in_bytes": UNLIMITED_V1, "memory/memory.limit_in_bytes": "7"}, 7),
        (V1, {"memory/elsewhere/memory.limit_in_bytes": "7"}, 64 * GIB),
        (DOCKER, {"memory/memory.limit_in_bytes": str(GIB)}, GIB),
        (DOCKER, {"memory.max": str(GIB)}, GIB),
    ],
)
def test_the_least_limit_of_all_groups_around_the_process_counts(
    machine: Machine, groups: str, limits: dict[str, str], total: int
) -> None:
    assert machine(groups, limits) == total


def test_without_groups_the_machine_counts(tmp_path: Path) -> None:
    assert total_memory_bytes(tmp_path / "none", tmp_path / "none") > 0
