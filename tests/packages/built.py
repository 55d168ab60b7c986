"""The source distribution and the wheel of this checkout, built as `make dist` builds them.

On a machine that cannot compile, the wheel is the one for any platform.
"""

import os
import shutil
import subprocess
import sysconfig
from pathlib import Path
from typing import NamedTuple

import pytest

from tests import site
from tests.end_to_end.server import ROOT
from tests.made_once import once, shared_folder
from tests.waiting import PATIENCE

SECONDS = "1790000000"
"""SOURCE_DATE_EPOCH of the builds: any time."""

SITE = Path("stream_server", "site")
"""The folder of the documentation's site in a checkout."""

REPOSITORY = "https://example.org/owner/name"
"""The web address of the repository, which a build by the workflow of a release has."""


class Built(NamedTuple):
    """The packages, and the copy of the checkout from which they were built."""

    source: Path
    sdist: Path
    wheel: Path

    @property
    def site(self) -> Path:
        """The folder of the site that the packages brought along."""
        return self.source / SITE


def tracked() -> list[str]:
    """Return the paths of the files that belong to the repository, also of those that are not committed yet."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return sorted(name for name in set(told.split("\0")) if name and (ROOT / name).exists())


def copy_checkout(folder: Path) -> Path:
    """Copy the files of :func:`tracked` into ``folder``, with new times."""
    for name in tracked():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, folder / name)
        shutil.copymode(ROOT / name, folder / name)
    return folder


def compiler() -> str | None:
    """Return the C compiler of this Python; None if it is missing here, or Python's headers are."""
    found = shutil.which((sysconfig.get_config_var("CC") or "cc").split()[0])
    return found if Path(sysconfig.get_paths()["include"], "Python.h").exists() else None


def make_dist(source: Path, *options: str, made_site: Path | None = None, **more: str) -> Built:
    """Build the packages of a copy in its folder ``dist``.

    ``options`` are further ones of the builder, and ``more`` are variables of the environment; an empty one is not set.
    The environments are those of this checkout, also that of the site. ``made_site`` is a site of the same pages, which
    is copied: to build one takes ten seconds of processor time.
    """
    shutil.rmtree(source / "dist", ignore_errors=True)
    if made_site is not None:
        shutil.copytree(made_site, source / SITE)
    else:
        of_site = site.build(source / SITE, source)
        assert (of_site.returncode, "WARNING" in of_site.stderr) == (0, False), of_site.stderr
    given = {"SOURCE_DATE_EPOCH": SECONDS, "REPOSITORY": REPOSITORY} | more
    variables = {name: value for name, value in given.items() if value}
    variables |= {"PATH": os.environ["PATH"], "HOME": str(Path.home())}
    command = ["make", "--old-file=env", "--old-file=site", "dist"]
    command += [f"VENV={ROOT / '.venv' / 'bin'}", f"ARGS={' '.join(options)}"]
    made = subprocess.run(
        command, cwd=source, env=variables, capture_output=True, text=True, check=False, timeout=15 * PATIENCE
    )
    assert made.returncode == 0, made.stderr
    return find_built(source)


def build_once(factory: pytest.TempPathFactory) -> Built:
    """Return the packages of a copy of the files of the repository, which all processes of this run share."""
    return find_built(once(shared_folder(factory), "built", lambda folder: make_dist(copy_checkout(folder))))


def find_built(source: Path) -> Built:
    """Return the packages in the folder ``dist`` of a copy. A path is ``/dev/null`` if there is no such package."""
    sdist, wheel = [next(source.glob(f"dist/*{end}"), Path(os.devnull)) for end in (".tar.gz", ".whl")]
    return Built(source, sdist, wheel)
