"""What pyproject.toml cannot say of the loop in C, of the source distribution and of its description.

The loop in C over a group's clients is left out without a compiler. One build serves Python 3.11 and later (the
limited API). ``PURE_PYTHON=1`` leaves it out, too. A wheel without it is one of any platform.

A source distribution has the same bytes wherever and whenever it is built. If ``REPOSITORY`` is the web address of the
repository, the links of the description lead to its tag of this version, because relative ones lead nowhere on the page
of a package index.
"""

import gzip
import os
import re
import shutil
import sysconfig
import tarfile
import time
import tomllib
from pathlib import Path
from typing import Any

from setuptools import Extension, setup
from setuptools.command.sdist import sdist

LOOP = Extension(
    "stream_server.hub.send_to_each",
    ["stream_server/hub/send_to_each.c"],
    extra_compile_args=["-g0"],  # debugging data would have the name of the folder
    optional=True,
    py_limited_api=True,
)


class Sdist(sdist):
    """The command that makes the archive, without owners, and with SOURCE_DATE_EPOCH for the times of all files.

    Each file has the mode 0644, or 0755 if its owner may execute it.
    """

    def make_archive(self, base_name: str, *_: Any, base_dir: str, **__: Any) -> str:
        """Write the folder ``base_dir`` to ``base_name`` with ``.tar.gz``, and return the path of this file."""
        seconds = int(os.environ.get("SOURCE_DATE_EPOCH") or time.time())

        def bare(member: tarfile.TarInfo) -> tarfile.TarInfo:
            member.mtime, member.mode = seconds, 0o755 if member.mode & 0o100 else 0o644
            member.uid = member.gid = 0
            member.uname = member.gname = ""
            return member

        path = Path(f"{base_name}.tar.gz")
        with (
            path.open("wb") as file,
            gzip.GzipFile("", "wb", fileobj=file, mtime=seconds) as packed,
            tarfile.open(fileobj=packed, mode="w") as archive,
        ):
            archive.add(base_dir, filter=bare)
        return str(path)


def can_compile() -> bool:
    """Return whether there are a C compiler and Python's headers."""
    compiler = (os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc").split()[0]
    return shutil.which(compiler) is not None and Path(sysconfig.get_paths()["include"], "Python.h").exists()


def description() -> str:
    """Return the README. With ``REPOSITORY``, its relative links are absolute."""
    text, repository = Path("README.md").read_text(encoding="utf-8"), os.environ.get("REPOSITORY")
    if not repository:
        return text
    version = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]

    def absolute(link: re.Match[str]) -> str:
        return f"{link[0]}{repository}/{'raw' if link[0][0] == '!' else 'blob'}/v{version}/"

    return re.sub(r"!?\[[^]]*\]\((?!https?:|#)", absolute, text)


setup(
    long_description=description(),
    long_description_content_type="text/markdown",
    cmdclass={"sdist": Sdist},
    ext_modules=[LOOP] if can_compile() and not os.environ.get("PURE_PYTHON") else [],
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
