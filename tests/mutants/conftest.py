"""One copy for all mutants."""

from collections.abc import Iterator

import pytest

from tests.mutants.checkout import Checkout


@pytest.fixture(scope="session")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Checkout]:
    """A copy in which mistakes are made."""
    with Checkout(tmp_path_factory.mktemp("checkout")) as made:
        yield made
