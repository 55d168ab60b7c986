"""The JavaScript client in Node: by unit tests of its own, and with a real server that is killed meanwhile."""

import asyncio
import os
import shutil
import subprocess
from asyncio.subprocess import PIPE
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clients.venvs import PROGRAMS, environment
from tests.end_to_end.api import Api, mint
from tests.end_to_end.server import Server, restartable
from tests.program import ROOT, Program
from tests.waiting import eventually

pytestmark = pytest.mark.extended

CLIENT_JS = ROOT / "stream_server" / "console" / "client.js"

MIN_NODE = 20

NODE_FLAGS = ("--no-warnings", "--experimental-websocket", "--experimental-eventsource")
"""Flags that give Node 20 the two classes of browsers."""

UNIT_SECONDS = 60


@pytest.fixture(scope="module")
def node() -> str:
    """Return the path of Node. Skips the test if there is none, or only an older one."""
    found = shutil.which("node")
    if found is None:
        pytest.skip("there is no Node on PATH")
    version = subprocess.run([found, "--version"], capture_output=True, text=True, check=True).stdout
    if int(version.lstrip("v").partition(".")[0]) < MIN_NODE:
        pytest.skip(f"Node {version.strip()} is older than {MIN_NODE}")
    return found


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Server]:
    """Start a server on a port that it keeps after a restart."""
    with restartable(tmp_path / "own", "--heartbeat-seconds", "0.5") as server:
        yield server


def test_the_unit_tests_pass(node: str) -> None:
    command = [node, "--no-warnings", "--test", "--test-force-exit", str(PROGRAMS / "client_js_unit.mjs")]
    env = {**environment(None), "CLIENT_JS": str(CLIENT_JS)}
    run = subprocess.run(command, env=env, capture_output=True, text=True, timeout=UNIT_SECONDS, check=False)
    assert run.returncode == 0, run.stdout[-5000:] + run.stderr[-2000:]
    assert "pass 29" in run.stdout, "each of them ran"


@pytest.mark.parametrize("transport", ["websocket", "events"])
async def test_it_misses_and_repeats_nothing(node: str, own: Server, transport: str) -> None:
    """The server is killed between two posts, and the filters change on the open stream."""
    async with Api(own) as api:
        uid = await api.user()
        process = await asyncio.create_subprocess_exec(
            node, *NODE_FLAGS, PROGRAMS / "client_js.mjs", own.address, mint(uid), transport, CLIENT_JS,
            stdout=PIPE, env={**environment(None), "HOME": os.devnull}, start_new_session=True,
        )  # fmt: skip
        program = Program(process)
        try:
            await program.hear("live")
            await api.post(uid, "tea once")
            assert await program.hear("event_tea_once") == ["tea"]
            own.kill()
            assert await program.hear("waiting")
            program.said.clear()
            own.start()
            await api.post(uid, "cake twice")
            assert await program.hear("event_cake_twice") == ["cake"]
            await _until_filters_are(api, uid, "scone")
            await api.post(uid, "scone first")
            await api.post(uid, "tea last")
            assert await program.hear("end") == "closed"
            events = [name for one in program.said for name in one if name.startswith("event_")]
            assert events == ["event_cake_twice", "event_scone_first", "event_tea_last"]
            assert await program.end() == 0
        finally:
            if process.returncode is None:
                process.kill()


async def _until_filters_are(api: Api, uid: str, word: str) -> None:
    """Wait until the server has the changed filters of the stream, or the stream that replaced it."""

    async def has_word() -> bool:
        streams = (await api.done("GET", "/v1/streams", token=mint(uid)))["streams"]
        return any(word in str(one["parameters"]) for one in streams)

    await eventually(has_word, seconds=20, what="the changed filters")
