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


def sample(values: Iterable[T], drawn: Callable[[T], bool]) -> list[ParameterSet]:
    """Return parameters of which only the ``drawn`` ones are in the first tier."""
    return [pytest.param(value, marks=[] if drawn(value) else [pytest.mark.extended]) for value in values]


def seeds(count: int, *, first_tier: int, second_tier: int) -> list[ParameterSet]:
    """Return the seeds of random tests: some for the first tier, some for the second, and all with ``--full``."""
    others = [pytest.param(seed, marks=[pytest.mark.nightly]) for seed in range(second_tier, count)]
    return [*sample(range(second_tier), lambda seed: seed < first_tier), *others]


def each_engine() -> list[ParameterSet]:
    """Return the names of the engines of this machine: the newest in the first tier, and the others."""
    newest, *_ = binaries() or [""]
    return sample(binaries() or [""], lambda engine: engine == newest)


def quick() -> bool:
    """Whether only the first tier runs, so random tests try fewer cases."""
    return settings.get_current_profile_name() == QUICK
