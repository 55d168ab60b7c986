"""Every mistake on the way from the log to the clients is seen."""

import pytest

from tests.mutants.checkout import Checkout
from tests.mutants.mutant import DELIVERY, Mutant, each

SAMPLE = {"no_read_behind_the_subscription", "gap_not_told"}
"""Those that are made in the first tier."""


@each(DELIVERY, SAMPLE)
def test_a_mistake_is_seen(checkout: Checkout, mutant: Mutant) -> None:
    """By the tests that say they are there for it, which pass without it."""
    with checkout.broken(mutant):
        run = checkout.run(mutant.killers)
    assert run.asserted, run.said


def test_each_rule_of_delivery_is_broken_once() -> None:
    """In the feed, the log and its reader, and in the hub: reading on, going live, refusing, telling."""
    assert len(DELIVERY) >= 10
    assert len({mutant.path for mutant in DELIVERY}) >= 6


@pytest.mark.extended
def test_without_a_mistake_the_tests_pass(checkout: Checkout) -> None:
    """In the copy, where what fails could be the copy's fault."""
    run = checkout.run(sorted({killer for mutant in DELIVERY for killer in mutant.killers}))
    assert run.code == 0, run.said
