"""The check of growth tells linear work from quadratic work."""

import re

import pytest

from tests.growth import assert_linear


def test_linear_work_passes_and_cubic_work_does_not() -> None:
    """Cubic work takes eight times as long for twice the size, so a busy machine cannot make it look linear."""
    assert_linear(lambda size: re.search(r"\bx", " " * size), 4_000)
    with pytest.raises(AssertionError, match="CPU seconds by size"):
        assert_linear(lambda size: re.search(r"\s+\s+x", " " * size), 600)
