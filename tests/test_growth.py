"""The check of growth tells linear work from quadratic work."""

import re

import pytest

from tests.growth import assert_linear


def test_linear_work_passes_and_quadratic_work_does_not() -> None:
    assert_linear(lambda size: re.search(r"\bx", " " * size), 4_000)
    with pytest.raises(AssertionError, match="CPU seconds by size"):
        assert_linear(lambda size: re.search(r"\s+x", " " * size), 4_000)
