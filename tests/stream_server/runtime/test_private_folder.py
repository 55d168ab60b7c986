"""Temporary folders of runs: private, and removed by the next run if their process was killed."""

import os
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from stream_server.runtime.private_folder import PREFIX, PrivateFolder

KEEPER = """
import sys, tempfile
from stream_server.runtime.private_folder import PrivateFolder
tempfile.tempdir = sys.argv[1]
print(PrivateFolder(10).path, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def temporary(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path_factory.mktemp("t")
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def test_only_the_folders_of_killed_processes_are_removed(temporary: Path) -> None:
    """A folder of a running process stays, and so does what only has a similar name."""
    others = [temporary / "stream-server-data", temporary / f"{PREFIX}file", temporary / f"{PREFIX}link"]
    others[0].mkdir()
    others[1].touch()
    others[2].symlink_to(others[0])
    with subprocess.Popen(
        [sys.executable, "-c", KEEPER, str(temporary)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as keeper:
        assert keeper.stdout is not None
        left = Path(keeper.stdout.readline().strip())
        (left / "data").mkdir()
        first = PrivateFolder(10)
        assert stat.S_IMODE(first.path.stat().st_mode) == 0o700
        assert left.exists()
        keeper.kill()
    second = PrivateFolder(10)
    assert not left.exists()
    assert set(temporary.iterdir()) == {*others, first.path, second.path}
    for folder in (first, second):
        folder.remove()
    assert set(temporary.iterdir()) == set(others)


def test_a_second_removal_closes_nothing_else(temporary: Path) -> None:
    folder = PrivateFolder(10)
    folder.remove()
    with (temporary / "file").open("w") as file:
        folder.remove()
        assert os.fstat(file.fileno())


def test_long_folders_give_a_short_path(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    long = temporary / ("d" * 90)
    long.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(long))
    folder = PrivateFolder(15)
    assert len(os.fsencode(folder.path)) + 1 + 15 <= 100
    folder.remove()
