"""Shutdown: which requests the server answers, refuses or ends with goodbye."""

import asyncio
import json
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from hashlib import sha256
from typing import Any

import aiohttp
import pytest

from stream_server import app
from stream_server.hub.disconnect import MIN_RETRY_SECONDS, ReconnectSpread
from stream_server.runtime.listening import Listeners, listen_alone
from stream_server.web.http import app_keys
from stream_server.web.http.connection import Connection
from tests.stream_server.web import running_server as module
from tests.stream_server.web.running_server import RunningServer, running_server
from tests.waiting import PATIENCE, eventually

ASKED = {
    "/v1/stream": "track=x", "/v1/events": "track=x&wait=60", "/1.1/statuses/filter.json": "track=x",
    "/2/tweets/sample/stream": "",
}  # fmt: skip
"""One stream of each kind and a poll, with their parameters."""


@pytest.fixture
async def server(
    redis_url: str, monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any]
) -> AsyncIterator[RunningServer]:
    """A server that waits long for its last clients."""
    monkeypatch.setattr(app, "GOODBYE_SECONDS", 60.0)
    async with running_server(redis_url, settings) as running:
        yield running


async def test_a_stopping_server_still_answers_requests(server: RunningServer) -> None:
    client = await server.open_unread_stream()
    await server.begin_to_stop()
    status, answer, body = await server.request("GET", "/readyz")
    assert (status, json.loads(body)["stopping"], answer.headers["Retry-After"]) == (503, True, "1")
    assert (await server.request("GET", "/healthz"))[0] == 200
    status, answer, _ = await server.request("POST", "/v1/statuses", json={"message": "the last one"})
    assert (status, answer.headers["Connection"]) == (201, "close")
    client.transport.abort()
    await server.ended


async def test_a_server_answers_on_each_of_its_addresses_and_leaves_all(
    redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Several connections wait at each address, so that the server accepts some of them by itself."""

    def listen(host: str, port: int, _: object) -> Listeners:
        first = listen_alone(host, port)
        return Listeners([*first.sockets, *listen_alone("::1", first.port).sockets])

    monkeypatch.setattr(module, "listen_alone", listen)
    async with running_server(redis_url, {}) as server:
        for host in ("127.0.0.1", "[::1]"):
            address = f"http://{host}:{server.port}"
            async with aiohttp.ClientSession(address, connector=aiohttp.TCPConnector(limit=0)) as session:
                answers = await asyncio.gather(*(session.get("/healthz") for _ in range(20)))
                assert {answer.status for answer in answers} == {200}
    for host in ("127.0.0.1", "::1"):
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection(host, server.port)


@pytest.mark.parametrize("path", ASKED)
async def test_a_stopping_server_refuses_new_streams(server: RunningServer, path: str) -> None:
    client = await server.open_unread_stream()
    await server.begin_to_stop()
    status, answer, body = await server.request("GET", f"{path}?{ASKED[path]}")
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


async def test_a_refused_stream_does_not_consume_its_ticket(server: RunningServer) -> None:
    async with server.session.post("/v1/streams/ticket", headers=server.authorization) as answer:
        ticket = (await answer.json())["ticket"]
    client = await server.open_unread_stream()
    await server.begin_to_stop()
    async with aiohttp.ClientSession(f"http://127.0.0.1:{server.port}") as fresh:
        for path in ("/v1/stream", "/v1/events"):
            async with fresh.get(path, params={"track": "x", "ticket": ticket}) as answer:
                assert_refused(path, answer.status, answer.headers, await answer.read())
    assert await server.app[app_keys.STORE].tickets.redeem(sha256(ticket.encode()).hexdigest()) is not None
    client.transport.abort()


@pytest.mark.parametrize("path", ASKED)
async def test_a_stream_that_waits_for_redis_is_refused_at_a_stop(
    server: RunningServer, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sessions, asked, answers = server.app[app_keys.STORE].sessions, asyncio.Event(), asyncio.Event()
    real = sessions.get_token_validity
    monkeypatch.setattr(sessions, "get_token_validity", wait_before(real, asked, answers))
    asking = asyncio.create_task(server.request("GET", f"{path}?{ASKED[path]}"))
    await asked.wait()
    await server.begin_to_stop()
    answers.set()
    status, answer, body = await asking
    assert_refused(path, status, answer.headers, body)
    await server.ended


def wait_before(
    real: Callable[..., Awaitable[Any]], asked: asyncio.Event, answers: asyncio.Event
) -> Callable[..., Awaitable[Any]]:
    """Return a wrapper of ``real`` that reports each call and waits for permission."""

    async def call(*arguments: Any, **more: Any) -> Any:
        asked.set()
        await answers.wait()
        return await real(*arguments, **more)

    return call


async def test_a_stream_whose_head_is_sent_gets_goodbye(server: RunningServer, monkeypatch: pytest.MonkeyPatch) -> None:
    stop_before_the_hub_has_it(server, monkeypatch)
    reader, writer = await server.send_raw("GET /v1/stream?track=x HTTP/1.1")
    came = await reader.read()
    assert came.endswith(b"\r\n0\r\n\r\n")
    assert came.index(b'"kind":"hello"') < came.index(b'"code":"shutdown"')
    writer.close()
    server.leave.set()
    await server.ended


def stop_before_the_hub_has_it(server: RunningServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the server begin to stop after a stream was accepted, and before the hub knows the stream."""
    hub, shutdown, real = server.app[app_keys.HUB], server.app[app_keys.SHUTDOWN], Connection.require_client

    def require_client(connection: Connection) -> asyncio.Transport:
        if not hub.is_stopping:
            assert len(hub.registry) == 0
            hub.stop(shutdown.next_disconnect_reason)
        return real(connection)

    monkeypatch.setattr(Connection, "require_client", require_client)


async def test_a_known_gap_is_in_one_write_with_hello(server: RunningServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cursors of hello and goodbye lie behind the gap, so the gap must be sent with hello."""
    assert (await server.request("POST", "/v1/statuses", json={"message": "x"}))[0] == 201
    await eventually(lambda: server.app[app_keys.HUB].head.n > 0)
    head = server.app[app_keys.HUB].head
    stop_before_the_hub_has_it(server, monkeypatch)
    astray = f"{head.ms - 1}-7"
    reader, writer = await server.send_raw(
        f"GET /v1/stream?track=y&since={astray} HTTP/1.1\r\nAccept: application/x-ndjson"
    )
    await reader.readuntil(b"\r\n\r\n")
    sent = [json.loads(line) for line in (await reader.readexactly(await chunk_size(reader))).splitlines()]
    assert [message["kind"] for message in sent] == ["hello", "gap"]
    assert (sent[1]["from"], sent[1]["to"]) == (astray, sent[0]["cursor"])
    rest = await reader.read()
    assert b'"kind":"goodbye"' in rest
    assert b'"kind":"gap"' not in rest
    writer.close()
    server.leave.set()
    await server.ended


async def chunk_size(reader: asyncio.StreamReader) -> int:
    return int(await reader.readline(), 16)


async def test_a_write_whose_body_completes_during_a_stop_is_answered(server: RunningServer) -> None:
    body = json.dumps({"message": "half of it before, half of it after"})
    reader, writer = await server.send_raw(f"POST /v1/statuses HTTP/1.1\r\nContent-Length: {len(body)}", body[:10])
    requests = server.app[app_keys.METRICS].http.requests
    await server.begin_to_stop()
    await eventually(lambda: refuses_connections(server.port))
    writer.write(body[10:].encode() + b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
    came = await reader.read()
    assert came.startswith(b"HTTP/1.1 201 ")
    assert came.count(b"HTTP/1.1 ") == 1
    assert b"Connection: close" in came
    assert requests["GET", "/healthz", 200] == 0
    writer.close()
    await server.ended


async def refuses_connections(port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except ConnectionRefusedError:
        return True
    writer.close()
    return False


@pytest.mark.parametrize("settings", [{"shutdown_seconds": 0.8}])
@pytest.mark.parametrize("sent", ["POST /v1/statuses HT", "POST /v1/statuses HTTP/1.1\r\nContent-Length: 50\r\nX: "])
async def test_an_incomplete_request_does_not_delay_the_stop(server: RunningServer, sent: str) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(sent.encode())
    whole = await server.send_raw("POST /v1/statuses HTTP/1.1\r\nContent-Length: 50", "{")
    await server.begin_to_stop()
    async with asyncio.timeout(PATIENCE):
        await server.ended
    assert await reader.read() == b""
    assert await whole[0].read() == b""
    writer.close()
    whole[1].close()


async def test_polls_end_at_a_stop_with_goodbye(server: RunningServer) -> None:
    polls = [
        asyncio.create_task(server.request("GET", f"/v1/events?wait=60&track=x{since}"))
        for since in ("", "&since=0-0.0")
    ]
    await eventually(lambda: len(server.app[app_keys.HUB].registry) == len(polls))
    await server.begin_to_stop()
    for status, _, body in await asyncio.gather(*polls):
        page = json.loads(body)
        assert status == 200
        goodbye = page["events"].pop()
        assert (goodbye["code"], goodbye["cursor"]) == ("shutdown", page["cursor"])
        assert MIN_RETRY_SECONDS <= goodbye["retry_after"] <= 5
    await server.ended


@pytest.mark.parametrize("many", [2, 10, 333, 2000])
def test_retry_delays_are_spread_evenly(many: int) -> None:
    spread = 5.0
    shutdowns = [ReconnectSpread(spread, random.Random(seed)) for seed in (1, 2)]
    sent = [[shutdown.next_retry_after() for _ in range(many)] for shutdown in shutdowns]
    for times in sent:
        assert MIN_RETRY_SECONDS <= min(times) <= max(times) <= spread
        tenths = [int(10 * (t - MIN_RETRY_SECONDS) / (spread - MIN_RETRY_SECONDS + 0.01)) for t in times]
        assert all(abs(tenths.count(n) - many / 10) <= max(3, many / 100) for n in range(10))
    assert not set(sent[0]) & set(sent[1]) or many > 300
