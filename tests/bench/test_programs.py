"""The programs in C: they send, receive and count what they should."""

import asyncio
import json
import subprocess
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest
import redis
from aiohttp import web
from aiohttp.test_utils import TestServer

from bench.native import Programs, compiled
from tests.redis_process import RedisProcess
from tests.waiting import PATIENCE

MESSAGE = (
    '1795507484287-{seq} {n} post public {{"wire":{{"status":{{"id":"7{n}","message":"topic{topic} is what they say",'
    '"posted":"2026-11-24T08:04:44.287Z","meta":{{"t":{t}}}}}}},"facts":{{"author":{{"id":"1"}}}},"mac":"00"}}'
)


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Programs:
    try:
        return compiled(tmp_path_factory.mktemp("programs"))
    except RuntimeError as problem:
        pytest.skip(str(problem))


class Publisher:
    """Publishes posts on the channel that the floor hears."""

    def __init__(self, client: "redis.Redis") -> None:
        self.redis = client
        self.published = 0

    def post(self, *topics: int) -> None:
        """Publish one post a topic, all in one write of Redis."""
        with self.redis.pipeline(transaction=True) as commands:
            for topic in topics:
                self.published += 1
                t = time.monotonic_ns()
                message = MESSAGE.format(seq=self.published, n=self.published, topic=topic, t=t)
                commands.publish("events:post", message)
            commands.execute()


@contextmanager
def publishing(server: RedisProcess) -> Iterator[Publisher]:
    with redis.Redis(unix_socket_path=str(server.socket)) as client:
        yield Publisher(client)


@contextmanager
def floor(programs: Programs, server: RedisProcess, *flags: str) -> Iterator[tuple[int, int]]:
    """Run the floor. Yield its port and its process id."""
    command = [programs.floor, "--socket", str(server.socket), *flags]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield int(process.stdout.readline().rpartition(":")[2]), process.pid
        finally:
            process.terminate()
            process.wait(PATIENCE)


@asynccontextmanager
async def opened(port: int, path: str) -> AsyncIterator[asyncio.StreamReader]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    assert b" 200 OK\r\n" in await reader.readuntil(b"\r\n\r\n")
    yield reader
    writer.close()
    await writer.wait_closed()


async def event(reader: asyncio.StreamReader) -> bytes:
    """Return the next chunk, which is one event."""
    size = int(await reader.readuntil(b"\r\n"), 16)
    data = await reader.readexactly(size + 2)
    assert data.endswith(b"\n\n\r\n")
    return data[:-4]


@pytest.mark.parametrize("flags", [[], ["--batch"]])
async def test_the_floor_sends_each_post_to_whom_it_concerns(
    programs: Programs, redis_server: RedisProcess, flags: list[str]
) -> None:
    """Of posts about two topics, a client of the firehose gets both, and the others get one each, framed as SSE."""
    with floor(programs, redis_server, *flags) as (port, _), publishing(redis_server) as publisher:
        async with (
            asyncio.timeout(PATIENCE), opened(port, "/") as everything, opened(port, "/topic3,nobody1says") as three,
            opened(port, "/topic4") as four,
        ):  # fmt: skip
            publisher.post(3, 4)
            first, second = await event(everything), await event(everything)
            assert await event(three) == first
            assert await event(four) == second
    cursor, name, data = first.decode().split("\n")
    assert (cursor, name) == ("id: 1795507484287-1.1", "event: post")
    sent = json.loads(data.removeprefix("data: "))
    assert (sent["kind"], sent["cursor"], sent["at"]) == ("post", "1795507484287-1.1", "2026-11-24T08:04:44.287Z")
    assert sent["status"]["message"] == "topic3 is what they say"


def run_clients(command: list[str], port: int, pid: int, lines: list[str], folder: Path, *more: str) -> "Any":
    """Start clients that measure for half a second."""
    requests = folder / "requests"
    requests.write_text("\n".join(lines) + "\n")
    options = ["--port", str(port), "--pid", str(pid), "--requests", str(requests), "--duration", "0.5", *more]
    return subprocess.Popen([*command, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_the_clients_count_the_events_of_their_streams(
    programs: Programs, redis_server: RedisProcess, tmp_path: Path
) -> None:
    """Three clients receive what is published, with a delay since the time in each post."""
    with floor(programs, redis_server) as (port, pid), publishing(redis_server) as publisher:
        lines = ["GET /\tAccept: text/event-stream"] * 3
        with run_clients([programs.load, "streams"], port, pid, lines, tmp_path, "--conns", "3") as clients:
            assert clients.stderr.readline() == "ready 3 of 3\n"
            while clients.poll() is None:
                publisher.post(1, 2)
                time.sleep(0.01)
            figures = json.loads(clients.stdout.read())
    assert (figures["opened"], figures["refused"], figures["closed_early"]) == (3, 0, 0)
    assert 0 < figures["count"] <= 3 * publisher.published
    assert 0 < figures["p50_ms"] <= figures["p99_ms"]
    assert figures["bytes"] / figures["count"] == pytest.approx(len(MESSAGE), abs=120)


async def test_the_clients_send_requests_again_and_again(programs: Programs, tmp_path: Path) -> None:
    """Each connection sends all lines in turn, with headers and body, and counts the answers that are not 2xx."""
    seen: list[tuple[str, str, str, str]] = []

    async def answer(request: web.Request) -> web.Response:
        body = await request.text()
        seen.append((request.method, request.path, request.headers.get("X-Mine", ""), body))
        return web.Response(text="no" * 50_000, status=404 if request.path == "/wrong" else 200)

    app = web.Application()
    app.router.add_route("*", "/{tail:.*}", answer)
    async with TestServer(app) as server:
        assert server.port is not None
        lines = ["GET /one\tX-Mine: a", 'POST /two\tX-Mine: b\t@{"x":1}', "GET /wrong"]
        command = [programs.load, "requests"]
        pid = 1  # any process: nothing asks what this server costs
        clients = run_clients(command, server.port, pid, lines, tmp_path, "--conns", "2")
        out, _ = await asyncio.to_thread(clients.communicate)
    figures = json.loads(out)
    assert set(seen) == {("GET", "/one", "a", ""), ("POST", "/two", "b", '{"x":1}'), ("GET", "/wrong", "", "")}
    assert (figures["opened"], figures["closed_early"]) == (2, 0)
    assert 0 < figures["count"] <= len(seen)
    assert figures["refused"] == pytest.approx(len(seen) / 3, abs=3)


def test_without_a_compiler_the_reason_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The benchmark cannot run, and says why."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    with pytest.raises(RuntimeError, match="there is none on PATH"):
        compiled(tmp_path)
