"""A clone on a machine with a Python, make and nothing else: the first way in."""

import shutil
from pathlib import Path

import pytest

from tests.packages.built import copy_checkout
from tests.packages.machines import Machine
from tests.packages.walk import WORD, walk

pytestmark = [pytest.mark.extended, pytest.mark.usefixtures("index"), pytest.mark.timeout(400)]


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy_checkout(tmp_path_factory.mktemp("checkout"))


def test_make_leads_to_the_first_stream_and_runs_tests(fresh: Machine, checkout: Path) -> None:
    clone = Path(shutil.copytree(checkout, fresh.folder / "clone"))
    made = f"PYTHON={fresh.python}"
    walked = walk(fresh, "make", "run", made, "ARGS=--port 0", client=clone / ".venv" / "bin", cwd=clone)
    assert walked.heard == f"ada a first {WORD}\n"
    assert " passed in " in fresh.done("make", "test", made, "JOBS=0", "ARGS=tests/filters/test_sample.py", cwd=clone)
