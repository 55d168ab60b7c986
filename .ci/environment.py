"""``.venv``: made once from the lock, and again only when the lock, the project or the Python changed."""

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

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT))  # stream_server.downloads is used before anything is installed
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
UV = VENV / "bin" / "uv"
STAMP = VENV / ".stamp"
PROJECT = ROOT / "pyproject.toml"
RUNTIME_LOCK = ROOT / "requirements.lock"
DOWNLOADS = ROOT / "stream_server" / "downloads"
DEV_LOCK = ROOT / "requirements-dev.lock"
CLIENT_LOCKS = ROOT / "tests" / "clients" / "locks"

NOISE = (" + ", " - ", " ~ ", " Downloaded ")
"""So uv begins lines that repeat what others say, one a package; a newcomer's first screen has no room for it."""


class Failed(Exception):
    """The environment cannot be made; the message is a sentence for the person at the terminal."""


def main(arguments: list[str]) -> int:
    """No arguments make the environment, ``lock …`` the lock files; returns the exit code."""
    try:
        with alone():
            if arguments[:1] == ["lock"]:
                lock(arguments[1:])
            elif not fresh():
                make()
    except Failed as error:
        say(f"stream-server: {error}")
        return 1
    return 0


@contextmanager
def alone() -> Iterator[None]:
    """One at a time: ``make run`` and ``make test`` in two terminals must not build the same folder."""
    descriptor = os.open(ROOT, os.O_RDONLY)  # the folder itself is locked, so no lock file is left about
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def identity() -> str:
    """What only a new environment can follow: this Python, and the folder, which its scripts name in full."""
    return f"{sys.base_prefix} {sys.version.split()[0]} {ROOT}"


def inputs() -> str:
    """What the environment is made from, as one hash of the files' content."""
    digest = hashlib.sha256()
    ours = [*Path(__file__).parent.glob("*.py"), *DOWNLOADS.glob("*.py")]
    for path in (DEV_LOCK, PROJECT, *sorted(ours)):
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def stamped() -> list[str]:
    """Identity and inputs of the environment that is there; empty if it is absent, broken or unfinished."""
    return STAMP.read_text(encoding="utf-8").splitlines() if STAMP.exists() and PYTHON.exists() else []


def fresh() -> bool:
    """Whether the environment is the one that would be made now."""
    return stamped() == [identity(), inputs()]


def make() -> None:
    """Make the environment, or bring it up to date; raises :class:`Failed`."""
    begun = time.monotonic()
    same = stamped()[:1] == [identity()]
    say(f"stream-server: {'updating' if same else 'making'} .venv with Python {sys.version.split()[0]}")
    prepare(same=same)
    install(with_uv=fetched_uv())
    fetch_native()
    STAMP.write_text(f"{identity()}\n{inputs()}\n", encoding="utf-8")
    say(f"stream-server: the environment is ready ({time.monotonic() - begun:.1f} s)")


def prepare(*, same: bool) -> None:
    """An environment without packages, or the one that is there; unstamped until all is done."""
    if same:
        STAMP.unlink()
        return
    try:
        import venv
    except ImportError:
        raise Failed("this Python lacks its venv module: apt install python3-venv") from None
    venv.create(VENV, clear=True, symlinks=True, with_pip=False)  # clears what a broken attempt left


def fetched_uv() -> bool:
    """Whether the pinned uv is in the environment, fetched if need be; pip takes over if none is to be had."""
    import uv_wheel

    if pinned_uv(uv_wheel.VERSION):
        return True
    from stream_server.downloads import index, wheel

    try:
        say(f"  fetching uv {uv_wheel.VERSION}, the installer, from the package index")
        wheel.install(uv_wheel.UV, UV, index.configured(os.environ) or index.PUBLIC)
    except (index.Unreachable, wheel.WrongHash) as error:
        raise Failed(str(error)) from error
    except wheel.Unavailable as error:
        if importlib.util.find_spec("pip") is None:
            raise Failed(f"{error}, and this Python has no pip either: apt install python3-pip") from None
        say(f"  {error}: {uv_wheel.UV.without}")
        return False
    return True


def fetch_native() -> None:
    """The server's native files; a platform that has none is told what to install."""
    from stream_server.downloads import index, native, wheel

    try:
        for pinned in native.ALL:
            outcome = native.fetch(pinned, index.configured(os.environ) or index.PUBLIC, VENV)
            say(f"  {outcome.sentence.replace(str(ROOT) + os.sep, '')}")
    except (index.Unreachable, wheel.WrongHash) as error:
        raise Failed(str(error)) from error


def pinned_uv(version: str) -> bool:
    """Whether ``version`` of uv is in the environment already."""
    if not UV.exists():
        return False
    answer = subprocess.run([UV, "--version"], capture_output=True, text=True, check=False)
    return answer.stdout.split()[1:2] == [version]


def install(*, with_uv: bool) -> None:
    """Every locked package, then the project itself, editable, built by what was locked."""
    count = sum(line[0].isalnum() for line in DEV_LOCK.read_text(encoding="utf-8").splitlines() if line)
    say(f"  installing up to {count} locked packages")
    sync(PYTHON, DEV_LOCK, with_uv=with_uv)
    project = ["--no-deps", "--no-build-isolation", "--quiet", "--editable", str(ROOT)]
    if with_uv:
        uv("pip", "install", "--python", PYTHON, *project)
    else:
        run([*pip(PYTHON), "install", *project], dict(os.environ))


def sync(python: Path, locked: Path, *, with_uv: bool) -> None:
    """Put what the file ``locked`` names, each checked by hash, into the environment of ``python``."""
    if with_uv:
        uv("pip", "sync", "--python", python, "--require-hashes", locked)
    else:
        run([*pip(python), "install", "--quiet", "--require-hashes", "--requirement", locked], dict(os.environ))


def pip(python: Path) -> list[str | Path]:
    """The pip of the Python that runs this, set to work on the environment of ``python``."""
    return [sys.executable, "-m", "pip", "--python", python, "--disable-pip-version-check"]


def lock(options: list[str]) -> None:
    """Write all lock files anew; ``options`` go to the resolver, as ``--upgrade`` does."""
    if not PYTHON.exists():
        prepare(same=False)
    if not fetched_uv():
        raise Failed("only uv can write the lock files.")
    compiled: list[str | Path] = ["pip", "compile", "--no-config", "--quiet", "--universal", "--python-version", "3.11"]
    compiled += ["--generate-hashes", "--custom-compile-command", "make lock", *options]
    project: list[str | Path] = [*compiled, PROJECT, "--group", "build", "--output-file"]
    uv(*project, RUNTIME_LOCK, strict=True)
    uv(*project, DEV_LOCK, "--extra", "dev", "--constraint", RUNTIME_LOCK, strict=True)
    for wanted in sorted(CLIENT_LOCKS.glob("*.in")):
        client: list[str | Path] = ["--only-binary", ":all:", "--output-file", wanted.with_suffix(".txt")]
        uv(*compiled, wanted.relative_to(ROOT), *client, strict=True)
    say("stream-server: the lock files are written")


def uv(*arguments: str | Path, strict: bool = False) -> None:
    """Run the pinned uv on the configured index.

    ``strict`` leaves out uv's own variables, or one machine's second index would end in everybody's lock.
    """
    from stream_server.downloads import index

    left_out = [name for name in os.environ if strict and name.startswith("UV_") and name != "UV_CACHE_DIR"]
    environ = {name: value for name, value in os.environ.items() if name not in {"VIRTUAL_ENV", *left_out}}
    if configured := index.configured(os.environ):
        environ["UV_DEFAULT_INDEX"] = configured
    environ.setdefault("UV_SYSTEM_CERTS", "true")  # trust what this Python, and so the fetch of uv, trusted
    run([UV, *arguments], environ)


def run(command: list[str | Path], environ: dict[str, str]) -> None:
    """Run ``command`` and show what it says but for the NOISE; raises :class:`Failed` if it fails."""
    with subprocess.Popen(
        command, cwd=ROOT, env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as child:
        assert child.stdout is not None
        for line in child.stdout:
            if not line.startswith(NOISE):
                say("  " + line.rstrip())
    if child.returncode:
        raise Failed(f"{Path(command[0]).name} ended with {child.returncode}; what it said stands above.")


def say(text: str) -> None:
    """One line for the person at the terminal, on stderr as progress is."""
    print(text, file=sys.stderr, flush=True)
