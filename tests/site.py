"""The documentation as a site, as `make site` builds it, from the pages in any folder."""

import subprocess
import sys
from pathlib import Path

from tests.needed import need_index
from tests.program import ROOT

BUILD_SECONDS = 500
"""The first build installs Sphinx, and an index may be slow."""


def build(target: Path, source: Path) -> "subprocess.CompletedProcess[str]":
    """Build the site of the pages in ``source`` into ``target``."""
    command = (sys.executable, ROOT / ".ci" / "docs_site.py", target, source)
    built = subprocess.run(command, capture_output=True, text=True, timeout=BUILD_SECONDS, check=False)
    if not (ROOT / ".venv" / "sphinx" / ".stamp").exists():
        need_index()
    return built
