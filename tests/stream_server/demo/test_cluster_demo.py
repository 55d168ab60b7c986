"""``stream-server cluster demo`` as a new user runs it: nginx before two servers on a cluster, until Ctrl-C."""

import asyncio
import os
import re
import signal
from pathlib import Path

import aiohttp
import pytest

from stream_server.demo.cluster_demo import find_nginx
from tests.command_line import COMMAND, Running, clean_environment, run, running
from tests.end_to_end.consumer import Consumer
from tests.waiting import eventually

pytestmark = pytest.mark.extended


def _children(pid: int) -> list[int]:
    return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _gone(pids: list[int]) -> bool:
    return all(_state(pid) in {"", "Z"} for pid in pids)


def _state(pid: int) -> str:
    """Return the letter of a process's state; Z if it has ended and nobody has asked for its exit code."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return ""


def _skip_without_programs() -> None:
    if find_nginx() is None:
        pytest.skip("nginx is not installed, so the demo is not tried with it")


def _values(shown: Running) -> tuple[str, str, list[str]]:
    """Return the address of nginx, the token, and the addresses of the servers, as they are printed."""
    (front,) = re.findall(r"listening on (\S+)", shown.out)
    (token,) = re.findall(r"^export TOKEN=(\S+)", shown.out, re.MULTILINE)
    (servers,) = re.findall(r"^  servers +(.*)", shown.out, re.MULTILINE)
    return front, token, servers.split(", ")


async def test_a_post_through_nginx_is_heard_at_both_servers_and_ctrl_c_ends_all(tmp_path: Path) -> None:
    _skip_without_programs()
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    environment = clean_environment(TMPDIR=str(scratch))
    with running(*COMMAND, "cluster", "demo", folder=tmp_path, env=environment) as shown:
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
            found = await asyncio.to_thread(run, "token", "--user", "ada", env=environment)
            assert (found.code, found.out.count("."), found.err) == (0, 2, "")  # both servers count as one
            for stream in streams:
                await stream.until(lambda c: ("post", made) in c.received)
                await stream.close()
        children = _children(shown.process.pid)
        assert len(children) == 10  # six nodes, two servers, nginx, and the watcher
        assert await asyncio.to_thread(shown.interrupt) == 0
        assert _gone(children)
        assert shown.out.endswith("stopped\n")
        assert shown.err == ""
    assert list(scratch.iterdir()) == []


async def test_a_killed_demo_leaves_no_process(tmp_path: Path) -> None:
    _skip_without_programs()
    with running(*COMMAND, "cluster", "demo", folder=tmp_path, env=clean_environment()) as shown:
        await asyncio.to_thread(shown.until, lambda: "replicas copy" in shown.out)
        children = _children(shown.process.pid)
        assert len(children) >= 6
        os.kill(shown.process.pid, signal.SIGKILL)
        await eventually(lambda: _gone(children), what="the end of all children")
