"""The client without ``async``, in an environment that has only the client's own dependencies."""

import asyncio
import gc
import inspect
import os
import signal
import sys
import threading
from asyncio.subprocess import PIPE
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import msgspec
import pytest

from stream_server.client import Client, RequestRefused
from stream_server.client.sync import FORKED, Events
from stream_server.client.sync import Client as BlockingClient
from tests.program import ROOT
from tests.stream_server.client.scripted_server import Answer, RecordedBackoff, message, post, scripted, sse, status
from tests.stream_server.client.test_tokens import session
from tests.waiting import PATIENCE, eventually

PROGRAM = Path(__file__).with_name("notebook.py")


def test_every_call_has_a_blocking_twin() -> None:
    """The blocking twin has the same name and arguments, also for streams; the twin of closing is `close`."""
    calls = {name: call for name, call in inspect.getmembers(Client, inspect.isfunction) if name[0] != "_"}
    for name, call in calls.items():
        twin = getattr(BlockingClient, name)
        assert inspect.signature(twin).parameters == inspect.signature(call).parameters, name
        assert twin.__doc__ == call.__doc__
    assert {"stream", "user_stream", "poll"} <= set(calls)
    assert {"url", "repeats"} <= set(dir(BlockingClient))
    assert len(calls) > 40


async def test_the_options_of_a_stream_reach_it() -> None:
    """A stream by WebSocket, whose refusal says so, and one that tells of its connection in the client's thread."""
    told: list[tuple[str, str]] = []

    def note(sentence: str) -> None:
        told.append((threading.current_thread().name, sentence))

    def use(url: str) -> list[str]:
        with BlockingClient(url, "jwt") as client:
            with pytest.raises(RequestRefused, match="refuses WebSockets"):
                next(client.user_stream(framing="websocket"))
            stream = client.stream(track="x", framing="ndjson", backoff=RecordedBackoff(), on_connection_change=note)
            found = [next(stream).cursor, next(stream).cursor]
            with pytest.raises(RequestRefused, match="the script has ended"):
                next(client.poll(backoff=RecordedBackoff()))
        return found

    lines = [message("post", n, status=status(n, "x")) + b"\n" for n in (1, 2)]
    async with scripted(Answer(), Answer(), *(Answer([line]) for line in lines)) as script:
        assert await asyncio.to_thread(use, script.url) == ["1700000000000-0.1", "1700000000000-0.2"]
    assert {name for name, _ in told} == {"stream-server client"}
    assert told[-1][1] == "reconnected"
    assert script.asked[2].headers["Accept"] == "application/x-ndjson"


FORGETFUL = """
import sys
from stream_server.client import LogIn
from stream_server.client.sync import Client

client = Client(sys.argv[1], LogIn("ada", "a good password"))
stream = client.stream(track="x")
print(next(stream).cursor)
"""


async def test_a_client_that_nobody_closes_closes_itself() -> None:
    """At the end of the program it logs out, without a word of anybody. Earlier, it ends when nobody refers to it."""
    answers = (session(1), Answer([sse("hello", 0), post(1)]), Answer(status=204))
    async with scripted(*answers) as script:
        script.hold_path = "/v1/stream"
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-W", "default", "-c", FORGETFUL, script.url, cwd=ROOT, stdout=PIPE, stderr=PIPE
        )
        said = await asyncio.wait_for(process.communicate(), PATIENCE)
    assert (process.returncode, said) == (0, (b"1700000000000-0.1\n", b""))
    assert [asked.method for asked in script.asked] == ["POST", "GET", "DELETE"]

    def forget(url: str) -> None:
        with pytest.raises(RequestRefused):
            BlockingClient(url, "jwt").me()
        gc.collect()

    async with scripted() as script:
        await asyncio.to_thread(forget, script.url)
        await eventually(lambda: "stream-server client" not in {each.name for each in threading.enumerate()})


FORKING = """
import contextlib
import os
import sys
import threading
from stream_server.client.sync import Client

client = Client(sys.argv[1], "jwt")
unused = Client(sys.argv[1], "jwt")
stream = client.stream(track="x")
print(next(stream).cursor, client.post("x").message, flush=True)
def wait():
    with contextlib.suppress(RuntimeError):
        next(stream)
if sys.argv[2] == "waiting":
    threading.Thread(target=wait, daemon=True).start()
    while stream._fetching is None:
        pass
if os.fork() == 0:
    for call in (client.me, lambda: next(stream)):
        try:
            call()
        except RuntimeError as error:
            print(error, flush=True)
    stream.close()
    client.close()
    print("other client", unused.post("x").message, flush=True)
    sys.exit(7)
print("child", os.waitstatus_to_exitcode(os.wait()[1]), flush=True)
print("parent", client.post("x").message, flush=True)
client.close()
unused.close()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.parametrize("waits", ["idle", "waiting"])
async def test_a_fork_leaves_the_client_to_the_parent(waits: str) -> None:
    """The child hangs nowhere, and says what to do. The parent goes on, on the connections that it has.

    Another thread may hold the stream at the fork.
    """
    posted = Answer([msgspec.json.encode(status(1, "hi"))], 201)
    async with scripted(Answer([sse("hello", 0), post(1)]), *[posted] * 3) as script:
        script.hold_path = "/v1/stream"
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-W", "ignore", "-c", FORKING, script.url, waits,
            cwd=ROOT, stdout=PIPE, stderr=PIPE, start_new_session=True,
        )  # fmt: skip
        try:
            out, err = await asyncio.wait_for(process.communicate(), PATIENCE)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    told = [FORKED] * 2
    assert out.decode().splitlines() == ["1700000000000-0.1 hi", *told, "other client hi", "child 7", "parent hi"]
    assert (process.returncode, err.decode()) == (0, "")


def in_threads(count: int, work: Callable[[], object]) -> list[BaseException | None]:
    """Run the work in so many threads at the same time. Return how each ended; one that hangs fails."""
    ends: list[BaseException | None] = []

    def run() -> None:
        try:
            work()
        except Exception as error:  # noqa: BLE001 - the caller looks at it
            ends.append(error)
        else:
            ends.append(None)

    threads = [threading.Thread(target=run, daemon=True) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert len(ends) == count, "a thread hangs"
    return ends


async def test_threads_share_the_events_of_a_stream() -> None:
    """Each event goes to one of them, and none is lost."""
    found: list[str] = []
    posts = [sse("hello", 0) + b"".join(post(n) for n in range(start, start + 100)) for start in (1, 101)]

    def read(stream: Events) -> None:
        while len(found) < 200:
            found.append(next(stream).cursor)
            if len(found) > 196:  # the others may wait for the last ones
                return

    async with scripted(*(Answer([each]) for each in posts)) as script:
        with BlockingClient(script.url, "jwt") as client:
            stream = client.stream(track="x")
            ends = await asyncio.to_thread(in_threads, 4, lambda: read(stream))
    assert [end for end in ends if end is not None] == []
    assert found == list(dict.fromkeys(found))
    assert set(found) == {f"1700000000000-0.{n}" for n in range(1, len(found) + 1)}


@pytest.mark.parametrize("closes_client", [False, True])
async def test_a_close_ends_the_wait_of_another_thread(*, closes_client: bool) -> None:
    async with scripted(Answer([sse("hello", 0) + post(1)])) as script:
        script.hold = 1
        client = BlockingClient(script.url, "jwt")
        stream = client.stream(track="x")
        await asyncio.to_thread(next, stream)
        waiting = asyncio.create_task(asyncio.to_thread(in_threads, 1, lambda: next(stream)))
        await eventually(lambda: stream._fetching is not None, what="a waiting thread")
        await asyncio.to_thread(client.close if closes_client else stream.close)
        (end,) = await waiting
        assert isinstance(end, RuntimeError)
        assert "another thread closed" in str(end)
        await script.left()
        await asyncio.to_thread(client.close)


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
        async with asyncio.timeout(PATIENCE):
            out, err = await process.communicate()
    assert err.decode() == ""
    lines = out.decode().splitlines()
    advice = lines.pop()
    assert 'pip install "social-stream-server[server]" (' in advice
    assert advice.endswith(" is missing)")
    assert lines == [
        "posted hi", "event post 1", "event post 2", "interrupted", "posted hi", "event post 3", "refused 410",
        "closed", "threads 1", "server parts []",
    ]  # fmt: skip
    assert [asked.query.get("since") for asked in script.asked if asked.path == "/v1/stream"] == [
        "-15m", "1700000000000-0.2"
    ]  # fmt: skip
