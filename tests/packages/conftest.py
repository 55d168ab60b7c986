"""The packages of this checkout, built once for all workers of a run, and the machines on which they are installed."""

from collections.abc import Iterator

import pytest

from tests.needed import need_index
from tests.packages.built import Built, build_once
from tests.packages.machines import DEBIANS, VERSIONS, Machine, machine
from tests.tiers import sample


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    return build_once(tmp_path_factory)


@pytest.fixture
def index() -> None:
    """The package index."""
    need_index()


@pytest.fixture(params=sample(VERSIONS, DEBIANS.__contains__, lambda _: False))
def fresh(request: pytest.FixtureRequest) -> Iterator[Machine]:
    """An empty folder, and a Python of a Debian; with ``--full``, each supported Python."""
    with machine(request.param) as made:
        yield made
