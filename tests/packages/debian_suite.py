"""Runs the first tier in a clone on a fresh Debian with its own Python.

For Debian 12: `python -m tests.packages.debian_suite bookworm`. With `--part` it runs what depends most on the
interpreter and on the machine, and a third of the other files. Debian 12 and 13 run different thirds.
"""

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.end_to_end.server import ROOT
from tests.packages.built import copy_checkout
from tests.packages.machines import Machine, fresh_debian

LONGEST_SECONDS = 3600

JOBS = 2
"""Tests at the same time. `.ci/run` runs the suite on two Debians, and all tests, at the same time."""

ELSEWHERE = ("tests/architecture/", "tests/mutants/")
"""Tests that only read the repository, which is the same on each machine. They run with all tests."""

ON_EACH = (
    "tests/filters/", "tests/packages/", "tests/set_up/", "tests/stream_server/client/", "tests/stream_server/runtime/",
    "tests/stream_server/web/http/", "tests/stream_server/web/websocket/",
)  # fmt: skip
"""Tests of what the interpreter and the machine decide: patterns, processes, sockets, TLS. No part leaves them out."""


def files(suite: str, *, part: bool) -> Iterator[str]:
    """Yield the paths of the files with tests that a Debian runs, relative to the checkout."""
    wanted = 0 if suite == "bookworm" else 1
    paths = sorted(str(path.relative_to(ROOT)) for path in ROOT.glob("tests/**/test_*.py"))
    for number, path in enumerate(each for each in paths if not each.startswith(ELSEWHERE)):
        if not part or path.startswith(ON_EACH) or number % 3 == wanted:
            yield path


def main(suite: str, *options: str) -> int:
    """Return the exit code of `make test` on a Debian that `.ci/root.sh` has made. Its output goes where ours does."""
    root = fresh_debian(suite)
    if root is None:
        sys.stderr.write(f"no Debian {suite}: as root, `sh .ci/root.sh {suite}` makes it with debootstrap\n")
        return 1
    chosen = " ".join(files(suite, part="--part" in options))
    with tempfile.TemporaryDirectory(prefix="sst-", dir=root / "tmp") as folder:
        machine = Machine(Path(folder), "python3", root)
        clone = machine.folder / "clone"
        subprocess.run(["git", "clone", "--quiet", ROOT, clone], check=True)
        copy_checkout(clone)  # with what is not committed yet
        return subprocess.run(
            machine.command("make", "test", f"JOBS={JOBS}", f"ARGS={chosen}", cwd=clone), env=machine.environ,
            stdin=subprocess.DEVNULL, check=False, timeout=LONGEST_SECONDS,
        ).returncode  # fmt: skip


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
