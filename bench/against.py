"""Puts another commit beside this one, so that both can be measured in one run."""

import filecmp
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from bench.site import ROOT

LOCKS = ("requirements.lock", "requirements-dev.lock")
"""Files that name the libraries of an environment."""


class Checkout(NamedTuple):
    """A commit in a folder of its own, and the Python that runs it."""

    name: str
    folder: Path
    python: str


@contextmanager
def checkout(commit: str) -> Iterator[Checkout]:
    """Copy the commit's files into a temporary folder, and remove it at the end.

    If it has the same locked libraries as this commit, it is run in this environment. Otherwise it gets its own, as
    ``make env`` does. Raises CalledProcessError if git does not know the commit.
    """
    name = _git("rev-parse", "--short", f"{commit}^{{commit}}").decode().strip()
    with tempfile.TemporaryDirectory(prefix="stream-server-base-") as made:
        folder = Path(made)
        subprocess.run(["tar", "-x", "-C", folder], input=_git("archive", name), check=True)
        yield Checkout(name, folder, _python_of(folder))


def _python_of(folder: Path) -> str:
    """Return the Python for a checkout. Both servers start in their own folder, whose modules therefore go first."""
    if all(filecmp.cmp(ROOT / lock, folder / lock, shallow=False) for lock in LOCKS):
        if (folder / "setup.py").exists():  # it compiles the loop over a group's clients
            command = [sys.executable, "setup.py", "--quiet", "build_ext", "--inplace"]
            subprocess.run(command, cwd=folder, check=True, stdout=sys.stderr)
        return sys.executable
    subprocess.run([sys.executable, ".ci/bootstrap.py"], cwd=folder, check=True, stdout=sys.stderr)
    return str(folder / ".venv/bin/python")


def _git(*arguments: str) -> bytes:
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout
