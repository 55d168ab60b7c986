"""The conformance data of twitter-text."""

from functools import cache
from typing import Any

import pytest

from tests.public_data import public_file


@cache
def sections(file: str) -> dict[str, list[dict[str, Any]]]:
    """The cases of a file by section. Skips the test if the data is missing."""
    text = public_file(f"twitter-text/{file}").read_text()
    tests: dict[str, list[dict[str, Any]]] = pytest.importorskip("yaml").safe_load(text)["tests"]
    return tests
