"""Files of others that some tests read. They are not in this repository, whose licence would not cover them.

``.github/CONTRIBUTING.md`` says where each of them is from, and where to put it. Beside each test that reads one there
is a test with cases of our own, which always runs.
"""

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

VARIABLE = "PUBLIC_TEST_DATA"
"""Names the folder. Its name is no setting of the server: these are kept from the processes of tests."""

FOLDER = Path(os.environ.get(VARIABLE) or ROOT.parent / "shared" / "data")


def public_file(name: str) -> Path:
    """Return the path of a file. Skips the test if it is missing."""
    path = FOLDER / name
    if not path.exists():
        pytest.skip(f"{path} is not there: CONTRIBUTING says where it is from")
    return path
