"""The other commit of a comparison."""

import subprocess
import sys

import pytest

from bench.against import checkout
from bench.site import ROOT


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="the checkout has no history")
def test_a_commit_is_copied_and_removed() -> None:
    """The copy of this commit has the same libraries, so it runs in the same environment."""
    with checkout("HEAD") as other:
        assert (other.folder / "stream_server" / "__init__.py").exists()
        assert other.name
        assert other.python == sys.executable or (other.folder / ".venv").exists()
    assert not other.folder.exists()


def test_an_unknown_commit_is_an_error() -> None:
    """Nothing is measured then."""
    with pytest.raises(subprocess.CalledProcessError), checkout("no-such-commit"):
        pass
