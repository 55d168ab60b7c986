"""A stream that fails after its head was sent: the connection ends without a second answer, and nothing is left."""

import logging
from typing import Any

import pytest
from aiohttp import WSMsgType

from stream_server.hub.catchup.reader import CatchUpReader
from stream_server.web.http.app_keys import HUB, STORE
from tests.stream_server.web.running_server import RunningServer, running_server
from tests.waiting import eventually


def _fail(*_: Any) -> Any:
    raise ValueError("the fault of this test")


async def _start_of(server: RunningServer, monkeypatch: pytest.MonkeyPatch) -> str:
    """Let the first page of each stream fail. Return a cursor with a post behind it."""
    start = (await server.app[STORE].log.head()).cursor
    assert (await server.request("POST", "/v1/statuses", json={"message": "tea"}))[0] == 201
    head = await server.app[STORE].log.head()
    await eventually(lambda: server.app[HUB].head == head)
    monkeypatch.setattr(CatchUpReader, "read_page_at_once", _fail)
    return start


async def _check(server: RunningServer, caplog: pytest.LogCaptureFixture) -> None:
    hub = server.app[HUB]
    await eventually(lambda: hub.counters.ended_streams["failed"] == 1, what="the outcome is counted")
    assert not len(hub.registry)
    assert [str(record.exc_info[1]) for record in caplog.records if record.exc_info] == ["the fault of this test"]


async def test_a_stream_that_fails_at_its_start_ends_without_a_second_answer(
    redis_url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    async with running_server(redis_url, {}) as server:
        start = await _start_of(server, monkeypatch)
        reader, writer = await server.send_raw(f"GET /v1/stream?track=tea&since={start} HTTP/1.1")
        received = await reader.read()
        writer.close()
        assert received.count(b"HTTP/1.1 ") <= 1
        assert b" 500 " not in received
        await _check(server, caplog)


async def test_a_websocket_that_fails_at_its_start_is_closed(
    redis_url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    async with running_server(redis_url, {}) as server:
        start = await _start_of(server, monkeypatch)
        path = f"/v1/stream?track=tea&since={start}"
        async with server.session.ws_connect(path, headers=server.authorization) as socket:
            messages = [message async for message in socket]
        assert all(message.type is WSMsgType.TEXT for message in messages)
        assert socket.close_code in {1006, 1011}
        await _check(server, caplog)
