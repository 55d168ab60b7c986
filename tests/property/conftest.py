"""The budget of property tests: a fifth of the cases in the first tier, half in the second, 10,000 with ``--full``."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis.strategies import SearchStrategy

from tests.property.laws import Holds
from tests.tiers import quick


@pytest.fixture(scope="session")
def holds(full: bool) -> Holds:  # noqa: FBT001 - a fixture
    def check(law: Any, *strategies: SearchStrategy[Any], cases: int = 150) -> None:
        budget = 10_000 if full else cases // 5 if quick() else cases // 2
        # No deadline: a loaded machine is slow, not wrong.
        settings(max_examples=budget, deadline=None)(given(*strategies)(law))()

    return check
