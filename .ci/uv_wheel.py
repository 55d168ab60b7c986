"""uv, pinned by version and by hash: fetched as its wheel from the configured index, unpacked, checked.

Debian's python3 has no pip to install anything with, and uv needs none. To move to another version,
change VERSION and the hashes, which the index lists.
"""

import hashlib
import io
import platform
import sys
import zipfile
from pathlib import Path

import index

VERSION = "0.13.8"

WHEELS = {
    "linux-x86_64-glibc": (
        "manylinux_2_17_x86_64.manylinux2014_x86_64.whl",
        "e18a57b8b352eb7c8feb317b9f6f533c8f0ad9673fd6cf34bbe3cf1a9f6a8984",
    ),
    "linux-x86_64-musl": (
        "musllinux_1_1_x86_64.whl",
        "29451c60f5e8b07403e0a175d5229efc36b0289b34143ff4aaa499a5dd52553a",
    ),
    # One static file that serves glibc and musl.
    "linux-aarch64": (
        "manylinux_2_17_aarch64.manylinux2014_aarch64.musllinux_1_1_aarch64.whl",
        "0b3e8b1a4f5e405e31e2ff33de8af4744831e9f7338539671efbd8c3c94e791d",
    ),
    "darwin-arm64": (
        "macosx_11_0_arm64.whl",
        "62b6943c7fd64fac6854f780bea6e0359e5a5bc3241f83ee357bb38276afac49",
    ),
    "darwin-x86_64": (
        "macosx_10_12_x86_64.whl",
        "b7124ca1956ec2e476a1003ea5715a15f0266afaec37f4dc9c6972ba8183e6d1",
    ),
}

CHUNK_BYTES = 1 << 18

BAR_CHARS = 30


class Unavailable(Exception):
    """There is no uv for this machine, or none on its index; pip may still do."""


class WrongHash(Exception):
    """What came is not what was pinned: never used, and never a reason to try another way."""


def platform_name() -> str:
    """Name this machine as WHEELS does."""
    system, machine = platform.system().lower(), platform.machine().lower()
    name = f"{system}-{machine}"
    if name == "linux-x86_64":
        return name + ("-glibc" if platform.libc_ver()[0] == "glibc" else "-musl")
    return name


def install(target: Path, url: str) -> None:
    """Put the pinned uv at ``target``, from the index at ``url``.

    Raises :class:`Unavailable`, :class:`WrongHash` and :class:`index.Unreachable`; ``target`` is whole or absent.
    """
    tag, digest = wheel(platform_name())
    filename = f"uv-{VERSION}-py3-none-{tag}"
    address = index.link(url, "uv", filename)
    if not address:
        raise Unavailable(f"the package index does not offer {filename}")
    data = download(address, url)
    if hashlib.sha256(data).hexdigest() != digest:
        raise WrongHash(f"{filename} from the package index does not have the pinned hash: it was thrown away.")
    unpack(data, target)


def wheel(name: str) -> tuple[str, str]:
    """Tag and SHA-256 of the wheel for the platform ``name``."""
    if name not in WHEELS:
        raise Unavailable(f"no uv is pinned for {name}")
    return WHEELS[name]


def download(address: str, url: str) -> bytes:
    """The file at ``address``, with a bar while it comes if a person is looking."""
    data = bytearray()
    with index.opened(address, url) as answer:
        total = int(answer.headers.get("Content-Length") or 0)
        while chunk := answer.read(CHUNK_BYTES):
            data += chunk
            show(len(data), total)
        if len(data) < total:
            raise ConnectionError(f"it hung up after {len(data)} of {total} bytes")
    if sys.stderr.isatty():
        sys.stderr.write("\r\x1b[K")
    return bytes(data)


def show(done: int, total: int) -> None:
    """Draw the bar anew; a log file gets none."""
    if not sys.stderr.isatty() or not total:
        return
    filled = BAR_CHARS * done // total
    bar = "#" * filled + "-" * (BAR_CHARS - filled)
    sys.stderr.write(f"\r  fetching uv {VERSION}  [{bar}]  {done / 2**20:.1f} of {total / 2**20:.1f} MiB")
    sys.stderr.flush()


def unpack(data: bytes, target: Path) -> None:
    """The one program of the wheel ``data``, made executable at ``target``."""
    program = zipfile.ZipFile(io.BytesIO(data)).read(f"uv-{VERSION}.data/scripts/uv")
    part = target.with_name(target.name + ".part")
    part.write_bytes(program)
    part.chmod(0o755)
    part.replace(target)
