"""One copy of the source for all mutants."""

from collections.abc import Iterator

import pytest

from tests.mutants.checkout import Checkout


@pytest.fixture(scope="session")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Checkout]:
    with Checkout(tmp_path_factory.mktemp("checkout")) as made:
        yield made
