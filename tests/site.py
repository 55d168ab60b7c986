"""The documentation as a site, as `make site` builds it, from a copy of the pages."""

import shutil
import subprocess
import sys
from pathlib import Path

from tests.program import ROOT

BUILD_SECONDS = 300
"""The first build installs Sphinx, and an index may be slow."""


def sources(folder: Path) -> None:
    """Copy what git would clone into ``folder``, with the changes that are not committed yet."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).exists():  # else it is deleted, but not yet for git
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)


def build(target: Path, source: Path) -> "subprocess.CompletedProcess[str]":
    """Build the site of the pages in ``source`` into ``target``."""
    command = (sys.executable, ROOT / ".ci" / "docs_site.py", target, source)
    return subprocess.run(command, capture_output=True, text=True, timeout=BUILD_SECONDS, check=False)
