"""A server is started in the folder of some project, whose modules have the names of its own or of Python's."""

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.command_line import ROOT, running
from tests.end_to_end.server import environment
from tests.waiting import PATIENCE

SCRIPT = Path(sys.executable).with_name("stream-server")
ANNOUNCED = "stream-server listening on "


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Path]:
    """A folder with modules that fail when they are imported."""
    for name in ("filters/__init__.py", "secrets.py", "stream_server/__init__.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(f"raise RuntimeError('{name} was imported')\n")
    yield tmp_path
    assert not list(tmp_path.rglob("__pycache__"))


@pytest.mark.extended
def test_the_workers_import_nothing_from_the_folder(project: Path, own_folder: Path) -> None:
    """The address is announced when a worker serves."""
    serve = (SCRIPT, "serve", "--port", "0", "--workers", "2")
    with running(*serve, folder=own_folder, env=environment(), cwd=project) as server:
        server.until(lambda: ANNOUNCED in server.out)
        assert server.interrupt() == 0
        assert "was imported" not in server.err


@pytest.mark.extended
def test_the_workers_of_a_server_that_runs_from_its_source_run_that_source(tmp_path: Path, own_folder: Path) -> None:
    """Another one may be installed, or none."""
    for name in ("stream_server", "filters"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    with (tmp_path / "stream_server" / "commands" / "serve.py").open("a") as file:
        file.write("\nprint('from the source')\n")
    serve = (sys.executable, "-u", "-m", "stream_server", "serve", "--port", "0", "--workers", "2")
    with running(*serve, folder=own_folder, env=environment(), cwd=tmp_path) as server:
        server.until(lambda: ANNOUNCED in server.out and server.out.count("from the source") == 3)
        assert server.interrupt() == 0


@pytest.mark.parametrize("command", ["doctor", "serve"])
@pytest.mark.parametrize("is_package", [True, False])
def test_another_package_that_is_found_first_is_named(tmp_path: Path, command: str, *, is_package: bool) -> None:
    other = tmp_path / ("filters/__init__.py" if is_package else "filters.py")
    other.parent.mkdir(exist_ok=True)
    other.write_text("raise RuntimeError('it was imported')\n")
    env = environment() | {"PYTHONPATH": os.fspath(tmp_path)}
    with running(SCRIPT, command, folder=tmp_path / "out", env=env, cwd=Path("/")) as ended:
        assert ended.process.wait(PATIENCE) == 1
        named = other.parent if is_package else other
        assert f"finds another package named filters before the server's own: {named}. " in ended.err
        assert "Traceback" not in ended.err
