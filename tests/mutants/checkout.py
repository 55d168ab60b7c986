"""A copy of the source and its tests, in which a mistake hurts nobody."""

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

ROOT = Path(__file__).parents[2]

_ASSERTED = re.compile(r"^FAILED \S.* - (?:AssertionError\b|assert\b|Failed: )", re.MULTILINE)

LONG_AGO = 1
"""When a file with a mistake was changed, as Python sees it: no bytecode of the healthy file is that old."""


class Run(NamedTuple):
    """The exit code of pytest and all that it said."""

    code: int
    said: str

    @property
    def asserted(self) -> bool:
        """Whether a test ran to one of its assertions and failed there, and nothing could not even be imported."""
        return self.code == 1 and _ASSERTED.search(self.said) is not None


class Checkout:
    """A folder with the packages and the tests as they are, and a pytest that finds there first what it imports."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
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
        """Meanwhile the mistake is in it."""
        path = self._folder / mutant.path
        wrong = mutant.applied(path.read_text(encoding="utf-8"))
        healthy = path.rename(path.with_suffix(".healthy"))
        path.write_text(wrong, encoding="utf-8")
        os.utime(path, (LONG_AGO, LONG_AGO))
        try:
            yield
        finally:
            healthy.replace(path)

    def run(self, tests: Collection[str]) -> Run:
        """The end of a run of these tests, at the first that fails."""
        assert self._runner.stdin is not None
        assert self._runner.stdout is not None
        self._runner.stdin.write(json.dumps([*tests]) + "\n")
        self._runner.stdin.flush()
        return Run(*json.loads(self._runner.stdout.readline()))
