"""Podman: it builds the image and runs it where no container engine is, as root and without a network of images.

The base of the image is made of Debian's packages by debootstrap, as the published one is. Podman keeps it, and every
step of a build whose inputs are unchanged, in :data:`FOLDER`, from one run of the tests to the next.
"""

import fcntl
import hashlib
import json
import os
import re
import runpy
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from tests import needed
from tests.end_to_end.server import ROOT
from tests.made_once import CACHE
from tests.waiting import PATIENCE

FOLDER = CACHE / "containers"

PROGRAMS = ("podman", "runc", "debootstrap")

LEFT_OUT = ("doc", "info", "locale", "man")
"""Folders of ``/usr/share`` that the slim images of Debian do not have."""

VERSION = "1.2.3"
"""The version that the build is told, as a release tells its own."""

RUN_SECONDS = 600
"""Time after which a container ends, even if the tests were killed and cannot end it."""

BUILD_SECONDS = 1800
"""Time for a build that downloads everything, on a busy machine. All tests of the image wait for it."""


def podman(*arguments: str, seconds: float = 5 * PATIENCE) -> str:
    """Run a command of podman; return its output, that of both kinds. Fails the test if the command fails."""
    own = ("--root", str(FOLDER / "store"), "--runroot", str(FOLDER / "run"), "--storage-driver", "overlay")
    # There is no systemd here, which by default limits the containers, runs their checks and keeps a journal.
    plain = ("--runtime", "runc", "--cgroup-manager", "cgroupfs", "--events-backend", "none", "--log-level", "fatal")
    done = subprocess.run(
        ["podman", *own, *plain, *arguments],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=seconds, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{arguments}: {done.stdout[-5000:]}"
    return done.stdout


@cache
def image() -> str:
    """Build the image of this checkout; return its name. Skips the test on a machine that cannot."""
    missing = [program for program in PROGRAMS if shutil.which(program) is None]
    if missing or os.geteuid() != 0:
        said = f"the image is built by root with {', '.join(PROGRAMS)}; not here: {', '.join(missing) or 'root'}"
        needed.missing(said, needed.IMAGE)
    try:
        return _build()
    except AssertionError:
        needed.need_index()
        raise


def _build() -> str:
    name = f"stream-server:{hashlib.sha256(os.fsencode(ROOT)).hexdigest()[:12]}"
    with _alone():
        base, steps = _base_and_steps()
        _ensure_base(base)
        with _pip_configuration() as mounts, tempfile.NamedTemporaryFile("w") as file:
            file.write(steps)
            file.flush()
            options = ("--isolation", "chroot", "--format", "docker", "--pull=never", *mounts, "--tag", name)
            told = ("--build-arg", f"VERSION={VERSION}", "--file", file.name)
            podman("build", *options, *told, str(ROOT), seconds=BUILD_SECONDS)
        podman("image", "prune", "--all", "--force", "--filter", "until=168h")  # those of last week's checkouts
    return name


@contextmanager
def container(image_name: str, *command: str, **variables: str) -> Iterator[str]:
    """Run the image as ``compose.yaml`` does, but in the network of this machine. Yields the container's name."""
    limits = ("--ulimit", "nofile=4096:4096", "--ulimit", "nproc=4096:4096", "--pids-limit", "256")
    denied = ("--read-only", "--cap-drop", "all", "--security-opt", "no-new-privileges", "--tmpfs", "/tmp")
    given = [part for name, value in variables.items() for part in ("--env", f"{name}={value}")]
    options = (*limits, *denied, "--network", "host", "--detach", "--timeout", str(RUN_SECONDS), *given)
    name = podman("run", *options, image_name, *command).strip()
    try:
        yield name
    except AssertionError as error:
        error.add_note(podman("logs", name)[-5000:])
        raise
    finally:
        podman("rm", "--force", "--volumes", "--time", "0", name)


def configuration(image_name: str) -> Any:
    """Return what the image says of itself."""
    return json.loads(podman("image", "inspect", image_name))[0]


@contextmanager
def root(image_name: str) -> Iterator[Path]:
    """Mount the image's file system, read-only. Yields its folder."""
    folder = Path(podman("image", "mount", image_name).strip())
    try:
        yield folder
    finally:
        podman("image", "unmount", image_name)


def _base_and_steps() -> tuple[str, str]:
    """Return the base that the Dockerfile names, such as ``debian:trixie-slim``, and the file without its digest.

    A base that is made here has another digest than the published one.
    """
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    found = re.search(r"^FROM (debian:\w+-slim)(@sha256:[0-9a-f]{64})? AS ", text, re.MULTILINE)
    assert found is not None, "the base in the Dockerfile is no slim image of Debian, for which a stand-in is made here"
    return found[1], text.replace(found[2] or "", "")


def _ensure_base(name: str) -> None:
    """Make the base from Debian's packages, unless podman has it."""
    if f"localhost/{name}" in podman("image", "ls", "--format", "{{.Repository}}:{{.Tag}}").splitlines():
        return
    suite = name.removeprefix("debian:").removesuffix("-slim")
    with tempfile.TemporaryDirectory(dir=FOLDER) as made:
        root, packed = f"{made}/root", f"{made}/root.tar"
        # The script is that of unstable, because an older debootstrap does not know the name of the suite.
        commands = [
            ["debootstrap", "--variant=minbase", suite, root, "", "sid"],
            ["tar", "-C", root, "-cf", packed, *(f"--exclude=./usr/share/{left_out}/*" for left_out in LEFT_OUT), "."],
        ]
        for command in commands:
            done = subprocess.run(command, capture_output=True, text=True, timeout=BUILD_SECONDS, check=False)
            assert done.returncode == 0, f"{done.stdout[-2000:]}{done.stderr[-2000:]}"
        podman("import", packed, name, seconds=BUILD_SECONDS)


@contextmanager
def _pip_configuration() -> Iterator[tuple[str, ...]]:
    """Yield options that give the build the index and the certificates of this machine. The image gets neither."""
    certificates = os.environ.get("PIP_CERT", "/etc/ssl/certs/ca-certificates.crt")
    found = runpy.run_path(str(ROOT / ".ci" / "package_index.py"))["configured"](os.environ)
    with tempfile.NamedTemporaryFile("w", suffix=".conf") as file:  # only its owner may read it
        file.write("[global]\ncert = /etc/pip.pem\n" + (f"index-url = {found}\n" if found else ""))
        file.flush()
        mounts = {file.name: "/etc/pip.conf", certificates: "/etc/pip.pem"}
        yield tuple(f"--volume={here}:{there}:ro" for here, there in mounts.items())


@contextmanager
def _alone() -> Iterator[None]:
    """Let one process at a time make images: all workers of a run ask for the same one."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(FOLDER, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
