"""What pyproject.toml cannot say of the loop in C and of the source distribution.

The loop in C over a group's clients is left out without a compiler. One build serves Python 3.11 and later (the
limited API). ``PURE_PYTHON=1`` leaves it out, for a wheel of any platform. A source distribution has the same bytes
wherever and whenever it is built.
"""

import gzip
import os
import tarfile
import time
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
            mode = 0o755 if member.mode & 0o100 else 0o644
            return member.replace(mtime=seconds, mode=mode, uid=0, gid=0, uname="", gname="", deep=False)

        path = Path(f"{base_name}.tar.gz")
        with (
            path.open("wb") as file,
            gzip.GzipFile("", "wb", fileobj=file, mtime=seconds) as packed,
            tarfile.open(fileobj=packed, mode="w") as archive,
        ):
            archive.add(base_dir, filter=bare)
        return str(path)


setup(
    cmdclass={"sdist": Sdist},
    ext_modules=[] if os.environ.get("PURE_PYTHON") else [LOOP],
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
