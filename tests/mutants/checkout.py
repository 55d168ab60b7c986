"""A copy of the source and its tests, in which a mistake hurts nobody."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import CompletedProcess

from tests.mutants.mutant import Mutant

ROOT = Path(__file__).parents[2]

# Only the plugins that pyproject.toml has settings for: the others take longer to load than the tests to run.
_PYTEST = [sys.executable, "-m", "pytest", "-x", "-rfE", "--tb=short", "-p", "no:cacheprovider"]
_PYTEST += ["-p", "pytest_asyncio.plugin", "-p", "pytest_timeout"]

_ASSERTED = re.compile(r"^FAILED \S.* - (?:AssertionError\b|assert\b|Failed: )", re.MULTILINE)


class Checkout:
    """A folder with the packages and the tests as they are. A run finds what it imports there first."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        shutil.copy2(ROOT / "pyproject.toml", folder)
        for name in ("filters", "stream_server", "tests"):
            shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))

    @contextmanager
    def broken(self, mutant: Mutant) -> Iterator[None]:
        """Meanwhile the mistake is in it."""
        path = self._folder / mutant.path
        wrong = mutant.applied(path.read_text(encoding="utf-8"))
        healthy = path.rename(path.with_suffix(".healthy"))
        path.write_text(wrong, encoding="utf-8")
        try:
            yield
        finally:
            healthy.replace(path)

    def run(self, tests: Collection[str], *, compiled: bool = False) -> CompletedProcess[str]:
        """The end of a run of these tests, at the first that fails; ``compiled`` keeps bytecode for those that follow.

        A mistake must leave none behind: Python would take it for that of the mended file of the same second and size.
        """
        env = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
        env |= {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "COLUMNS": "500"}
        env |= {} if compiled else {"PYTHONDONTWRITEBYTECODE": "1"}
        return subprocess.run(
            [*_PYTEST, *tests], cwd=self._folder, env=env, capture_output=True, encoding="utf-8", check=False
        )


def asserted(run: CompletedProcess[str]) -> bool:
    """Whether a test ran to one of its assertions and failed there, and nothing could not even be imported."""
    return run.returncode == 1 and _ASSERTED.search(run.stdout) is not None
