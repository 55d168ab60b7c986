"""The walks of three deeds through the code: the functions of ours that run between a socket and the answer.

``python -m tests.architecture.walks`` lists them by file. Each function has the number of its first call.
"""

import asyncio
import json
import sys
from asyncio import FIRST_COMPLETED
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager
from types import CodeType, FrameType
from typing import Any, NamedTuple, Self, TypeVar

import uvloop

from filters import subscription
from tests.architecture.source import PACKAGES, ROOT
from tests.redis_process import RedisProcess, binaries
from tests.stream_server.web.running_server import RunningServer, running_server

T = TypeVar("T")

REPEATS = 20
"""Times that a deed is done. A function counts if it runs each time, so that the work of timers does not count: on a
busy machine a deed takes so long that a timer runs most times."""

IDLE_SECONDS = 0.03
"""Time in seconds without a deed. What runs in it belongs to timers that run again and again, and does not count."""

HEARS = frozenset({"stream_server/store/redis/subscription.py", "stream_server/feed/feed.py"})
"""The files of a server that hears the log."""

COMPREHENSIONS = frozenset({"<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"})
OURS = tuple(f"{ROOT / package}/" for package in PACKAGES)
BUS_SECRET = "a secret of both servers, 32 bytes or more"
REQUEST = "{line} HTTP/1.1\r\nHost: here\r\nUser-Agent: walk\r\nAccept: */*\r\nAuthorization: {token}\r\n{more}\r\n"


class Function(NamedTuple):
    """A function by its file, relative to the project, and its qualified name."""

    file: str
    name: str


Calls = dict[Function, set[Function]]
"""The functions that ran, in the order of their first calls, each with the outermost functions that led to it."""


class Walk(NamedTuple):
    """The functions of one deed in the order of their first calls."""

    functions: list[Function]

    @property
    def files(self) -> list[str]:
        """The files of the functions, in the order of the first calls."""
        return list(dict.fromkeys(function.file for function in self.functions))

    def describe(self, deed: str) -> str:
        """Return a text with the functions by file, each with the number of its first call."""
        lines = [f"{deed}: {len(self.functions)} functions in {len(self.files)} files"]
        for file in self.files:
            lines += ["", file]
            lines += [f"{number:5} {one.name}" for number, one in enumerate(self.functions, 1) if one.file == file]
        return "\n".join(lines)


async def take_walks(redis_url: str) -> dict[str, Walk]:
    """Return the walks of a post, an event and the opening of a stream by these names.

    The functions run on a server in this thread. A second server in another thread writes the events that this one
    hears, so that their way is seen alone.
    """
    subscription._summarize.cache_clear()  # filters that a test left there are compared with those of each new stream
    async with _client(redis_url, "first") as client, _Other(redis_url) as other:
        for _ in range(2):  # what happens once, such as a question about the token, is no part of a walk
            await client.post("a zebra")
            await client.open_stream()
        idle = await _record(lambda: asyncio.sleep(IDLE_SECONDS))
        opened = await _record(client.open_stream)
        heard = await _record(lambda: client.hear(other.post))
        posted = await _record(lambda: client.post("hello"))
    timers, hearing = ({root for roots in calls.values() for root in roots} for calls in (idle, heard))
    # On a busy machine the server hears its own post in a task, which heard nothing of the other server's.
    hearing |= {root for roots in posted.values() for root in roots if root.file in HEARS}
    return {
        "post": Walk([function for function, roots in posted.items() if roots - hearing]),
        "event": Walk([function for function, roots in heard.items() if roots - timers]),
        "stream": Walk([function for function, roots in opened.items() if roots - timers]),
    }


async def _record(deed: Callable[[], Awaitable[None]]) -> Calls:
    """Do a deed some times and return what ran each time."""
    runs: list[Calls] = []
    for _ in range(REPEATS):
        calls: Calls = {}
        sys.setprofile(_hook(calls))
        try:
            await deed()
            await asyncio.sleep(0.01)  # what follows the answer, such as a count of it, belongs to the deed
        finally:
            sys.setprofile(None)
        runs.append(calls)
    return {function: roots for function, roots in runs[0].items() if all(function in run for run in runs)}


def _hook(calls: Calls) -> Callable[[FrameType, str, Any], None]:
    def note(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event != "call" or not code.co_filename.startswith(OURS) or code.co_name in COMPREHENSIONS:
            return
        root, caller = code, frame.f_back
        while caller is not None:
            if caller.f_code.co_filename.startswith(OURS):
                root = caller.f_code
            caller = caller.f_back
        calls.setdefault(_function(code), set()).add(_function(root))

    return note


def _function(code: CodeType) -> Function:
    """Return the function of a code. A name that several lambdas share gets the line of each."""
    line = f":{code.co_firstlineno}" if code.co_name == "<lambda>" else ""
    return Function(code.co_filename[len(str(ROOT)) + 1 :], code.co_qualname + line)


class _Client:
    """A user of one server, with one token, a connection for posts, and a connection for each stream."""

    def __init__(self, server: RunningServer) -> None:
        self._port = server.port
        self._token = server.authorization["Authorization"]
        self._streams: list[asyncio.StreamReader] = []
        self._writers: list[asyncio.StreamWriter] = []

    async def connect(self) -> None:
        """Open the connection for posts."""
        self._reader, self._writer = await self._open_connection()

    async def post(self, message: str) -> None:
        """Write a status and read the answer."""
        body = json.dumps({"message": message})
        more = f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        self._writer.write(self._request("POST /v1/statuses", more) + body.encode())
        head = (await self._reader.readuntil(b"\r\n\r\n")).lower()
        assert head.startswith(b"http/1.1 201"), head
        await self._reader.readexactly(int(head.partition(b"content-length:")[2].split()[0]))

    async def open_stream(self) -> None:
        """Open a stream with a filter text that the server has not seen, and wait for its ``hello``."""
        reader, writer = await self._open_connection()
        writer.write(self._request(f"GET /v1/stream?track=zebra{len(self._streams)},zebra"))
        await reader.readuntil(b"\r\n\r\n")
        await reader.readuntil(b"\n\r\n")
        self._streams.append(reader)

    async def hear(self, post: Callable[[str], None]) -> None:
        """Let another server write a post, and wait until it arrives at the newest stream."""
        post("a zebra")
        while b"a zebra" not in await self._streams[-1].readuntil(b"\n\r\n"):
            pass

    def close(self) -> None:
        for writer in self._writers:
            writer.close()

    async def _open_connection(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        self._writers.append(writer)
        return reader, writer

    def _request(self, line: str, more: str = "") -> bytes:
        return REQUEST.format(line=line, token=self._token, more=more).encode()


@asynccontextmanager
async def _client(redis_url: str, login: str) -> AsyncIterator[_Client]:
    """Run a server and a user of it."""
    async with running_server(redis_url, {"bus_secret": BUS_SECRET}, login=login) as server:
        client = _Client(server)
        await client.connect()
        yield client
        client.close()


class _Other:
    """A user of a server in a thread of its own, whose functions do not count."""

    def __init__(self, redis_url: str) -> None:
        self._serving = asyncio.to_thread(lambda: _run(self._serve(redis_url)))
        self._ready = asyncio.Event()
        self._home = asyncio.get_running_loop()

    async def __aenter__(self) -> Self:
        self._thread = asyncio.create_task(self._serving)
        await asyncio.wait({self._thread, asyncio.create_task(self._ready.wait())}, return_when=FIRST_COMPLETED)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._leave.set)
        await self._thread

    def post(self, message: str) -> None:
        """Let the other user write a status. Do not wait for the answer."""
        asyncio.run_coroutine_threadsafe(self._client.post(message), self._loop)

    async def _serve(self, redis_url: str) -> None:
        self._loop, self._leave = asyncio.get_running_loop(), asyncio.Event()
        async with _client(redis_url, "second") as self._client:
            await self._client.post("a zebra")
            self._home.call_soon_threadsafe(self._ready.set)
            await self._leave.wait()


def _run(coroutine: Coroutine[Any, Any, T]) -> T:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(coroutine)


def walks(redis_url: str) -> dict[str, Walk]:
    """Return what :func:`take_walks` returns, on the event loop that the server uses."""
    return _run(take_walks(redis_url))


def main(deeds: Iterable[str]) -> None:
    """Print the walks of ``deeds``, or all without one."""
    redis = RedisProcess(next(iter(binaries().values()))).start()
    try:
        found = walks(redis.url)
    finally:
        redis.stop()
    texts = [found[deed].describe(deed) for deed in deeds or found]
    sys.stdout.write("\n\n".join(texts) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
