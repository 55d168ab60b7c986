"""A loop that is left by ``break`` closes the connection at once, if nobody keeps the stream: no garbage collection."""

import asyncio
import gc
import weakref
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from stream_server.client import Client
from stream_server.client.sync import Client as BlockingClient
from stream_server.client.sync import Events
from tests.stream_server.client.scripted_server import message, post, sse, status
from tests.waiting import PATIENCE

ARGUMENTS: dict[str, dict[str, Any]] = {
    "sse": {"track": "x"},
    "ndjson": {"track": "x", "framing": "ndjson"},
    "websocket": {"track": "x", "framing": "websocket"},
}


class Holding:
    """A server that keeps each stream open, and notes when a client has left it."""

    def __init__(self) -> None:
        self.url = ""
        self.gone = asyncio.Event()

    async def stream(self, request: web.Request) -> web.StreamResponse:
        first = message("post", 1, status=status(1, "post 1"))
        try:
            if request.headers.get("Upgrade"):
                socket = web.WebSocketResponse()
                await socket.prepare(request)
                await socket.send_str(first.decode())
                async for _ in socket:
                    pass
                return socket
            accepted = request.headers["Accept"]
            response = web.StreamResponse(headers={"Content-Type": accepted})
            await response.prepare(request)
            await response.write(first + b"\n" if "ndjson" in accepted else sse("hello", 0) + post(1))
            await asyncio.Event().wait()  # until the client leaves, which cancels this
            return response
        finally:
            self.gone.set()

    async def page(self, request: web.Request) -> web.Response:
        events = b"[" + message("post", 1, status=status(1, "post 1")) + b"]"
        return web.Response(body=b'{"events":%b,"cursor":"1","more":true}' % events, content_type="application/json")


@pytest.fixture
async def holding() -> AsyncIterator[Holding]:
    made, app = Holding(), web.Application()
    app.router.add_get("/v1/stream", made.stream)
    app.router.add_get("/v1/events", made.page)
    async with TestServer(app, handler_cancellation=True) as server:
        made.url = str(server.make_url(""))
        yield made


@pytest.fixture(autouse=True)
def _no_garbage_collection() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.parametrize("arguments", ARGUMENTS.values(), ids=ARGUMENTS)
async def test_a_loop_that_is_left_closes_the_connection(holding: Holding, arguments: dict[str, Any]) -> None:
    async with Client(holding.url, "jwt") as client:
        async for _ in client.stream(**arguments):
            break
        async with asyncio.timeout(PATIENCE):
            await holding.gone.wait()


@pytest.mark.parametrize("arguments", ARGUMENTS.values(), ids=ARGUMENTS)
async def test_a_blocking_loop_that_is_left_closes_the_connection(holding: Holding, arguments: dict[str, Any]) -> None:
    def leave(client: BlockingClient) -> None:
        for _ in client.stream(**arguments):
            break

    client = BlockingClient(holding.url, "jwt")
    await asyncio.to_thread(leave, client)
    async with asyncio.timeout(PATIENCE):
        await holding.gone.wait()
    await asyncio.to_thread(client.close)


async def test_a_kept_stream_keeps_its_connection(holding: Holding) -> None:
    async with Client(holding.url, "jwt") as client:
        stream = client.stream(track="x")
        async for _ in stream:
            break
        await asyncio.sleep(0)
        assert stream.connection is not None
        assert not holding.gone.is_set()


@pytest.mark.parametrize("is_poll", [False, True], ids=["stream", "poll"])
async def test_nothing_refers_to_a_stream_that_is_left(holding: Holding, is_poll: bool) -> None:  # noqa: FBT001 - a column
    async with Client(holding.url, "jwt") as client:
        stream = client.poll(track="x") if is_poll else client.stream(track="x")
        async for _ in stream:
            break
        kept = weakref.ref(stream)
        del stream
        assert kept() is None


async def test_nothing_refers_to_blocking_events_that_are_left(holding: Holding) -> None:
    def leave(client: BlockingClient) -> "weakref.ref[Events]":
        events = client.poll(track="x")
        next(events)
        return weakref.ref(events)

    client = BlockingClient(holding.url, "jwt")
    assert (await asyncio.to_thread(leave, client))() is None
    await asyncio.to_thread(client.close)
