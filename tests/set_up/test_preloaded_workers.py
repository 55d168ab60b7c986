"""The processes that collect the tests of a run once, for all of its workers."""

import subprocess
import sys
from pathlib import Path

from tests.preloaded.launcher import ROOT

COLLECTS = """
import sys
from tests.preloaded.worker import collect
collect(["-c", "pyproject.toml", *sys.argv[1:]])
print(sorted({getattr(module, "__file__", None) for module in sys.modules.values()} & {*sys.argv[1:]}))
"""


def test_a_module_that_cannot_be_imported_is_imported_again_by_each_worker(tmp_path: Path) -> None:
    """Else its workers would find it half made, and its tests would be missing without a word."""
    whole, broken = tmp_path / "test_whole.py", tmp_path / "test_broken.py"
    whole.write_text("def test_it(): pass\n")
    broken.write_text("import nowhere\n\ndef test_it(): pass\n")
    command = [sys.executable, "-c", COLLECTS, str(broken), str(whole)]
    printed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert printed.strip() == str([str(whole)])
