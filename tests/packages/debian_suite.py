"""Runs `make test` in a clone on a fresh Debian with its own Python.

For Debian 12: `python -m tests.packages.debian_suite bookworm`.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

from tests.end_to_end.server import ROOT
from tests.packages.built import copy_checkout
from tests.packages.machines import Machine, fresh_debian

LONGEST_SECONDS = 3600

JOBS = 2
"""Tests at the same time. `.ci/run` runs the suite on two Debians, and all tests, at the same time."""

ELSEWHERE = ("tests/architecture", "tests/mutants")
"""Tests that only read the repository, which is the same on each machine. They run with all tests."""


def main(suite: str) -> int:
    """Return the exit code of `make test` on a Debian that `.ci/root.sh` has made. Its output goes where ours does."""
    root = fresh_debian(suite)
    if root is None:
        sys.stderr.write(f"no Debian {suite}: as root, `sh .ci/root.sh {suite}` makes it with debootstrap\n")
        return 1
    left_out = " ".join(f"--ignore={folder}" for folder in ELSEWHERE)
    with tempfile.TemporaryDirectory(prefix="sst-", dir=root / "tmp") as folder:
        machine = Machine(Path(folder), "python3", root)
        clone = machine.folder / "clone"
        subprocess.run(["git", "clone", "--quiet", ROOT, clone], check=True)
        copy_checkout(clone)  # with what is not committed yet
        return subprocess.run(
            machine.command("make", "test", f"JOBS={JOBS}", f"ARGS={left_out}", cwd=clone), env=machine.environ,
            stdin=subprocess.DEVNULL, check=False, timeout=LONGEST_SECONDS,
        ).returncode  # fmt: skip


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
