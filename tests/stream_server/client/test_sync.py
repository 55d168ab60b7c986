"""The client without ``async``, in an environment that has only the client's own dependencies."""

import asyncio
import inspect
import os
import sys
from asyncio.subprocess import PIPE
from pathlib import Path

import msgspec

from stream_server.client import Client
from stream_server.client.sync import Client as BlockingClient
from tests.program import ROOT
from tests.stream_server.client.scripted_server import Answer, post, scripted, sse, status

PROGRAM = Path(__file__).with_name("notebook.py")


def test_every_call_has_a_blocking_twin() -> None:
    """The blocking twin has the same name and arguments; the twin of closing is `close`."""
    calls = {name: call for name, call in inspect.getmembers(Client, inspect.iscoroutinefunction) if name[0] != "_"}
    for name, call in calls.items():
        twin = getattr(BlockingClient, name)
        assert inspect.signature(twin).parameters == inspect.signature(call).parameters, name
        assert twin.__doc__ == call.__doc__
    assert {"stream", "user_stream", "poll", "url", "repeats"} <= set(dir(BlockingClient))
    assert len(calls) > 40


async def test_the_client_works_alone_and_inside_a_running_loop() -> None:
    """The program may import aiohttp and msgspec only. It also runs a loop itself, and is interrupted by Ctrl-C."""
    posted = Answer([msgspec.json.encode(status(1, "hi"))], 201)
    stream = Answer([sse("hello", 0) + post(1) + post(2)])
    again = Answer([sse("hello", 2) + post(3)])
    async with scripted(posted, stream, posted, again, Answer([b'{"events":[],"cursor":"c"}'])) as script:
        script.hold_path = "/v1/stream"
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-W",
            "error",
            PROGRAM,
            script.url,
            cwd=ROOT,
            stdout=PIPE,
            stderr=PIPE,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        async with asyncio.timeout(30):
            out, err = await process.communicate()
    assert err.decode() == ""
    lines = out.decode().splitlines()
    advice = lines.pop()
    assert 'pip install "stream-server[server]" (' in advice
    assert advice.endswith(" is missing)")
    assert lines == [
        "posted hi", "event post 1", "event post 2", "interrupted", "posted hi", "event post 3", "refused 410",
        "closed", "threads 1", "server parts []",
    ]  # fmt: skip
    assert [asked.query.get("since") for asked in script.asked if asked.path == "/v1/stream"] == [
        "-15m", "1700000000000-0.2"
    ]  # fmt: skip
