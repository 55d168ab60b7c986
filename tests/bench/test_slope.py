"""The line through samples, and the decision whether it is flat."""

import random

import pytest

from bench.slope import fit

SECONDS = [float(second) for second in range(600)]


def test_a_straight_line_is_found_exactly() -> None:
    """One unit per second is 3,600 per hour, without an error."""
    slope = fit(SECONDS, [100 + second for second in SECONDS])
    assert slope.per_hour == pytest.approx(3600)
    assert slope.error == pytest.approx(0, abs=1e-6)
    assert slope.rise == pytest.approx(599)
    assert not slope.is_flat()


def test_noise_is_flat_and_a_leak_in_it_is_not() -> None:
    """The same noise is tested with and without a rise of two units per minute."""
    chance = random.Random(3)
    noise = [1000 + chance.gauss(0, 5) for _ in SECONDS]
    assert fit(SECONDS, noise).is_flat()
    assert not fit(SECONDS, [value + second / 30 for value, second in zip(noise, SECONDS, strict=True)]).is_flat()


def test_its_standard_error_is_that_of_the_textbook() -> None:
    """Five points, calculated by hand: the slope is 0.6, its standard error 0.2828."""
    slope = fit([1, 2, 3, 4, 5], [2, 4, 5, 4, 5])
    assert slope.per_hour / 3600 == pytest.approx(0.6)
    assert slope.error / 3600 == pytest.approx(0.28284, abs=1e-4)


def test_a_sure_but_tiny_rise_is_flat() -> None:
    """A rise of a tenth of a percent in the whole time is too small to matter."""
    assert fit(SECONDS, [100_000 + second / 6 for second in SECONDS]).is_flat()
