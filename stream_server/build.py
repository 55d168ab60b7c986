"""Which build of the program runs: the version, and a digest of the code, which differs between two builds.

The digest needs no Git and no step of the build. The same code has the same digest in a checkout, a wheel and an image.
"""

from functools import cache
from hashlib import sha256
from pathlib import Path

from stream_server import __version__

DIGEST_DIGITS = 8
PACKAGES = ("filters", "stream_server")
CODE_SUFFIXES = {".py", ".json", ".lua", ".js", ".css", ".html", ".svg"}


@cache
def full_version() -> str:
    """Return the version and the digest of the code, such as ``1.0.0+3f9a01bc``. The first call reads all files."""
    return f"{__version__}+{digest_of(Path(__file__).parent.parent)}"


def digest_of(root: Path) -> str:
    """Return eight hexadecimal digits that depend on each file of code in the packages below ``root``.

    The files of the documentation, which may be installed beside the code, do not count.
    """
    digest = sha256()
    for package in PACKAGES:
        for path in sorted((root / package).rglob("*")):
            if path.suffix in CODE_SUFFIXES and not path.is_relative_to(root / "stream_server" / "site"):
                digest.update(f"{path.relative_to(root).as_posix()}\0".encode() + sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:DIGEST_DIGITS]
