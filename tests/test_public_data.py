"""Files of others are read from the folder that a variable names, also where several processes share the tests."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.public_data import ROOT, VARIABLE
from tests.waiting import PATIENCE

TEST = "tests/stream_server/events/test_language.py::test_the_languages_of_real_posts"


@pytest.mark.extended
@pytest.mark.parametrize("workers", ["0", "1"])
def test_a_variable_names_the_folder(tmp_path: Path, workers: str) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "-n", workers, "-p", "no:cacheprovider", TEST], cwd=ROOT,
        env=os.environ | {VARIABLE: str(tmp_path)}, capture_output=True, text=True, check=False, timeout=2 * PATIENCE,
    )  # fmt: skip
    assert f"{tmp_path}/tweets.jsonl is not there" in ended.stdout, ended.stdout + ended.stderr
