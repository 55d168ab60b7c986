"""A server reloads its settings while streams are open: the streams stay open, and new limits apply at once."""

import asyncio
import os
import pty
import re
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import aiohttp
import pytest

from stream_server.runtime import run_file
from tests.command_line import COMMAND, ROOT
from tests.end_to_end.api import Api
from tests.end_to_end.consumer import Consumer
from tests.end_to_end.server import ANNOUNCED, Server, environment
from tests.waiting import PATIENCE, eventually

pytestmark = pytest.mark.extended

EVERYTHING = {"firehose": "true"}

FEW, MANY = 'limits = "connects=0 lookups=1"\n', 'limits = "connects=0 lookups=1000"\n'
"""Settings files: how often one address may ask whether a login is free, in a minute."""


class Site:
    def __init__(self, server: Server, api: Api, file: Path) -> None:
        self.server = server
        self.api = api
        self.file = file

    async def reload(self, text: str, expected: str) -> None:
        """Write the settings file and send SIGHUP. Wait until the log says ``expected`` once more."""
        before = self.server.log.count(expected)
        self.file.write_text(text)
        running = run_file.read(str(self.server.data))
        assert running is not None
        os.kill(running.pid, signal.SIGHUP)
        await eventually(lambda: self.server.log.count(expected) > before, what=expected)

    async def streams(self, stack: AsyncExitStack, count: int) -> list[Consumer]:
        """Open streams on separate connections, in both framings."""
        opened = [await self.api.stream(EVERYTHING, framing=("sse", "ndjson")[number % 2]) for number in range(count)]
        return [await stack.enter_async_context(one) for one in opened]

    async def pids(self) -> set[int]:
        """Return the ids of the worker processes."""
        async with aiohttp.ClientSession() as session, session.get(self.server.address + "/metrics") as answer:
            told = re.findall(r'^stream_server_process_info\{pid="(\d+)"', await answer.text(), re.MULTILINE)
        return set(map(int, told))


@asynccontextmanager
async def site(folder: Path, text: str, *flags: str) -> AsyncIterator[Site]:
    file = _written(folder, text)
    variables = {"STREAM_SERVER_LIMITS": None}
    async with Server(folder, "--settings-file", str(file), *flags, variables=variables) as server, Api(server) as api:
        yield Site(server, api, file)


def _written(folder: Path, text: str) -> Path:
    folder.mkdir()
    file = folder / "settings.toml"
    file.write_text(text)
    return file


async def lookups(here: Site, count: int) -> set[int]:
    """Return the statuses of questions whether a login is free, each on a connection of its own."""
    found = set()
    for _ in range(count):
        async with aiohttp.ClientSession() as session:
            url = here.server.address + "/v1/users/available?login=nobody"
            async with session.get(url, headers={"Connection": "close"}) as answer:
                found.add(answer.status)
    return found


@pytest.mark.parametrize("workers", [pytest.param("1", marks=pytest.mark.nightly), "2"])
async def test_a_reload_applies_limits_and_drops_no_stream(own_folder: Path, workers: str) -> None:
    """All workers use the new limits, also those that start later. The streams that are open continue."""
    async with site(own_folder, MANY, "--workers", workers) as here, AsyncExitStack() as stack:
        assert len(await here.pids()) == int(workers)
        streams = await here.streams(stack, 8)
        first = await here.api.post(here.api.admin, "before")
        assert await lookups(here, 12) == {200}
        await here.reload(FEW + 'log_level = "debug"\ntimeline_max = 9\n', "reloaded ")
        said = "reloaded limits: connects=0 lookups=1000 -> connects=0 lookups=1, log_level: info -> debug"
        assert f"{said}; these settings need a restart: timeline_max" in here.server.log

        async def refuse_all() -> bool:
            return await lookups(here, 12) == {429}

        await eventually(refuse_all, what="all workers have the new limits")
        last = await here.api.post(here.api.admin, "after")
        for stream in streams:
            await stream.until(lambda c: len(c.events) == 2)
            assert stream.received == [("post", first["id"]), ("post", last["id"])]
            assert stream.of("goodbye") == stream.of("gap") == []
        if workers == "2":
            await check_a_later_worker(here)
            assert await lookups(here, 12) == {429}


async def check_a_later_worker(here: Site) -> None:
    """Kill a worker, and wait for another."""
    killed, *_ = before = await here.pids()
    os.kill(killed, signal.SIGKILL)

    async def replaced() -> bool:
        try:
            pids = await here.pids()
        except aiohttp.ClientError:
            return False
        return len(pids) == 2 and pids != before

    await eventually(replaced, what="a new worker")


async def test_an_invalid_file_changes_nothing(own_folder: Path) -> None:
    """The server says once what is wrong, without a secret. A file that others can read may not have one."""
    async with site(own_folder, FEW, "--workers", "2") as here:
        await here.reload(MANY + "retry_ms = -1\n", f"nothing was reloaded: {here.file}: retry_ms must be 0 ms or more")
        await here.reload(f'{FEW}jwt_secret = "{"hunter22" * 5}"\n', "so other users must not be able to read it")
        assert here.server.log.count("nothing was reloaded") == 2
        assert 429 in await lookups(here, 12)
        assert "hunter22" not in here.server.log


async def test_a_closed_terminal_still_ends_a_server(tmp_path: Path) -> None:
    """A closed terminal sends SIGHUP too. The server then stops with goodbyes instead of reloading."""
    master, slave = pty.openpty()
    code = (
        "import fcntl, os, signal, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); "
        "signal.signal(signal.SIGHUP, signal.SIG_DFL); "  # these tests may be run by nohup
        "os.execv(sys.argv[1], sys.argv[1:])"
    )
    server = await asyncio.create_subprocess_exec(
        sys.executable, "-c", code, *COMMAND, "serve", "--port", "0", "--data-dir", str(tmp_path), cwd=ROOT,
        env=environment(), stdin=slave, stdout=slave, stderr=slave, start_new_session=True,
    )  # fmt: skip
    os.close(slave)
    said = b""
    while ANNOUNCED.encode() not in said:
        said += await asyncio.wait_for(asyncio.to_thread(os.read, master, 4096), PATIENCE)
    assert run_file.read(str(tmp_path)) is not None
    os.close(master)
    assert await asyncio.wait_for(server.wait(), PATIENCE) == 0
    assert run_file.read(str(tmp_path)) is None
