"""Every mistake in the rule language is seen."""

import pytest

from tests.mutants.checkout import Checkout, asserted
from tests.mutants.mutant import RULES, Mutant

MUTANTS = RULES


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_mistake_is_seen(checkout: Checkout, mutant: Mutant) -> None:
    """By the tests that say they are there for it, which pass without it."""
    with checkout.broken(mutant):
        run = checkout.run(mutant.killers)
    assert asserted(run), run.stdout + run.stderr
