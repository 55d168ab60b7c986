"""What has ended is gone at once, without the garbage collector: a full collection is rare, and stops every stream."""

import asyncio
import gc
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request

from stream_server.app import serve_application
from stream_server.hub import disconnect as reasons
from stream_server.hub.client import Client
from stream_server.hub.poll import LongPoll
from stream_server.hub.stream_session import StreamSession
from stream_server.runtime.listening import listen_alone
from stream_server.web.http import app_keys
from stream_server.web.http.http_connection import HttpConnection
from stream_server.web.http.query import read_query
from stream_server.web.route import NoQuery
from stream_server.web.streaming.stream_connection import StreamConnection
from tests.stream_server import tokens
from tests.waiting import PATIENCE, eventually

OURS = (Client, LongPoll, HttpConnection, StreamConnection, StreamSession, web.Request)

COUNT = 5

ASKED = [
    "/v1/stream?track=x", "/v1/stream?track=x&since=0-0", "/v1/events?track=x&wait=60",
    "/1.1/statuses/filter.json?track=x", "/2/tweets/sample/stream",
]  # fmt: skip


class Stand:
    """A server in this process, and somebody who may ask it."""

    def __init__(self, app: web.Application, port: int, uid: str) -> None:
        self.hub = app[app_keys.HUB]
        self.uid = uid
        self._port = port

    async def ask(self, path: str) -> asyncio.StreamWriter:
        """A connection on which this was asked for, and of which nothing is read."""
        _, writer = await asyncio.open_connection("127.0.0.1", self._port)
        token = tokens.fresh(self.uid, "stream firehose")
        writer.write(f"GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\r\n".encode())
        return writer


@pytest.fixture
async def stand(redis_url: str) -> AsyncIterator[Stand]:
    """A server with one user."""
    config = tokens.config(
        redis=redis_url, password_memory_kib=8, password_rounds=1, redis_timeout_seconds=PATIENCE, limits="off"
    )
    listening = listen_alone("127.0.0.1", 0)
    port = listening.getsockname()[1]
    body = {"login": "somebody", "name": "S", "email": "s@example.com", "password": "correct horse"}
    async with serve_application(config, lambda: listening) as app:
        async with aiohttp.ClientSession() as session:
            answer = await session.post(f"http://127.0.0.1:{port}/v1/users", json=body)
            uid = (await answer.json())["id"]
        yield Stand(app, port, uid)


@pytest.fixture
def uncollected() -> Iterator[None]:
    """Nothing is collected meanwhile."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def there() -> Counter[str]:
    """How many of our objects there are, reachable or not."""
    return Counter(type(one).__name__ for one in gc.get_objects() if type(one) in OURS)


async def come(stand: Stand, path: str) -> list[asyncio.StreamWriter]:
    """Clients whose streams, or polls, have begun."""
    clients = [await stand.ask(path) for _ in range(COUNT)]
    await eventually(lambda: stand.hub.count_live_clients() == COUNT, what="all to be live")
    return clients


async def are_gone(before: Counter[str]) -> None:
    """Wait until there is what there was before; says what there is otherwise."""
    try:
        await eventually(lambda: there() == before)
    except AssertionError:
        raise AssertionError(f"{there()} is left, {before} was there") from None


@pytest.mark.parametrize("path", ASKED)
@pytest.mark.usefixtures("uncollected")
async def test_of_who_leaves_nothing_waits_for_the_collector(stand: Stand, path: str) -> None:
    """Not the member, nor its connection, nor the request with which it came."""
    before = there()
    clients = await come(stand, path)
    assert there()["Client"] == before["Client"] + COUNT
    for client in clients:
        client.transport.abort()
    await are_gone(before)


@pytest.mark.usefixtures("uncollected")
async def test_of_who_was_told_to_leave_nothing_waits_for_the_collector(stand: Stand) -> None:
    """A goodbye is said by a task, which ends with the connection."""
    before = there()
    clients = await come(stand, ASKED[0])
    assert there()["Client"] == before["Client"] + COUNT
    stand.hub.registry.disconnect(stand.uid, None, reasons.TOKEN_REVOKED)
    await are_gone(before)
    assert stand.hub.counters.ended_streams == {reasons.TOKEN_REVOKED.code: COUNT}
    for client in clients:
        client.close()


@pytest.mark.usefixtures("uncollected")
async def test_a_stream_keeps_nothing_of_its_request(stand: Stand) -> None:
    """While it is open there is its connection, and no request, nor the protocol that has read it."""
    before = there()
    clients = await come(stand, ASKED[0])
    rest = {"Client", "StreamConnection", "StreamSession"}
    await eventually(lambda: (there() - before).keys() == rest, what="the rest")
    for client in clients:
        client.transport.abort()


@pytest.mark.usefixtures("uncollected")
async def test_a_query_leaves_nothing_for_the_collector() -> None:
    """It is read with every request."""
    request: Any = make_mocked_request("GET", "/")
    read_query(request, NoQuery)
    gc.collect()
    read_query(request, NoQuery)
    assert gc.collect() == 0
