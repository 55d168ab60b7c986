"""A server reloads its settings while streams are open: the streams stay open and use the new settings."""

import asyncio
import os
import pty
import re
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path

import aiohttp
import pytest

from stream_server.runtime import run_file
from tests.command_line import COMMAND, ROOT, Outcome, clean_environment, run
from tests.end_to_end.api import Api
from tests.end_to_end.consumer import Consumer
from tests.end_to_end.server import ANNOUNCED, Server, environment
from tests.waiting import eventually

pytestmark = pytest.mark.extended

EVERYTHING = {"firehose": "true"}

SELDOM = "heartbeat_seconds = 3600\n"
OFTEN = "heartbeat_seconds = 0.2\n"


class Site:
    def __init__(self, server: Server, api: Api, file: Path) -> None:
        self.server = server
        self.api = api
        self.file = file

    async def reload(self, text: str) -> Outcome:
        """Write the settings file and run `stream-server reload`."""
        self.file.write_text(text)
        return await asyncio.to_thread(run, "reload", "--data-dir", self.server.data)

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
async def site(folder: Path, text: str, *flags: str, preloaded: bool = True) -> AsyncIterator[Site]:
    file = _written(folder, text)
    with Server(folder, "--settings-file", str(file), *flags, preloaded=preloaded) as server:
        async with Api(server) as api:
            yield Site(server, api, file)


def _written(folder: Path, text: str) -> Path:
    folder.mkdir()
    file = folder / "settings.toml"
    file.write_text(text)
    return file


async def all_beat(streams: list[Consumer]) -> None:
    wanted = [len(stream.of("heartbeat")) + 2 for stream in streams]
    for stream, count in zip(streams, wanted, strict=True):
        await stream.until(partial(_beaten, count))


def _beaten(count: int, stream: Consumer) -> bool:
    return len(stream.of("heartbeat")) >= count


@pytest.mark.parametrize("workers", [pytest.param("1", marks=pytest.mark.nightly), "2"])
async def test_a_reload_reaches_open_streams_and_drops_none(own_folder: Path, workers: str) -> None:
    """Streams that opened under the old file get heartbeats at the new interval, and events continue."""
    async with site(own_folder, SELDOM, "--workers", workers) as here, AsyncExitStack() as stack:
        assert len(await here.pids()) == int(workers)
        streams = await here.streams(stack, 16)
        first = await here.api.post(here.api.admin, "before")
        for stream in streams:
            await stream.until(lambda c: c.events)
            assert stream.of("heartbeat") == [], "heartbeats before the reload: the test would prove nothing"
        outcome = await here.reload(OFTEN + 'log_level = "debug"\nworkers = 7\n')
        assert (outcome.code, outcome.err) == (0, "")
        assert outcome.out == "reloaded heartbeat_seconds: 3600.0 -> 0.2, log_level: info -> debug\n"
        await all_beat(streams)
        last = await here.api.post(here.api.admin, "after")
        for stream in streams:
            await stream.until(lambda c: len(c.events) == 2)
            assert stream.received == [("post", first["id"]), ("post", last["id"])]
            assert stream.of("goodbye") == stream.of("gap") == []
        assert '"message":"reloaded heartbeat_seconds: 3600.0 -> 0.2' in here.server.log


async def test_settings_that_need_a_restart_are_named_in_one_line(own_folder: Path) -> None:
    """The command and the log name these settings. The file cannot change what flags and environment set."""
    async with site(own_folder, SELDOM) as here:
        outcome = await here.reload(
            f'{SELDOM}port = 1\njwt_secret = "{"hunter22" * 5}"\nfanout_batch_size = 3\ntimeline_max = 9\n'
        )
        assert outcome.code == 1
        assert "holds jwt_secret, so other users must not be able to read it" in outcome.err
        here.file.chmod(0o600)
        outcome = await asyncio.to_thread(run, "reload", "--data-dir", here.server.data)
        expected = "reloaded: no setting changed\nthese settings need a restart: timeline_max, fanout_batch_size\n"
        assert outcome.out == expected
        lines = [line for line in here.server.log.splitlines() if "these settings need a restart" in line]
        assert len(lines) == 1
        assert '"level":"warning"' in lines[0]
        assert "hunter22" not in here.server.log + outcome.out + outcome.err


async def test_an_invalid_file_changes_nothing_for_present_and_later_workers(own_folder: Path) -> None:
    """The server reports the error once, with the setting's name.

    A worker that starts later has the same settings as others.
    """
    async with site(own_folder, SELDOM, "--workers", "2") as here, AsyncExitStack() as stack:
        streams = await here.streams(stack, 8)
        assert (await here.reload(OFTEN)).code == 0
        await all_beat(streams)
        outcome = await here.reload(SELDOM + "retry_ms = -1\n")
        refusal = f"nothing was reloaded: {here.file}: retry_ms must be 0 ms or more"
        assert (outcome.code, outcome.out, outcome.err) == (1, "", f"stream-server: {refusal}\n")
        assert here.server.log.count("nothing was reloaded") == 1
        assert refusal in here.server.log
        await all_beat(streams)
        killed, *_ = before = await here.pids()
        os.kill(killed, signal.SIGKILL)

        async def replaced() -> set[int]:
            try:
                pids = await here.pids()
            except aiohttp.ClientError:
                return set()
            return pids if len(pids) == 2 and pids != before else set()

        await eventually(replaced, seconds=40, what="a new worker")
        await all_beat(await here.streams(stack, 16))
        assert "did not follow" not in here.server.log


async def test_a_reloaded_log_bound_applies_at_once(own_folder: Path) -> None:
    """A reloaded limit of the log applies to the existing log without a restart."""
    async with site(own_folder, SELDOM + "canary_seconds = 0.2\n") as here:
        for number in range(150):
            await here.api.post(here.api.admin, f"hello {number}")
        start = await here.api.head()
        assert (await here.reload("log_max_seconds = 0.001\n")).code == 0
        await here.api.until_metric("log_entries", lambda count: count < 100, seconds=40)
        async with await here.api.stream({**EVERYTHING, "since": start}) as stream:
            last = await here.api.post(here.api.admin, "after")
            await stream.until(lambda c: c.events)
            assert (stream.received, stream.of("gap")) == ([("post", last["id"])], [])


async def test_reload_by_process_id(own_folder: Path) -> None:
    """Without a data folder, the command gets the process id. It does not signal a process that is not a server."""
    async with site(own_folder, SELDOM, preloaded=False) as here, AsyncExitStack() as stack:
        (stream,) = await here.streams(stack, 1)
        here.file.write_text(OFTEN)
        assert here.server.process is not None
        outcome = await asyncio.to_thread(run, "reload", "--pid", str(here.server.process.pid))
        assert (outcome.code, outcome.err) == (0, "")
        await all_beat([stream])
        outcome = await asyncio.to_thread(run, "reload", "--pid", str(os.getpid()))
        assert (outcome.code, outcome.err) == (
            3,
            f"stream-server: process {os.getpid()} is not a running stream-server\n",
        )


@pytest.mark.parametrize("born", ["", "1"])
def test_a_stale_run_file_signals_no_other_process(tmp_path: Path, born: str) -> None:
    """The system may reuse a process id. The start time shows that the process is another one."""
    bystander = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE)
    try:
        run_file.write(str(tmp_path), run_file.RunFile("unix:///gone.sock", "http://127.0.0.1:9", bystander.pid, born))
        outcome = run("reload", "--data-dir", tmp_path, env=clean_environment())
        assert outcome.code == 3
        assert "is not running" in outcome.err
        assert bystander.stdin is not None
        bystander.stdin.close()
        assert bystander.wait(20) == 0, "the command signalled another process"
    finally:
        bystander.kill()


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        ((), 2, "no server named: give its --data-dir or its --pid"),
        (("--pid", "4711", "--data-dir", "x"), 2, "give --pid or --data-dir, not both"),
        (("--data-dir", "/nonexistent"), 3, "no server is running on the data folder /nonexistent"),
    ],
)
def test_reload_without_a_server_is_an_error(arguments: tuple[str, ...], code: int, sentence: str) -> None:
    """The command prints one sentence and ends with an exit code."""
    outcome = run("reload", *arguments)
    assert (outcome.code, outcome.out, outcome.err) == (code, "", f"stream-server: {sentence}\n")


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
        said += await asyncio.wait_for(asyncio.to_thread(os.read, master, 4096), 40)
    assert run_file.read(str(tmp_path)) is not None
    os.close(master)
    assert await asyncio.wait_for(server.wait(), 20) == 0
    assert run_file.read(str(tmp_path)) is None
