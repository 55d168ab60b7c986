"""Shutdown: which requests the server answers, refuses or ends with goodbye, at difficult moments."""

import asyncio
import json
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from hashlib import sha256
from typing import Any, Self

import aiohttp
import pytest
from aiohttp import web

from stream_server import app as room
from stream_server.app import serve_application
from stream_server.config.settings import Config
from stream_server.hub.disconnect import MIN_RETRY_SECONDS, ReconnectSpread
from stream_server.runtime.listening import listen_alone
from stream_server.web.http import app_keys
from tests.stream_server import tokens
from tests.waiting import PATIENCE, eventually

ASKED = {
    "/v1/stream": "track=x", "/v1/events": "track=x&wait=60", "/1.1/statuses/filter.json": "track=x",
    "/2/tweets/sample/stream": "",
}  # fmt: skip
"""One stream of each kind and a poll, with their parameters."""


class Stand:
    """A server in this process that shuts down when a test says so, and a client of it."""

    def __init__(self, app: web.Application, port: int, leave: asyncio.Event, ended: "asyncio.Task[None]") -> None:
        self.app = app
        self.port = port
        self.leave = leave
        self.ended = ended
        self.uid = ""
        self.session = aiohttp.ClientSession(f"http://127.0.0.1:{port}")

    async def __aenter__(self) -> Self:
        body = {"login": "somebody", "name": "S", "email": "s@example.com", "password": "correct horse"}
        async with self.session.post("/v1/users", json=body) as answer:
            self.uid = (await answer.json())["id"]
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.session.close()
        self.leave.set()
        await self.ended

    @property
    def bearer(self) -> dict[str, str]:
        """The header of somebody who may do all."""
        return {"Authorization": f"Bearer {tokens.fresh(self.uid, 'read write stream firehose')}"}

    async def begin_to_stop(self) -> None:
        """Do what SIGTERM does; return once the shutdown has begun."""
        self.leave.set()
        await eventually(lambda: self.app[app_keys.HUB].is_stopping)

    async def ask(self, method: str, path: str, **more: Any) -> tuple[int, aiohttp.ClientResponse, bytes]:
        """Send one request over its own connection, so that it meets the listening socket."""
        async with (
            aiohttp.ClientSession(f"http://127.0.0.1:{self.port}") as fresh,
            fresh.request(method, path, headers=self.bearer, **more) as answer,
        ):
            return answer.status, answer, await answer.read()

    async def raw(self, head: str, body: str = "") -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Open a connection and send this request, with token and body length."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        lines = [head, "Host: x", f"Authorization: {self.bearer['Authorization']}", "Content-Type: application/json"]
        writer.write(("\r\n".join(lines) + f"\r\n\r\n{body}").encode())
        await writer.drain()
        return reader, writer

    async def stay(self) -> asyncio.StreamWriter:
        """Open a stream whose client reads nothing, so that the server waits for it."""
        reader, writer = await self.raw("GET /v1/stream?track=x HTTP/1.1")
        await reader.readuntil(b"\n\r\n")
        await eventually(lambda: len(self.app[app_keys.HUB].registry) > 0)
        (member,) = self.app[app_keys.HUB].registry.list_clients()
        # The transport holds more than the kernel takes for a client that does not read.
        assert isinstance(writer.transport, asyncio.Transport)
        writer.transport.pause_reading()
        for _ in range(100):
            member.write(b"2\r\n\n\n\r\n" * 10_000)
        assert member.buffered_bytes() > 0
        return writer


@pytest.fixture
def settings() -> dict[str, Any]:
    """Return the settings; tests may override them."""
    return {}


@pytest.fixture
async def stand(redis_url: str, monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any]) -> AsyncIterator[Stand]:
    """Start a server that waits for its last clients."""
    monkeypatch.setattr(room, "GOODBYE_SECONDS", 60.0)
    given = {"redis_timeout_seconds": PATIENCE, "shutdown_seconds": 400.0, "limits": "off", **settings}
    config = tokens.config(redis=redis_url, password_memory_kib=8, password_rounds=1, **given)
    begun: asyncio.Future[tuple[web.Application, int]] = asyncio.get_running_loop().create_future()
    leave = asyncio.Event()
    ended = asyncio.create_task(_serve(config, begun, leave))
    either: set[asyncio.Future[Any]] = {begun, ended}
    await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
    async with Stand(*begun.result(), leave, ended) as made:
        yield made


async def _serve(config: Config, begun: "asyncio.Future[tuple[web.Application, int]]", leave: asyncio.Event) -> None:
    listening = listen_alone("127.0.0.1", 0)
    async with serve_application(config, lambda: listening) as app:
        begun.set_result((app, listening.getsockname()[1]))
        await leave.wait()


async def test_a_stopping_server_still_listens_and_says_so(stand: Stand) -> None:
    """While goodbyes are pending, the server answers new connections: health, readiness and writes."""
    client = await stand.stay()
    await stand.begin_to_stop()
    status, answer, body = await stand.ask("GET", "/readyz")
    assert (status, json.loads(body)["stopping"], answer.headers["Retry-After"]) == (503, True, "1")
    assert (await stand.ask("GET", "/healthz"))[0] == 200
    status, answer, _ = await stand.ask("POST", "/v1/statuses", json={"message": "the last one"})
    assert (status, answer.headers["Connection"]) == (201, "close")
    client.transport.abort()
    await stand.ended


@pytest.mark.parametrize("path", ASKED)
async def test_a_stopping_server_refuses_what_would_stream(stand: Stand, path: str) -> None:
    """New streams get 503 before the first byte, in the protocol's own shape, with a retry delay."""
    client = await stand.stay()
    await stand.begin_to_stop()
    status, answer, body = await stand.ask("GET", f"{path}?{ASKED[path]}")
    assert_refused(path, status, answer.headers, body)
    client.transport.abort()


def assert_refused(path: str, status: int, headers: Any, body: bytes) -> None:
    """Check that this is the shutdown error in the protocol of this path."""
    assert status == 503
    assert 1 <= int(headers["Retry-After"]) <= 5
    assert headers["Connection"] == "close"
    if path.startswith("/v1/"):
        assert json.loads(body)["error"]["code"] == "unavailable"
    assert b"shutting down" in body


async def test_a_stopping_server_does_not_use_up_a_ticket(stand: Stand) -> None:
    """A refused stream does not consume its ticket, so another server accepts it."""
    async with stand.session.post("/v1/streams/ticket", headers=stand.bearer) as answer:
        ticket = (await answer.json())["ticket"]
    client = await stand.stay()
    await stand.begin_to_stop()
    async with aiohttp.ClientSession(f"http://127.0.0.1:{stand.port}") as fresh:
        for path in ("/v1/stream", "/v1/events"):
            async with fresh.get(path, params={"track": "x", "ticket": ticket}) as answer:
                assert_refused(path, answer.status, answer.headers, await answer.read())
    assert await stand.app[app_keys.STORE].tickets.redeem(sha256(ticket.encode()).hexdigest()) is not None
    client.transport.abort()


@pytest.mark.parametrize("path", ASKED)
async def test_a_stream_that_was_being_planned_is_refused(
    stand: Stand, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A shutdown while the stream waits for Redis refuses it, instead of opening and ending it."""
    sessions, asked, answers = stand.app[app_keys.STORE].sessions, asyncio.Event(), asyncio.Event()
    real = sessions.get_token_status
    monkeypatch.setattr(sessions, "get_token_status", held(real, asked, answers))
    asking = asyncio.create_task(stand.ask("GET", f"{path}?{ASKED[path]}"))
    await asked.wait()
    await stand.begin_to_stop()
    answers.set()
    status, answer, body = await asking
    assert_refused(path, status, answer.headers, body)
    await stand.ended


def held(
    real: Callable[..., Awaitable[Any]], asked: asyncio.Event, answers: asyncio.Event
) -> Callable[..., Awaitable[Any]]:
    """Wrap ``real``: report each call, and wait for permission."""

    async def call(*arguments: Any, **more: Any) -> Any:
        asked.set()
        await answers.wait()
        return await real(*arguments, **more)

    return call


async def test_a_stream_that_has_just_begun_is_told_goodbye(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stream whose head is already sent gets a goodbye instead of a refusal."""
    hub, asked, answers = stand.app[app_keys.HUB], asyncio.Event(), asyncio.Event()
    real = web.StreamResponse.write
    monkeypatch.setattr(web.StreamResponse, "write", held(real, asked, answers))
    reader, writer = await stand.raw("GET /v1/stream?track=x HTTP/1.1")
    await asked.wait()
    await stand.begin_to_stop()
    assert len(hub.registry) == 0
    answers.set()
    came = await reader.read()
    assert came.endswith(b"\r\n0\r\n\r\n")
    assert b'"code":"shutdown"' in came
    writer.close()
    await stand.ended


async def test_a_gap_that_is_known_comes_in_one_write_with_hello(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cursors of hello and goodbye lie behind the gap, so the gap must be sent with hello."""
    assert (await stand.ask("POST", "/v1/statuses", json={"message": "x"}))[0] == 201
    await eventually(lambda: stand.app[app_keys.HUB].head.n > 0)
    head = stand.app[app_keys.HUB].head
    asked, answers = asyncio.Event(), asyncio.Event()
    monkeypatch.setattr(web.StreamResponse, "write", held(web.StreamResponse.write, asked, answers))
    astray = f"{head.ms - 1}-7"
    reader, writer = await stand.raw(f"GET /v1/stream?track=y&since={astray} HTTP/1.1\r\nAccept: application/x-ndjson")
    await asked.wait()
    await stand.begin_to_stop()
    answers.set()
    await reader.readuntil(b"\r\n\r\n")
    told = [json.loads(line) for line in (await reader.readexactly(await size(reader))).splitlines()]
    assert [message["kind"] for message in told] == ["hello", "gap"]
    assert (told[1]["from"], told[1]["to"]) == (astray, told[0]["cursor"])
    rest = await reader.read()
    assert b'"kind":"goodbye"' in rest
    assert b'"kind":"gap"' not in rest
    writer.close()
    await stand.ended


async def size(reader: asyncio.StreamReader) -> int:
    """Return the size of the next chunk in bytes."""
    return int(await reader.readline(), 16)


async def test_a_write_that_was_half_sent_is_answered(stand: Stand) -> None:
    """A body that completes during shutdown gets an answer; then the connection closes."""
    body = json.dumps({"message": "half of it before, half of it after"})
    reader, writer = await stand.raw(f"POST /v1/statuses HTTP/1.1\r\nContent-Length: {len(body)}", body[:10])
    requests = stand.app[app_keys.METRICS].requests
    await stand.begin_to_stop()
    await eventually(lambda: refused(stand.port))
    writer.write(body[10:].encode() + b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
    came = await reader.read()
    assert came.startswith(b"HTTP/1.1 201 ")
    assert came.count(b"HTTP/1.1 ") == 1
    assert b"Connection: close" in came
    assert requests.labels("GET", "/healthz", "200")._value.get() == 0
    writer.close()
    await stand.ended


async def refused(port: int) -> bool:
    """Whether the port no longer accepts connections."""
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except ConnectionRefusedError:
        return True
    writer.close()
    return False


@pytest.mark.parametrize("settings", [{"shutdown_seconds": 0.8}])
@pytest.mark.parametrize("sent", ["POST /v1/statuses HT", "POST /v1/statuses HTTP/1.1\r\nContent-Length: 50\r\nX: "])
async def test_what_never_comes_whole_does_not_hold_the_end(stand: Stand, sent: str) -> None:
    """The server does not wait for half a head, and cuts an incomplete body after the timeout."""
    reader, writer = await asyncio.open_connection("127.0.0.1", stand.port)
    writer.write(sent.encode())
    whole = await stand.raw("POST /v1/statuses HTTP/1.1\r\nContent-Length: 50", "{")
    await stand.begin_to_stop()
    async with asyncio.timeout(20):
        await stand.ended
    assert await reader.read() == b""
    assert await whole[0].read() == b""
    writer.close()
    whole[1].close()


async def test_polls_answer_with_what_they_have(stand: Stand) -> None:
    """Polls end at once with a goodbye and a cursor."""
    polls = [
        asyncio.create_task(stand.ask("GET", f"/v1/events?wait=60&track=x{since}")) for since in ("", "&since=0-0.0")
    ]
    await eventually(lambda: len(stand.app[app_keys.HUB].registry) == len(polls))
    await stand.begin_to_stop()
    for status, _, body in await asyncio.gather(*polls):
        page = json.loads(body)
        assert status == 200
        goodbye = page["events"].pop()
        assert (goodbye["code"], goodbye["cursor"]) == ("shutdown", page["cursor"])
        assert MIN_RETRY_SECONDS <= goodbye["retry_after"] <= 5
    await stand.ended


@pytest.mark.parametrize("many", [2, 10, 333, 2000])
def test_the_times_to_return_fill_the_span(many: int) -> None:
    """Retry delays are spread evenly for any number of clients, and differ between processes."""
    spread = 5.0
    shutdowns = [ReconnectSpread(spread, random.Random(seed)) for seed in (1, 2)]
    told = [[shutdown.next_retry_after() for _ in range(many)] for shutdown in shutdowns]
    for times in told:
        assert MIN_RETRY_SECONDS <= min(times) <= max(times) <= spread
        tenths = [int(10 * (t - MIN_RETRY_SECONDS) / (spread - MIN_RETRY_SECONDS + 0.01)) for t in times]
        assert all(abs(tenths.count(n) - many / 10) <= max(3, many / 100) for n in range(10))
    assert not set(told[0]) & set(told[1]) or many > 300
