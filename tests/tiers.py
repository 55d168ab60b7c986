"""Selects those of many cases that are in the first tier. The others have the mark ``extended``."""

from collections.abc import Callable, Iterable
from typing import TypeVar

import pytest
from _pytest.mark.structures import ParameterSet
from hypothesis import settings

from tests.redis_process import binaries

T = TypeVar("T")

ALL = "all"
"""The profile of Hypothesis under which all tests run. As in the other one, the time of an example is no failure."""

QUICK = "quick"
"""The profile of Hypothesis under which the first tier runs, by which tests know that they have little time."""


def sample(
    values: Iterable[T], first_tier: Callable[[T], bool], second_tier: Callable[[T], bool] = lambda _: True
) -> list[ParameterSet]:
    """Return parameters: some for the first tier, some for the second, and all with ``--full``."""

    def marks(value: T) -> list[pytest.MarkDecorator]:
        if first_tier(value):
            return []
        return [pytest.mark.extended] if second_tier(value) else [pytest.mark.nightly]

    return [pytest.param(value, marks=marks(value)) for value in values]


def seeds(count: int, *, first_tier: int, second_tier: int) -> list[ParameterSet]:
    """Return the seeds of random tests: some for the first tier, some for the second, and all with ``--full``."""
    return sample(range(count), lambda seed: seed < first_tier, lambda seed: seed < second_tier)


def each_engine() -> list[ParameterSet]:
    """Return the names of the engines of this machine: the newest in the first tier, and the others."""
    newest, *_ = binaries() or [""]
    return sample(binaries() or [""], lambda engine: engine == newest)


def quick() -> bool:
    """Whether only the first tier runs, so random tests try fewer cases."""
    return settings.get_current_profile_name() == QUICK
