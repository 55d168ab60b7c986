"""Every mistake on the way from the log to the clients is seen."""

import pytest

from tests.mutants.checkout import Checkout, asserted
from tests.mutants.mutant import DELIVERY, Mutant

MUTANTS = DELIVERY


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_mistake_is_seen(checkout: Checkout, mutant: Mutant) -> None:
    """By the tests that say they are there for it, which pass without it."""
    with checkout.broken(mutant):
        run = checkout.run(mutant.killers)
    assert asserted(run), run.stdout + run.stderr


def test_each_rule_of_delivery_is_broken_once() -> None:
    """In the feed, the log and its reader, and in the hub: reading on, going live, refusing, telling."""
    assert len(MUTANTS) >= 10
    assert len({mutant.path for mutant in MUTANTS}) >= 6
