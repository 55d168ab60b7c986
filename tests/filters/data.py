"""The conformance data of twitter-text, beside the checkout or where ``STREAM_SERVER_TEST_DATA`` says."""

import os
from functools import cache
from pathlib import Path
from typing import Any

import pytest

_HERE = Path(__file__).parents[2]
FOLDER = Path(os.environ.get("STREAM_SERVER_TEST_DATA") or _HERE.parent / "shared" / "data") / "twitter-text"


@cache
def sections(file: str) -> dict[str, list[dict[str, Any]]]:
    """The cases of a file by section. Skips the test if the data is missing."""
    if not (FOLDER / file).exists():
        pytest.skip(f"the twitter-text conformance data is not at {FOLDER}")
    yaml = pytest.importorskip("yaml")
    tests: dict[str, list[dict[str, Any]]] = yaml.safe_load((FOLDER / file).read_text())["tests"]
    return tests
