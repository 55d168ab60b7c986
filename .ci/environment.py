"""Creates ``.venv`` from a lock file, and again only if the lock, the project or the Python version changed.

It gets what the server runs with. What tests, checks and benchmarks use as well is added when one of them is asked for,
and stays.
"""

import fcntl
import hashlib
import importlib.util
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import package_index
import pinned_wheel
import uv_wheel

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
UV = VENV / "bin" / "uv"
STAMP = VENV / ".stamp"
PROJECT = ROOT / "pyproject.toml"
RUNTIME_LOCK = ROOT / "requirements.lock"
DEV_LOCK = ROOT / "requirements-dev.lock"
SITE_LOCK = ROOT / "requirements-site.lock"
LOCKS = (RUNTIME_LOCK, DEV_LOCK)
"""What the server runs with, and the same with what tests, checks and benchmarks use besides."""

CLIENT_LOCKS = ROOT / "tests" / "clients" / "locks"

NOISE = (" + ", " - ", " ~ ", " Downloaded ")
"""Prefixes of uv's output lines that this script does not show: one line per package, without news."""


class Failed(Exception):
    """The environment cannot be created. The message is a sentence for the person at the terminal."""


def main(arguments: list[str]) -> int:
    """Create the environment (``run``: for the server alone) or the lock files (``lock …``); return the exit code."""
    try:
        with alone():
            if arguments[:1] == ["lock"]:
                lock(arguments[1:])
            else:
                provide(1 if arguments == ["run"] else len(LOCKS))
    except Failed as error:
        say(f"stream-server: {error}")
        return 1
    return 0


@contextmanager
def alone() -> Iterator[None]:
    """Hold a lock, so ``make run`` and ``make test`` in two terminals do not build the same folder at once."""
    descriptor = os.open(ROOT, os.O_RDONLY)  # a lock on the folder itself leaves no lock file
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def identity() -> str:
    """Return this Python and the folder.

    A change of either needs a new environment, because scripts contain the full path.
    """
    return f"{sys.base_prefix} {sys.version.split()[0]} {ROOT}"


def inputs(locked: Path) -> str:
    """Return one hash of all files that determine the environment with the packages of the file ``locked``."""
    digest = hashlib.sha256()
    ours = [*Path(__file__).parent.glob("*.py"), *ROOT.glob("setup.py"), *ROOT.glob("stream_server/hub/*.c")]
    for path in (locked, PROJECT, *sorted(ours)):
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def state(count: int) -> list[str]:
    """Return the stamp of an environment with the packages of the first ``count`` of LOCKS: identity and inputs."""
    return [identity(), *map(inputs, LOCKS[:count])]


def stamped() -> list[str]:
    """Return the state of the existing environment; empty if it is missing, broken or unfinished."""
    return STAMP.read_text(encoding="utf-8").splitlines() if STAMP.exists() and PYTHON.exists() else []


def provide(count: int) -> None:
    """Let the environment have the packages of the first ``count`` of LOCKS; raises :class:`Failed`.

    If it has more of them, these stay. Nothing is done if it is up to date.
    """
    begun, stamp = time.monotonic(), stamped()
    if stamp[: 1 + count] == state(count):
        return
    same = stamp[:1] == state(0)
    wanted = state(max(count, len(stamp) - 1) if same else count)
    locked = LOCKS[len(wanted) - 2]
    say(f"stream-server: {'updating' if same else 'making'} .venv with Python {sys.version.split()[0]}")
    is_begun = len(stamp) > 1 and stamp == wanted[: len(stamp)]
    if not is_begun:
        prepare(same=same)
    with_uv = fetched_uv()
    packages = sum(line[0].isalnum() for line in locked.read_text(encoding="utf-8").splitlines() if line)
    say(f"  installing up to {packages} locked packages")
    (add if is_begun else install)(locked, with_uv=with_uv)
    STAMP.write_text("".join(f"{line}\n" for line in wanted), encoding="utf-8")
    say(f"stream-server: the environment is ready ({time.monotonic() - begun:.1f} s)")


def prepare(*, same: bool) -> None:
    """Create an environment without packages, or reuse the existing one.

    It has no stamp until everything is installed.
    """
    if same:
        STAMP.unlink()
        return
    try:
        import venv
    except ImportError:
        raise Failed("this Python lacks its venv module: apt install python3-venv") from None
    venv.create(VENV, clear=True, symlinks=True, with_pip=False)  # `clear` removes the rest of a failed attempt


def fetched_uv() -> bool:
    """Return whether the pinned uv is in the environment, after fetching it if needed; without it, pip installs."""
    if pinned_uv(uv_wheel.VERSION):
        return True
    try:
        say(f"  fetching uv {uv_wheel.VERSION}, the installer, from the package index")
        pinned_wheel.install(uv_wheel.UV, UV, package_index.configured(os.environ) or package_index.PUBLIC)
    except (package_index.Unreachable, pinned_wheel.WrongHash) as error:
        raise Failed(str(error)) from error
    except pinned_wheel.Unavailable as error:
        if importlib.util.find_spec("pip") is None:
            raise Failed(f"{error}, and this Python has no pip either: apt install python3-pip") from None
        say(f"  {error}: {uv_wheel.UV.without}")
        return False
    return True


def pinned_uv(version: str) -> bool:
    """Return whether this ``version`` of uv is in the environment."""
    if not UV.exists():
        return False
    answer = subprocess.run([UV, "--version"], capture_output=True, text=True, check=False)
    return answer.stdout.split()[1:2] == [version]


def install(locked: Path, *, with_uv: bool) -> None:
    """Install what ``locked`` lists and nothing else, then the project itself as editable, built with locked tools."""
    sync(PYTHON, locked, with_uv=with_uv)
    project = ["--no-deps", "--no-build-isolation", "--quiet", "--editable", str(ROOT)]
    if with_uv:
        uv("pip", "install", "--python", PYTHON, *project)
    else:
        run([*pip(PYTHON), "install", *project], dict(os.environ))


def add(locked: Path, *, with_uv: bool) -> None:
    """Install what the file ``locked`` lists beside what is there, with which a server may be running."""
    if with_uv:
        uv("pip", "install", "--python", PYTHON, "--require-hashes", "--requirement", locked)
    else:
        sync(PYTHON, locked, with_uv=False)  # pip removes nothing


def sync(python: Path, locked: Path, *, with_uv: bool) -> None:
    """Install what the file ``locked`` lists, each package checked by its hash, into the environment of ``python``."""
    if with_uv:
        uv("pip", "sync", "--python", python, "--require-hashes", locked)
    else:
        run([*pip(python), "install", "--quiet", "--require-hashes", "--requirement", locked], dict(os.environ))


def pip(python: Path) -> list[str | Path]:
    """Return the command for the pip of the running Python, set to work on the environment of ``python``."""
    return [sys.executable, "-m", "pip", "--python", python, "--disable-pip-version-check"]


def lock(options: list[str]) -> None:
    """Write all lock files again; ``options``, such as ``--upgrade``, go to the resolver."""
    if not PYTHON.exists():
        prepare(same=False)
    if not fetched_uv():
        raise Failed("only uv can write the lock files.")
    compiled: list[str | Path] = ["pip", "compile", "--no-config", "--quiet", "--universal", "--python-version", "3.11"]
    compiled += ["--generate-hashes", "--custom-compile-command", "make lock", *options]
    project: list[str | Path] = [*compiled, PROJECT, "--group", "build", "--output-file"]
    uv(*project, RUNTIME_LOCK, "--extra", "server", strict=True)
    uv(*project, DEV_LOCK, "--extra", "dev", "--constraint", RUNTIME_LOCK, strict=True)
    uv(*compiled, "--group", "site", "--output-file", SITE_LOCK, strict=True)
    for wanted in sorted(CLIENT_LOCKS.glob("*.in")):
        client: list[str | Path] = ["--only-binary", ":all:", "--output-file", wanted.with_suffix(".txt")]
        uv(*compiled, wanted.relative_to(ROOT), *client, strict=True)
    say("stream-server: the lock files are written")


def uv(*arguments: str | Path, strict: bool = False) -> None:
    """Run the pinned uv with the configured index.

    ``strict`` removes uv's own variables, because a second index of one machine would otherwise enter the lock files.
    """
    left_out = [name for name in os.environ if strict and name.startswith("UV_") and name != "UV_CACHE_DIR"]
    environ = {name: value for name, value in os.environ.items() if name not in {"VIRTUAL_ENV", *left_out}}
    if configured := package_index.configured(os.environ):
        environ["UV_DEFAULT_INDEX"] = configured
    environ.setdefault("UV_SYSTEM_CERTS", "true")  # trust the same certificates as this Python
    run([UV, *arguments], environ)


def run(command: list[str | Path], environ: dict[str, str]) -> None:
    """Run ``command`` and print its output except :data:`NOISE`; raises :class:`Failed` if it fails."""
    with subprocess.Popen(
        command, cwd=ROOT, env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as child:
        assert child.stdout is not None
        for line in child.stdout:
            if not line.startswith(NOISE):
                say("  " + line.rstrip())
    if child.returncode:
        raise Failed(f"{Path(command[0]).name} ended with {child.returncode}; its output is above.")


def say(text: str) -> None:
    """Print one line on standard error for the person at the terminal."""
    print(text, file=sys.stderr, flush=True)
