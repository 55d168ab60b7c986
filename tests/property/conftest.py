"""A Redis to empty, and the budget of property tests: a fifth of the cases, and with ``--full`` 10,000."""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis.strategies import SearchStrategy

from tests.property.laws import Holds
from tests.redis_process import RedisProcess, newest


@pytest.fixture(scope="session")
def holds(full: bool) -> Holds:  # noqa: FBT001 - a fixture
    def check(law: Any, *strategies: SearchStrategy[Any], cases: int = 150) -> None:
        budget = 10_000 if full else cases // 5
        # No deadline: a loaded machine is slow, not wrong.
        settings(max_examples=budget, deadline=None)(given(*strategies)(law))()

    return check


@pytest.fixture(scope="module")
def private_redis() -> Iterator[RedisProcess]:
    """A Redis of this module, which may be emptied."""
    with RedisProcess(newest()) as server:
        yield server
