"""The last release as its users have it: its code out of git's history, with the libraries that it locks."""

import json
import os
import shutil
import subprocess
import sysconfig
import tempfile
import tomllib
import urllib.request
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.clients.venvs import client_python
from tests.end_to_end.server import ROOT, Server
from tests.installing import write_metadata
from tests.redis_process import newest
from tests.waiting import PATIENCE

FACTS = Path(__file__).with_name("facts.txt")

CLIENTS = ROOT / ".venv" / "clients"
"""Programs of others, and older versions of this one, with their libraries."""

PACKAGES = ("filters", "stream_server")


class Release(NamedTuple):
    version: str
    commit: str


def last_release() -> Release:
    """Return the release that ``facts.txt`` describes."""
    with FACTS.open(encoding="utf-8") as lines:
        return Release(*next(lines).split())


def git(*arguments: str) -> bytes | None:
    """Return what git prints in this checkout, or None if it fails: also where there is no git and no history."""
    if shutil.which("git") is None:
        return None
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, check=False)
    return None if done.returncode else done.stdout


def unpack() -> Path:
    """Return the folder with the packages and entry points of the last release. Skips the test without history.

    The folder stays in ``.venv``, so that its modules are compiled once.
    """
    release = last_release()
    folder = CLIENTS / f"stream-server-{release.commit[:8]}"
    if folder.exists():
        return folder
    archive = git("archive", release.commit, *PACKAGES, "pyproject.toml", "requirements.lock")
    if archive is None:
        pytest.skip(f"this checkout has no history with {release.version} ({release.commit[:8]})")
    CLIENTS.mkdir(exist_ok=True)
    made = Path(tempfile.mkdtemp(dir=CLIENTS))
    subprocess.run(["tar", "-x", "-C", made], input=archive, check=True)
    write_metadata(tomllib.loads((made / "pyproject.toml").read_text(encoding="utf-8"))["project"], made)
    try:
        made.rename(folder)
    except OSError:  # another process was faster
        shutil.rmtree(made)
    return folder


def variables(folder: Path) -> dict[str, str]:
    """Return the environment in which this Python runs the code in ``folder`` with the libraries of its lock file."""
    python = client_python(f"stream-server-{last_release().version}", folder / "requirements.lock")
    base = python.parents[1]
    libraries = sysconfig.get_path("platlib", "venv", {"base": str(base), "platbase": str(base)})
    return {
        "PYTHONPATH": os.pathsep.join((str(folder), libraries)), "PYTHONSAFEPATH": "1", "PYTHONDONTWRITEBYTECODE": "",
        "PATH": os.pathsep.join((str(newest().parent), os.environ["PATH"])),
    }  # fmt: skip


def server(folder: Path, *flags: str) -> Server:
    """Return a server of the last release with its data in ``folder``. It is not started."""
    return Server(folder, *flags, variables=variables(unpack()), preloaded=False)


def version_of(server: Server) -> str:
    """Return the version of a running server."""
    with urllib.request.urlopen(server.address + "/openapi.json", timeout=PATIENCE) as answer:
        return str(json.load(answer)["info"]["version"])
