"""Laws that hold for whatever Hypothesis makes up."""

from collections.abc import Callable
from typing import Any

from hypothesis import given, settings
from hypothesis.strategies import SearchStrategy

from tests.tiers import quick

CASES = 150
"""So many cases a law by default, a fifth of them in the first tier; ten thousand with ``--full``."""


def holds(law: Callable[..., None], *made: SearchStrategy[Any], full: bool, cases: int = CASES) -> None:
    """Try ``law`` on many of what the strategies make; raises with the smallest case that breaks it."""
    budget = 10_000 if full else cases // 5 if quick() else cases
    # No deadline: a loaded machine is slow, not wrong.
    settings(max_examples=budget, deadline=None)(given(*made)(law))()
