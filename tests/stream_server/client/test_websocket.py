"""A stream by WebSocket: the same events, and answers to operations in between."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import msgspec
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from stream_server.client import Client, Malformed, Post, RequestRefused, Stream
from stream_server.client import connection as connection_of_client
from stream_server.client.connection import WebSocketConnection
from tests.stream_server.client.scripted_server import RecordedBackoff, message, status
from tests.waiting import PATIENCE, eventually

Script = Sequence[str | bytes]

CUT = "(the server breaks the connection)"


@asynccontextmanager
async def streaming(*scripts: Script) -> AsyncIterator[tuple[Stream, list[dict[str, str]]]]:
    """Yield a stream, and the queries of its connections. Each connection plays one script, and then closes."""
    waiting, queries = list(scripts), []

    async def handle(request: web.Request) -> web.StreamResponse:
        queries.append({**request.query, "token": request.headers["Authorization"]})
        if not waiting or not request.headers.get("Upgrade"):
            raise web.HTTPGone
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        for each in waiting.pop(0):
            if each is CUT:
                assert request.transport is not None
                request.transport.abort()
                return socket
            await (socket.send_bytes(each) if isinstance(each, bytes) else socket.send_str(each))
        await socket.close()
        return socket

    app = web.Application()
    app.router.add_get("/v1/stream", handle)
    async with TestServer(app) as server, Client(str(server.make_url("")), "jwt") as client:
        yield client.stream(track="x", framing="websocket", backoff=RecordedBackoff()), queries


def hello(n: int) -> str:
    return message("hello", n).decode()


def post(n: int) -> str:
    return message("post", n, status=status(n, f"post {n}")).decode()


async def texts(stream: Stream) -> list[str]:
    """Return the texts of the posts until the scripts have ended."""
    found = []
    try:
        async for event in stream:
            assert isinstance(event, Post)
            found.append(event.status.message)
    except RequestRefused as end:
        assert end.status == 410  # noqa: PT017 - the way a script ends
    return found


async def test_a_websocket_resumes_and_ignores_answers() -> None:
    scripts = ([hello(0), post(1), '{"kind":"pong","at":"x"}', post(2)], [hello(2), post(2), post(3)])
    async with streaming(*scripts) as (stream, queries):
        assert await texts(stream) == ["post 1", "post 2", "post 3"]
    assert queries[0] == {"track": "x", "token": "Bearer jwt"}
    assert [query.get("since") for query in queries[:3]] == [None, "1700000000000-0.2", "1700000000000-0.3"]


async def test_an_error_for_now_reconnects_and_another_one_is_raised() -> None:
    errors = [{"kind": "error", "error": {"code": code, "message": "m"}} for code in ("rate_limited", "x")]
    busy, wrong = (msgspec.json.encode(each).decode() for each in errors)
    async with streaming([hello(0), busy], [hello(0), post(1), wrong], [hello(1), post(2)]) as (stream, _):
        assert (await anext(stream)).cursor.endswith(".1")
        with pytest.raises(RequestRefused, match="400 x: m"):
            await anext(stream)
        assert await texts(stream) == ["post 2"]


async def test_an_update_of_a_lost_connection_holds_for_the_next_one() -> None:
    async with streaming([hello(0), post(1), CUT], [hello(1), post(2)]) as (stream, queries):
        await anext(stream)
        await eventually(lambda: is_lost(stream), what="the end of the connection")
        await stream.update(track="y")
        assert await texts(stream) == ["post 2"]
    assert [query["track"] for query in queries[:2]] == ["x", "y"]


def is_lost(stream: Stream) -> bool:
    """Whether the connection is at its end, which the stream has not read yet."""
    connection = stream._connection
    assert isinstance(connection, WebSocketConnection)
    writer = connection._socket._writer
    return writer.transport is None or writer.transport.is_closing()


async def test_a_dead_server_does_not_hold_up_the_end_of_a_client(monkeypatch: pytest.MonkeyPatch) -> None:
    """All streams wait together, and not long, for a server that does not answer their close frames."""
    monkeypatch.setattr(connection_of_client, "WEBSOCKET_CLOSE_SECONDS", 0.5)
    ended = asyncio.Event()

    async def handle(request: web.Request) -> web.StreamResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        await socket.send_str(hello(0))
        await socket.send_str(post(1))
        await ended.wait()  # without reading
        return socket

    app = web.Application()
    app.router.add_get("/v1/stream", handle)
    async with TestServer(app) as server:
        async with asyncio.timeout(PATIENCE), Client(str(server.make_url("")), "jwt") as client:
            streams = [client.stream(track="x", framing="websocket") for _ in range(20)]
            for stream in streams:
                await anext(stream)
        ended.set()


async def test_a_handshake_that_is_refused_for_now_says_how_long() -> None:
    """Also if the second request, which asks for the reason, is accepted."""

    async def handle(request: web.Request) -> web.Response:
        if request.headers.get("Upgrade"):
            return web.Response(status=503, headers={"Retry-After": "7"})
        return web.Response(headers={"Content-Type": "text/event-stream"})

    app = web.Application()
    app.router.add_get("/v1/stream", handle)
    async with TestServer(app) as server, Client(str(server.make_url("")), "jwt") as client:
        with pytest.raises(RequestRefused, match="refuses WebSockets") as refused:
            await anext(client.stream(track="x", framing="websocket"))
    assert (refused.value.status, refused.value.retry_after) == (503, 7)


@pytest.mark.parametrize("text", [b"bytes", "{", "[]"])
async def test_what_is_no_message_is_malformed(text: str | bytes) -> None:
    async with streaming([hello(0), text]) as (stream, _):
        with pytest.raises(Malformed):
            await anext(stream)
