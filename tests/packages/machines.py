"""A Python and an empty folder: in a fresh Debian, which ``.ci/root.sh`` makes, or on this machine."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.end_to_end.server import ROOT
from tests.waiting import PATIENCE

VERSIONS = ("3.11", "3.12", "3.13", "3.14")
"""The supported Pythons."""

DEBIANS = {"3.11": "bookworm", "3.13": "trixie", "3.14": "forky"}
"""The releases of Debian, by their Python: 12, 13 and the next one. `.ci/run` makes them."""

HERE = Path("/")
UV = ROOT / ".venv" / "bin" / "uv"
SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin"

CERTIFICATES = ("SSL_CERT_FILE", "PIP_CERT")
KEPT = (*CERTIFICATES, "LANG", "PIP_INDEX_URL", "UV_DEFAULT_INDEX", "UV_SYSTEM_CERTS", "http_proxy", "https_proxy")
"""The variables that say how this machine reaches the package index."""

_ENTER = '/usr/bin/mount -t proc proc "$0/proc" && exec /usr/sbin/chroot "$0" /usr/bin/env --chdir="$@"'
"""Runs a command in the root $0 and its folder $1. The mount is in a namespace of the process, so it ends with it."""


class Machine(NamedTuple):
    """A Python and a folder of its own.

    Attributes:
        folder: The folder, by its path on this machine.
        python: The Python, by its path on its own machine.
        root: The root of the Python's machine, by its path on this machine.
        path: PATH of the commands.
    """

    folder: Path
    python: str
    root: Path = HERE
    path: str = SYSTEM_PATH

    @property
    def is_fresh(self) -> bool:
        """Whether it is a machine with nothing else."""
        return self.root != HERE

    @property
    def environ(self) -> dict[str, str]:
        """An environment without anything of this checkout, with the caches of the installers."""
        cache = "/var/cache" if self.is_fresh else os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        return {name: os.environ[name] for name in KEPT if name in os.environ} | {
            "PATH": self.path, "HOME": self.inside(self.folder), "PIP_CACHE_DIR": f"{cache}/pip",
            "UV_CACHE_DIR": f"{cache}/uv", "UV_SYSTEM_CERTS": "true", "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            "UV_PYTHON_DOWNLOADS": "never",
        }  # fmt: skip

    def inside(self, path: Path) -> str:
        """Return the path on the Python's machine of a path on this one."""
        return f"/{path.relative_to(self.root)}"

    def command(self, *arguments: str | Path, cwd: Path | None = None) -> list[str]:
        """Return the command that runs ``arguments`` on the Python's machine in ``cwd`` (default: the folder)."""
        named = [self.inside(one) if isinstance(one, Path) else one for one in arguments]
        if not self.is_fresh:
            return named
        enter = ["/usr/bin/unshare", "--mount", "/bin/sh", "-c", _ENTER, str(self.root)]
        return [*enter, self.inside(cwd or self.folder), *named]

    def run(self, *arguments: str | Path, cwd: Path | None = None) -> "subprocess.CompletedProcess[str]":
        """Run a command to its end."""
        return subprocess.run(
            self.command(*arguments, cwd=cwd), cwd=cwd or self.folder, env=self.environ,
            capture_output=True, text=True, check=False, timeout=15 * PATIENCE, stdin=subprocess.DEVNULL,
        )  # fmt: skip

    def done(self, *arguments: str | Path, cwd: Path | None = None) -> str:
        """Run a command that must succeed. Return what it printed."""
        ended = self.run(*arguments, cwd=cwd)
        assert ended.returncode == 0, f"{arguments}: {ended.stdout[-2000:]}{ended.stderr[-2000:]}"
        return ended.stdout

    def environment(self, name: str) -> Path:
        """Make an environment, and return its folder of programs. Only the first one on the fresh machine has pip."""
        needs_pip = self.is_fresh and self.pip is None
        self.done(self.python, "-m", "venv", *([] if needs_pip else ["--without-pip"]), self.folder / name)
        return self.folder / name / "bin"

    @property
    def pip(self) -> Path | None:
        """The pip of the folder."""
        return next(self.folder.glob("*/bin/pip"), None)

    def install(self, programs: Path, what: str) -> None:
        """Install a package, as a requirement names it: on the fresh machine by pip, here by uv in less time.

        Neither compiles all modules: the programs that run compile those that they import.
        """
        if self.pip:
            self.done(self.pip, "--python", programs / "python", "install", "--quiet", "--no-compile", what)
        else:
            self.done(UV, "pip", "install", "--quiet", "--python", programs / "python", what)


@contextmanager
def machine(version: str, *, is_here: bool = False) -> Iterator[Machine]:
    """Return a machine with this Python, and remove its folder at the end. Skips the test where there is none.

    It is the Debian that comes with this Python, if there is one. With ``is_here`` it is always this machine.
    """
    python, root = f"/usr/bin/python{version}", HERE
    debian = fresh_debian(DEBIANS[version]) if version in DEBIANS and not is_here else None
    if debian is not None and (debian / python[1:]).exists():
        root = debian
    elif (found := find_python(version)) is not None:
        python = found
    else:
        pytest.skip(f"no Python {version} on PATH, in ~/.pyenv/versions or in a Debian that .ci/root.sh makes")
    with tempfile.TemporaryDirectory(prefix="sst-", dir=root / "tmp") as folder:
        yield Machine(Path(folder), python, root)


def find_python(version: str) -> str | None:
    """Return the path of a Python of this machine; None if there is none that runs and has ``venv``."""
    by_pyenv = Path.home().glob(f".pyenv/versions/{version}.*/bin/python{version}")
    for path in (Path(sys.base_prefix) / "bin" / f"python{version}", *by_pyenv, shutil.which(f"python{version}")):
        if path and Path(path).exists() and subprocess.run([path, "-c", "import venv"], check=False).returncode == 0:
            return str(path)
    return None


def fresh_debian(suite: str) -> Path | None:
    """Return the root of a fresh Debian, with what leads it to the package index. None if there is none."""
    find = ROOT / ".ci" / "root.sh"
    made = subprocess.run(["sh", find, suite, "--find"], capture_output=True, text=True, check=False)
    if made.returncode or os.geteuid() != 0:
        return None
    root = Path(made.stdout.strip())
    named = {Path(os.environ[name]) for name in CERTIFICATES if name in os.environ}
    for path in (Path("/etc/resolv.conf"), Path("/etc/hosts"), *named):
        shutil.copyfile(path, root / path.relative_to("/"))
    return root
