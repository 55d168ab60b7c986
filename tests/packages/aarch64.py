"""A Linux for aarch64 in folders: Debian's Python, the locked packages of the server, and the emulator qemu.

It runs without root, in a namespace with its own list of binary formats (``binfmt_misc``, Linux 6.7 or newer). So this
machine's list stays as it is, and nothing is left after the end of the process.
"""

import compileall
import hashlib
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, NamedTuple

import pytest

from tests.end_to_end.server import ROOT, Server
from tests.made_once import CACHE, once
from tests.needed import INDEX, missing
from tests.packages.machines import UV
from tests.preloaded.launcher import AnyProcess
from tests.waiting import PATIENCE

LOCK = ROOT / "requirements.lock"

PACKAGES = ("python3-minimal:arm64", "libpython3-stdlib:arm64", "libstdc++6:arm64", "dash:arm64")
EMULATOR = "qemu-user-static"

# The first 20 bytes of a program for aarch64, and the mask of those that count. F: the kernel opens the emulator now,
# because it cannot be found from inside the other root.
FORMAT = (
    r":aarch64:M::\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00"
    r":\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff:{}:F"
)

ENTER = """
set -e
mount -t binfmt_misc none /proc/sys/fs/binfmt_misc
printf '%s' "$2" >/proc/sys/fs/binfmt_misc/register
mount --rbind /dev "$1/dev"
mount --rbind /proc "$1/proc"
mount -t tmpfs none "$1/tmp"
mount --bind "$3" "$1/opt/site"
mount --bind "$4" "$1/opt/app"
mount --bind "$5" "$1/srv"
root=$1
shift 5
exec chroot "$root" "$@"
"""
"""Shell script that enters the root $1 with the format $2 and the folders $3 to $5, and runs the rest as a command."""

FOLDERS = ("dev", "proc", "tmp", "opt/site", "opt/app", "srv")


class Machine(NamedTuple):
    """A machine for aarch64: its emulator, its root, and the folder with the packages that the server needs."""

    emulator: Path
    root: Path
    site: Path

    def command(self, app: Path, data: Path, *arguments: str) -> list[str]:
        """Return the command that runs a Python there. It imports from ``app``, and ``data`` is its folder ``/srv``."""
        entered = [str(self.root), FORMAT.format(self.emulator), str(self.site), str(app), str(data)]
        return [*("unshare", "-Urm", "sh", "-c", ENTER, "sh"), *entered, "/usr/bin/python3", *arguments]


class EmulatedServer(Server):
    """The server of the packages in ``app``, on ``machine``."""

    START_SECONDS = 10 * PATIENCE

    def __init__(self, folder: Path, machine: Machine, app: Path, *flags: str) -> None:
        super().__init__(folder, *flags)
        self.machine = machine
        self.app = app

    def launch(self, env: dict[str, str], out: IO[bytes], err: IO[bytes]) -> AnyProcess:
        """Start the server. Its folder of temporary files is its own."""
        env |= {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "PYTHONPATH": "/opt/app:/opt/site"}
        env |= {"TMPDIR": "/tmp", "HOME": "/tmp"}
        env["PYTHONDONTWRITEBYTECODE"] = ""  # so that only the first run compiles the packages
        arguments = ["-m", self.module, "serve", "--port", "0", "--data-dir", "/srv/data", *self.flags]
        command = self.machine.command(self.app, self.folder, *arguments)
        return subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=err)


def machine() -> Machine:
    """Return the machine, made at the first call. Skips the test if this machine cannot make it, and says why."""
    if (sys.platform, platform.machine()) != ("linux", "x86_64"):
        pytest.skip("the emulation was tried on Linux for x86-64 only")
    for program in ("apt-get", "dpkg-deb", "unshare", str(UV)):
        if shutil.which(program) is None:
            pytest.skip(f"there is no {program}, which the emulation needs")
    on_path = shutil.which("qemu-aarch64-static")
    emulator = Path(on_path) if on_path else _cached("qemu", EMULATOR, _make_emulator) / "qemu"
    root = _cached("debian-arm64", repr((PACKAGES, FOLDERS)), _make_root)
    made = Machine(emulator, root, _cached("site-arm64", LOCK.read_text(), lambda site: _install_locked(root, site)))
    done = subprocess.run(made.command(made.site, made.site, "-V"), capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"a program for aarch64 does not run here (Linux 6.7 or newer can): {done.stderr.strip()[-300:]}")
    return made


def install(root: Path, site: Path, *what: str) -> None:
    """Install ready-made packages for the Python of ``root`` into the folder ``site``, and compile them."""
    version = _version(root)
    target = ["--python-platform", "aarch64-unknown-linux-gnu", "--python-version", version, "--target", str(site)]
    _run([str(UV), "pip", "install", "--quiet", "--no-deps", "--only-binary", ":all:", *target, *what])
    _compile(root, site)


def _version(root: Path) -> str:
    return (root / "usr" / "bin" / "python3").readlink().name.removeprefix("python")


def _compile(root: Path, folder: Path) -> None:
    """Compile on this machine, if the versions of Python are equal: under emulation it takes many times as long."""
    if _version(root) == f"{sys.version_info[0]}.{sys.version_info[1]}":
        compileall.compile_dir(folder, quiet=2)


def _install_locked(root: Path, site: Path) -> None:
    install(root, site, "--require-hashes", "--requirement", str(LOCK))


def _make_root(folder: Path) -> None:
    for package in _download(folder / "apt", *PACKAGES):
        _unpack(package, folder)
    shutil.rmtree(folder / "apt")
    for name in FOLDERS:
        (folder / name).mkdir(parents=True, exist_ok=True)
    _compile(folder, folder / "usr" / "lib" / f"python{_version(folder)}")


def _make_emulator(folder: Path) -> None:
    (package,) = _download(folder / "apt", EMULATOR)
    _unpack(package, folder / "apt", "./usr/bin/qemu-aarch64-static")
    (folder / "apt" / "usr" / "bin" / "qemu-aarch64-static").rename(folder / "qemu")
    shutil.rmtree(folder / "apt")


def _download(folder: Path, *packages: str) -> list[Path]:
    """Download Debian packages and what they depend on, with the sources of this machine but without its state."""
    for name in ("lists/partial", "archives/partial", "log"):
        (folder / name).mkdir(parents=True)
    (folder / "status").touch()
    places = {
        "State": "", "State::status": "status", "State::Lists": "lists", "Cache": "", "Cache::Archives": "archives",
        "Log": "log",
    }  # fmt: skip
    options = [f"-oDir::{name}={folder / place}" for name, place in places.items()]
    options += ["-oAPT::Architectures=amd64,arm64", "-oAPT::Sandbox::User=", "-oAcquire::Languages=none", "-qq"]
    _run(["apt-get", *options, "update"])
    _run(["apt-get", *options, "install", "--yes", "--no-install-recommends", "--download-only", *packages])
    return sorted((folder / "archives").glob("*.deb"))


def _unpack(package: Path, folder: Path, *members: str) -> None:
    with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", str(package)], stdout=subprocess.PIPE) as archive:
        subprocess.run(["tar", "x", "-C", str(folder), *members], stdin=archive.stdout, check=True)


def _run(command: Sequence[str]) -> None:
    """Run a command that downloads. Skips the test if it fails, with its last message."""
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode:
        missing(f"{Path(command[0]).name} cannot download for aarch64: {done.stderr.strip()[-300:]}", INDEX)


def _cached(name: str, made_from: str, make: Callable[[Path], None]) -> Path:
    """Return a folder that ``make`` has filled, once for all runs of the tests on this machine."""
    return once(CACHE, f"{name}-{hashlib.sha256(made_from.encode()).hexdigest()[:16]}", make)
