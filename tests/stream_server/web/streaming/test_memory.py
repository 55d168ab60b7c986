"""An ended stream leaves no reference cycle: a full garbage collection would be rare, and would stop every stream."""

import asyncio
import gc
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request

from stream_server.hub import disconnect as reasons
from stream_server.hub.poll import LongPoll
from stream_server.hub.stream_session import StreamSession
from stream_server.web.http import app_keys
from stream_server.web.http.connection import Connection
from stream_server.web.http.http_handler import Handler
from stream_server.web.http.query import read_query
from stream_server.web.http.usual_request import UsualRequest
from stream_server.web.route import NoQuery
from stream_server.web.streaming.stream_connection import StreamConnection
from stream_server.web.websocket.connection import WebSocketConnection
from stream_server.web.websocket.first_message import FirstMessage
from stream_server.web.websocket.operations import Operations
from tests.stream_server.web.running_server import RunningServer, running_server
from tests.waiting import eventually

OURS = (
    LongPoll, Connection, Handler, UsualRequest, StreamConnection, StreamSession, web.Request, WebSocketConnection,
    FirstMessage, Operations,
)  # fmt: skip

COUNT = 5

UPGRADE = (
    "\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13"
    "\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="
)

ASKED = [
    *(f"GET {path} HTTP/1.1" for path in (
        "/v1/stream?track=x", "/v1/stream?track=x&since=0-0", "/v1/events?track=x&wait=60",
        "/1.1/statuses/filter.json?track=x", "/2/tweets/sample/stream",
    )),
    f"GET /v1/stream?track=x HTTP/1.1{UPGRADE}",
]  # fmt: skip
"""Heads of requests for streams of all kinds, and for a long poll."""


@pytest.fixture
async def server(redis_url: str) -> AsyncIterator[RunningServer]:
    async with running_server(redis_url, {}) as running:
        yield running


@pytest.fixture
def without_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def count_objects() -> Counter[str]:
    """Count the objects of the server, reachable or not."""
    return Counter(type(one).__name__ for one in gc.get_objects() if type(one) in OURS)


async def connect(server: RunningServer, head: str) -> list[asyncio.StreamWriter]:
    """Open streams or polls, and wait until they are live."""
    clients = [(await server.send_raw(head))[1] for _ in range(COUNT)]
    await eventually(lambda: server.app[app_keys.HUB].live.count == COUNT, what="all to be live")
    return clients


async def until_equal(before: Counter[str]) -> None:
    """Wait until there are as many objects as before."""
    try:
        await eventually(lambda: count_objects() == before)
    except AssertionError:
        raise AssertionError(f"{count_objects()} is left, {before} was there") from None


@pytest.mark.parametrize("head", ASKED)
@pytest.mark.usefixtures("without_collector")
async def test_a_client_that_leaves_leaves_no_reference_cycle(server: RunningServer, head: str) -> None:
    before = count_objects()
    clients = await connect(server, head)
    assert sum((count_objects() - before)[kind] for kind in ("StreamSession", "LongPoll")) == COUNT
    held = [each.token for each in server.app[app_keys.HUB].registry.clients_of(server.uid)]
    assert len(set(map(id, held))) == len(set(held))  # streams of one token share what is kept of it
    for client in clients:
        client.transport.abort()
    await until_equal(before)


@pytest.mark.usefixtures("without_collector")
async def test_a_socket_that_never_brings_its_token_leaves_no_reference_cycle(server: RunningServer) -> None:
    before = count_objects()
    opened = [await asyncio.open_connection("127.0.0.1", server.port) for _ in range(COUNT)]
    for reader, client in opened:
        client.write(f"{ASKED[-1]}\r\nHost: x\r\n\r\n".encode())
        assert b" 101 " in await reader.readuntil(b"\r\n\r\n")
    assert (count_objects() - before)["FirstMessage"] == COUNT
    for _, client in opened:
        client.transport.abort()
    await until_equal(before)


@pytest.mark.usefixtures("without_collector")
async def test_a_disconnected_client_leaves_no_reference_cycle(server: RunningServer) -> None:
    before = count_objects()
    clients = await connect(server, ASKED[0])
    assert sum((count_objects() - before)[kind] for kind in ("StreamSession", "LongPoll")) == COUNT
    for stream in server.app[app_keys.HUB].registry.clients_of(server.uid):
        stream.disconnect(reasons.TOKEN_REVOKED)
    del stream
    await until_equal(before)
    assert server.app[app_keys.HUB].counters.ended_streams == {reasons.TOKEN_REVOKED.code: COUNT}
    for client in clients:
        client.close()


@pytest.mark.usefixtures("without_collector")
async def test_a_stream_does_not_keep_its_request(server: RunningServer) -> None:
    before = count_objects()
    clients = await connect(server, ASKED[0])
    rest = {"StreamConnection", "StreamSession"}
    await eventually(lambda: (count_objects() - before).keys() == rest, what="the rest")
    for client in clients:
        client.transport.abort()


@pytest.mark.usefixtures("without_collector")
async def test_reading_a_query_leaves_no_reference_cycle() -> None:
    request: Any = make_mocked_request("GET", "/")
    read_query(request, NoQuery)
    gc.collect()
    read_query(request, NoQuery)
    assert gc.collect() == 0
