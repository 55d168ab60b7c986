"""The first lines of the README, as they stand there, in a clone: they build the package, install it and serve."""

import shutil
from pathlib import Path

import pytest

from tests.docs_examples import blocks
from tests.packages.built import copy_checkout
from tests.packages.machines import SYSTEM_PATH, VERSIONS, Machine
from tests.packages.test_install import check
from tests.packages.walk import walk
from tests.program import ROOT

pytestmark = [pytest.mark.extended, pytest.mark.usefixtures("index"), pytest.mark.timeout(1800)]


def with_python3(machine: Machine) -> Machine:
    """Let ``python3`` be the Python of the machine, as on a fresh one."""
    if machine.is_fresh:
        return machine
    programs = machine.folder / "programs"
    programs.mkdir()
    (programs / "python3").write_text(f'#!/bin/sh\nexec {machine.python} "$@"\n')
    (programs / "python3").chmod(0o755)
    return machine._replace(path=f"{programs}:{SYSTEM_PATH}")


@pytest.mark.parametrize(
    "fresh", [VERSIONS[0], pytest.param(VERSIONS[-1], marks=pytest.mark.nightly)], indirect=True
)
def test_the_lines_of_the_readme_lead_to_a_server(fresh: Machine, tmp_path: Path) -> None:
    lines = next(blocks(ROOT / "README.md")).text.splitlines()
    assert lines[-1] == "stream-server serve --demo"
    clone = Path(shutil.copytree(copy_checkout(tmp_path / "clone"), fresh.folder / "clone"))
    machine = with_python3(fresh)
    machine.done("/bin/sh", "-c", "\n".join(["set -e", *lines[:-1]]), cwd=clone)
    programs = machine.folder / "stream" / "bin"
    check(walk(machine, programs / "stream-server", "serve", "--demo", "--port", "0", client=programs))
