"""Tests detect every mutant in the delivery from the log to the clients."""

import pytest

from tests.mutants.checkout import Checkout
from tests.mutants.mutant import DELIVERY, Mutant, each

SAMPLE = {"no_read_after_subscribing", "rollback_without_gap"}
"""Mutants of the first tier."""


@each(DELIVERY, SAMPLE)
def test_a_mutant_is_detected(checkout: Checkout, mutant: Mutant) -> None:
    with checkout.broken(mutant):
        run = checkout.run(mutant.killers)
    assert run.asserted, run.said


def test_the_mutants_cover_the_delivery() -> None:
    assert len(DELIVERY) >= 10
    assert len({mutant.path for mutant in DELIVERY}) >= 6


@pytest.mark.extended
def test_the_tests_pass_without_a_mutant(checkout: Checkout) -> None:
    """Those of the sample: the suite runs all of them, and this run differs from it by the copy alone."""
    run = checkout.run(sorted({killer for mutant in DELIVERY for killer in mutant.killers if mutant.name in SAMPLE}))
    assert run.code == 0, run.said
