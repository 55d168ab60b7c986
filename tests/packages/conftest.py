"""The packages of this checkout, built once for all workers of a run, and the machines on which they are installed."""

import fcntl
import os
from collections.abc import Iterator

import pytest

from tests.packages.built import Built, copy_checkout, find_built, make_dist
from tests.packages.machines import VERSIONS, Machine, machine


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """The packages, built from a copy of the files of the repository."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    with (shared / "built.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        source = shared / "built"
        if (source / "dist").exists():
            return find_built(source)
        return make_dist(copy_checkout(source))


@pytest.fixture(params=VERSIONS)
def fresh(request: pytest.FixtureRequest) -> Iterator[Machine]:
    """An empty folder, and one of the supported Pythons."""
    with machine(request.param) as made:
        yield made
