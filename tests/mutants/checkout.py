"""A copy of the source and its tests, in which tests apply mutants."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, Self

from tests.mutants.mutant import Mutant
from tests.waiting import HURRY

ROOT = Path(__file__).parents[2]

_ASSERTED = re.compile(r"^FAILED \S.* - (?:AssertionError\b|assert\b|Failed: )", re.MULTILINE)

LONG_AGO = 1
"""The time of change of a mutated file: older than any bytecode of the original file."""


class Run(NamedTuple):
    code: int
    said: str

    @property
    def asserted(self) -> bool:
        """Whether an assertion of a test failed. An import error does not count."""
        return self.code == 1 and _ASSERTED.search(self.said) is not None


class Checkout:
    """A copy of the packages and tests, and a pytest that imports from the copy."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._variables: dict[str, str] = {}
        shutil.copy2(ROOT / "pyproject.toml", folder)
        for name in ("filters", "stream_server", "tests"):
            shutil.copytree(ROOT / name, folder / name)
        # A mistake must leave no bytecode behind, which would be taken for that of the mended file.
        env = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
        env |= {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "COLUMNS": "500", "PYTHONDONTWRITEBYTECODE": "1"}
        command = [sys.executable, "-P", str(ROOT / "tests" / "mutants" / "runner.py")]
        self._runner = subprocess.Popen(
            command, cwd=folder, env=env, encoding="utf-8", stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._runner.communicate()

    @contextmanager
    def broken(self, mutant: Mutant) -> Iterator[None]:
        """Put the mistake of a mutant into the copy for the duration of the block."""
        path = self._folder / mutant.path
        wrong = mutant.applied(path.read_text(encoding="utf-8"))
        healthy = path.rename(path.with_suffix(".healthy"))
        self._variables = {HURRY: "10"}
        path.write_text(wrong, encoding="utf-8")
        os.utime(path, (LONG_AGO, LONG_AGO))
        try:
            yield
        finally:
            self._variables = {}
            healthy.replace(path)

    def run(self, tests: Collection[str]) -> Run:
        """Run these tests until the first failure."""
        assert self._runner.stdin is not None
        assert self._runner.stdout is not None
        self._runner.stdin.write(json.dumps([[*tests], self._variables]) + "\n")
        self._runner.stdin.flush()
        return Run(*json.loads(self._runner.stdout.readline()))
