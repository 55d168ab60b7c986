"""``make cluster`` as a new user runs it: nginx before two servers on a cluster, until Ctrl-C."""

import asyncio
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import aiohttp
import pytest

from stream_server.commands.doctor_redis import SET_UP_WELL
from tests.command_line import COMMAND, Running, clean_environment, running
from tests.end_to_end.consumer import Consumer
from tests.end_to_end.nginx import find_nginx
from tests.end_to_end.server import ROOT
from tests.processes import alive, children
from tests.waiting import eventually

needs_nginx = pytest.mark.skipif(find_nginx() is None, reason="nginx is not installed")

DEMO = (sys.executable, "-m", "tests.end_to_end.cluster_demo")

WITHOUT_OTHERS = f"""
import sys
import importlib.metadata as metadata
from pathlib import Path
for name, packages in metadata.packages_distributions().items():
    wanted = {{each.lower().replace("_", "-") for each in packages}} & {{*sys.argv[1:]}}
    if not wanted and not Path(name).exists():
        sys.modules[name] = None  # as if it were not installed
import {DEMO[2]}
"""


def test_it_needs_the_packages_of_a_server_and_no_others() -> None:
    """``make cluster`` installs none that only developers use."""
    locked = re.findall(r"^([\w.-]+)==", (ROOT / "requirements.lock").read_text(), re.MULTILINE)
    command = (sys.executable, "-c", WITHOUT_OTHERS, *locked)
    told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert told.stderr == ""


@pytest.fixture
def scratch() -> Iterator[Path]:
    """A folder of temporary files. Paths in it are short enough for a socket."""
    with tempfile.TemporaryDirectory(prefix="sst-") as folder:
        yield Path(folder)


def _values(shown: Running) -> tuple[str, str, list[str]]:
    """Return the address of nginx, the token, and the addresses of the servers, as they are printed."""
    (front,) = re.findall(r"listening on (\S+)", shown.out)
    (token,) = re.findall(r"^export TOKEN=(\S+)", shown.out, re.MULTILINE)
    (servers,) = re.findall(r"^  servers +(.*)", shown.out, re.MULTILINE)
    return front, token, servers.split(", ")


@pytest.mark.extended
@needs_nginx
async def test_a_post_through_nginx_is_heard_at_both_servers_and_ctrl_c_ends_all(tmp_path: Path, scratch: Path) -> None:
    with running(*DEMO, folder=tmp_path, env=clean_environment(TMPDIR=str(scratch))) as shown:
        await asyncio.to_thread(shown.until, lambda: "see talks" in shown.out)
        front, token, servers = _values(shown)
        headers = {"Authorization": f"Bearer {token}", "Accept": "application/x-ndjson"}
        async with aiohttp.ClientSession(headers=headers) as session:
            streams = [
                await Consumer(await session.get(f"{server}/v1/stream?track=cluster"), "ndjson").until(
                    lambda c: c.of("hello")
                )
                for server in servers
            ]
            async with session.post(f"{front}/v1/statuses", json={"message": "a #cluster"}) as answer:
                assert answer.status == 201, await answer.text()
                made = (await answer.json())["id"]
            for stream in streams:
                await stream.until(lambda c: ("post", made) in c.received)
                await stream.close()
        (check,) = re.findall(r"^  check +(.*)", shown.out, re.MULTILINE)
        told = await asyncio.to_thread(subprocess.run, check.split(), capture_output=True, text=True, check=False)
        assert (told.returncode, SET_UP_WELL.sentence in told.stdout) == (0, True), told.stdout
        words = (*COMMAND, "tail", "--user", "ada", "--track", "cluster", "--since", "-5m")
        with running(*words, folder=tmp_path / "tail", env=clean_environment(TMPDIR=str(scratch))) as tail:
            await asyncio.to_thread(tail.until, lambda: "a #cluster" in tail.out)
        started = children(shown.process.pid)
        assert len(started) == 10  # six nodes, two servers, nginx, and the watcher
        assert await asyncio.to_thread(shown.interrupt) == 0
        assert not any(map(alive, started))
        assert shown.out.endswith("stopped\n")
        assert shown.err == ""
    assert list(scratch.rglob("*")) == []  # noqa: ASYNC240 - an empty folder


@pytest.mark.extended
@needs_nginx
async def test_a_killed_demo_leaves_no_process_and_no_file(tmp_path: Path, scratch: Path) -> None:
    with running(*DEMO, folder=tmp_path, env=clean_environment(TMPDIR=str(scratch))) as shown:
        await asyncio.to_thread(shown.until, lambda: "making" in shown.out)
        started = children(shown.process.pid)
        assert len(started) >= 6
        os.kill(shown.process.pid, signal.SIGKILL)
        await eventually(lambda: not any(map(alive, started)), what="the end of all children")
        await eventually(lambda: not any(scratch.iterdir()), what="the end of its files")
