"""A clone on a machine with a Python, make and nothing else: the first way in."""

import shutil
from pathlib import Path

import pytest

from tests.packages.built import copy_checkout
from tests.packages.machines import VERSIONS, Machine
from tests.packages.walk import WORD, walk

pytestmark = [pytest.mark.extended, pytest.mark.usefixtures("index"), pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy_checkout(tmp_path_factory.mktemp("checkout"))


@pytest.mark.parametrize("fresh", [VERSIONS[0], VERSIONS[-1]], indirect=True)
def test_make_leads_to_the_first_stream_and_runs_tests(fresh: Machine, checkout: Path) -> None:
    """The oldest and the newest Python. The server runs without what the tests use, which then stays."""
    clone = Path(shutil.copytree(checkout, fresh.folder / "clone"))
    made, one_file = f"PYTHON={fresh.python}", "ARGS=tests/filters/test_sample.py"
    walked = walk(fresh, "make", "run", made, "ARGS=--port 0", client=clone / ".venv" / "bin", cwd=clone)
    assert walked.heard == f"ada a first {WORD}\n"
    tester = clone / ".venv" / "bin" / "pytest"
    assert not tester.exists()
    assert " passed in " in fresh.done("make", "test", made, "JOBS=0", one_file, cwd=clone)
    assert tester.exists()
    fresh.done("make", "serving", made, cwd=clone)
    assert tester.exists()
