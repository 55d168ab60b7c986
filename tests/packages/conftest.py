"""The packages of this checkout, built once for all workers of a run, and the machines on which they are installed."""

from collections.abc import Iterator

import pytest

from tests.made_once import once, shared_folder
from tests.needed import need_index
from tests.packages.built import Built, copy_checkout, find_built, make_dist
from tests.packages.machines import VERSIONS, Machine, machine


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """The packages, built from a copy of the files of the repository."""
    return find_built(once(shared_folder(tmp_path_factory), "built", lambda folder: make_dist(copy_checkout(folder))))


@pytest.fixture
def index() -> None:
    """The package index."""
    need_index()


@pytest.fixture(params=VERSIONS)
def fresh(request: pytest.FixtureRequest) -> Iterator[Machine]:
    """An empty folder, and one of the supported Pythons."""
    with machine(request.param) as made:
        yield made
