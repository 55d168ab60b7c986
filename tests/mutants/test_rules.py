"""Every mistake in the rule language is seen."""

import pytest

from tests.mutants.checkout import Checkout, asserted
from tests.mutants.mutant import MUTANTS as ALL
from tests.mutants.mutant import Mutant

MUTANTS = [mutant for mutant in ALL if mutant.path.startswith("filters/rules/")]


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_mistake_is_seen(checkout: Checkout, mutant: Mutant) -> None:
    """By the tests that say they are there for it, which pass without it."""
    with checkout.broken(mutant):
        run = checkout.run(mutant.killers)
    assert asserted(run), run.stdout + run.stderr
