"""An older version of the server, taken from the history of the repository."""

import io
import subprocess
import tarfile
from pathlib import Path

import pytest

from tests.end_to_end.server import ROOT

COMMIT = "96997926c9831934d59f0a6ba5294f8526c4ca61"
"""The last commit of the version before. Its servers must work beside those of this version, on one Redis."""


def unpack(folder: Path) -> Path:
    """Write the packages of the older version to ``folder``, and return it as the value of ``PYTHONPATH``.

    The test is skipped if the history has no such commit, as in a shallow clone.
    """
    found = subprocess.run(
        ["git", "archive", COMMIT, "stream_server", "filters"], cwd=ROOT, capture_output=True, check=False
    )
    if found.returncode != 0:
        pytest.skip(f"the history has no commit {COMMIT[:8]}, so there is no older version to upgrade from")
    with tarfile.open(fileobj=io.BytesIO(found.stdout)) as archive:
        archive.extractall(folder, filter="data")
    return folder
