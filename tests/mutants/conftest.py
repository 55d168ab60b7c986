"""One healthy copy for all mutants of a file."""

import pytest

from tests.mutants.checkout import Checkout


@pytest.fixture(scope="module")
def checkout(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """A copy in which all tests pass that have to fail where a mutant of the asking module (``MUTANTS``) is in it."""
    made = Checkout(tmp_path_factory.mktemp("checkout"))
    run = made.run(sorted({killer for mutant in request.module.MUTANTS for killer in mutant.killers}), compiled=True)
    assert run.returncode == 0, run.stdout + run.stderr
    return made
