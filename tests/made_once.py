"""Folders that take long to make, and that are made once: for all processes of a run, or for all runs of a machine."""

import fcntl
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "stream-server"
"""Folder of downloads for all checkouts of the machine, as in `.ci/root.sh`. It may be deleted at any time."""


def once(root: Path, name: str, make: Callable[[Path], object]) -> Path:
    """Return the folder ``name`` in ``root``, which ``make`` fills if no process of the machine has done it before."""
    root.mkdir(parents=True, exist_ok=True)
    folder, half = root / name, root / f"{name}.half"
    with (root / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            shutil.rmtree(half, ignore_errors=True)
            half.mkdir()
            make(half)
            half.rename(folder)
    return folder


def shared_folder(factory: pytest.TempPathFactory) -> Path:
    """Return a folder that the processes of this run share."""
    base = factory.getbasetemp()
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
