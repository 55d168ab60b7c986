"""npm packages as a test uses them: those of a lock file, and that of the JavaScript client as ``npm pack`` makes it.

What the network brings is kept outside of the checkout, under the hash of its lock file, for all checkouts of the
machine.
"""

import os
import platform
import shutil
import subprocess
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from tests.clients.venvs import PROGRAMS, environment
from tests.made_once import CACHE, once
from tests.needed import BROWSER, INDEX, missing
from tests.program import ROOT

PACKAGE = ROOT / "clients" / "javascript"

NAME = "stream-server-client"

TOOLS = Path(__file__).parent / "locks" / "npm"
"""The folder with the lock file of what the tests use: versions of Node, sockets, types."""

MIN_NODE = 20

NPM_SECONDS = 300
"""A registry may be slow, and the first test on a machine fetches three versions of Node."""

TEST_SECONDS = 2 * NPM_SECONDS
"""The bound of a test that may be this first one."""


class Node(NamedTuple):
    """A Node of this machine, and its major version."""

    program: str
    version: int

    @property
    def has_web_socket(self) -> bool:
        """Whether this Node has the class ``WebSocket`` of browsers."""
        return self.version >= 22


def own_node() -> Node:
    """Return the Node of this machine. Without one, or with an older one, the test is skipped, and fails in CI."""
    found = shutil.which("node")
    if found is None or shutil.which("npm") is None:
        missing("there is no Node with npm on PATH", BROWSER)
    shown = subprocess.run([str(found), "--version"], capture_output=True, text=True, check=True).stdout
    version = int(shown.lstrip("v").partition(".")[0])
    if version < MIN_NODE:
        missing(f"Node {shown.strip()} is older than {MIN_NODE}", BROWSER)
    return Node(str(found), version)


def all_nodes() -> list[Node]:
    """Return the Node of this machine, and those of the lock file with another version, which are for Linux alone."""
    own = own_node()
    arch = {"x86_64": "x64", "aarch64": "arm64"}.get(platform.machine(), "")
    found = modules(TOOLS).glob(f"node_modules/node*-{arch}/bin/node") if platform.system() == "Linux" else ()
    others = [Node(str(each), int(each.parts[-3][4:6])) for each in sorted(found)]
    return [own, *(each for each in others if each.version != own.version)]


def modules(folder: Path) -> Path:
    """Return a folder with the ``node_modules`` of a lock file. If npm cannot install them, the test is skipped."""
    files = [folder / name for name in ("package.json", "package-lock.json", ".npmrc")]
    key = sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:16]

    def install(target: Path) -> None:
        for file in files:
            shutil.copy(file, target)
        download(target, "ci", "--ignore-scripts")

    return once(CACHE, f"npm-{key}", install)


def download(folder: Path, *arguments: str) -> None:
    """Run npm in ``folder``. If it fails, the test is skipped, and fails in CI."""
    own_node()
    try:
        npm(folder, *arguments, "--fetch-retries=1")  # by default, it gives up after minutes
    except subprocess.CalledProcessError as error:
        missing(f"npm cannot {arguments[0]}: {error.stderr[-500:]}", INDEX)


def npm(folder: Path, *arguments: object, variables: Mapping[str, str] | None = None) -> str:
    """Run npm in ``folder`` and return its output. Raises CalledProcessError if it fails."""
    return run(folder, "npm", "--no-audit", "--no-fund", "--no-update-notifier", *arguments, variables=variables)


def run(folder: Path, *command: object, variables: Mapping[str, str] | None = None) -> str:
    """Run a program in ``folder`` with the settings of npm. Raises CalledProcessError if it fails."""
    kept = {name: value for name, value in os.environ.items() if name.lower().startswith("npm_config_")}
    env = {**environment(None), "HOME": str(Path.home()), **kept, **(variables or {})}
    words = [*map(str, command)]
    return subprocess.run(
        words, cwd=folder, env=env, capture_output=True, text=True, timeout=NPM_SECONDS, check=True
    ).stdout


def checked_out(folder: Path) -> Path:
    """Copy what the package is made of, and return the copy's folder of the package, where TypeScript is installed."""
    console = Path("stream_server") / "console"
    (folder / console).mkdir(parents=True)
    for name in ("LICENSE", console / "client.js", console / "types.d.ts"):
        shutil.copy(ROOT / name, folder / name)
    copy = folder / PACKAGE.relative_to(ROOT)
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("node_modules", "dist", "LICENSE", "*.tgz"))
    (copy / "node_modules").symlink_to(modules(PACKAGE) / "node_modules")
    return copy


def pack(folder: Path) -> Path:
    """Return the packed file of the package, made in a copy of the checkout in ``folder``."""
    copy = checked_out(folder)
    npm(copy, "pack")
    (packed,) = copy.glob("*.tgz")
    return packed


def install(folder: Path) -> None:
    """Install the packed file, and nothing else, into an empty folder without a network; put the programs beside it."""
    packed = pack(folder / "checkout")
    npm(folder, "install", "--offline", packed)
    for program in PROGRAMS.glob("client_js*"):
        shutil.copy(program, folder)
