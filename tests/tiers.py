"""Selects those of many cases that are in the first tier. The others have the mark ``extended``."""

from collections.abc import Callable, Iterable
from typing import TypeVar

import pytest
from _pytest.mark.structures import ParameterSet
from hypothesis import settings

T = TypeVar("T")

QUICK = "quick"
"""The profile of Hypothesis under which the first tier runs, by which tests know that they have little time."""


def sample(values: Iterable[T], drawn: Callable[[T], bool]) -> list[ParameterSet]:
    """Return parameters of which only the ``drawn`` ones are in the first tier."""
    return [pytest.param(value, marks=[] if drawn(value) else [pytest.mark.extended]) for value in values]


def quick() -> bool:
    """Whether only the first tier runs, so random tests try fewer cases."""
    return settings.get_current_profile_name() == QUICK
