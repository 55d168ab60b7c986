"""The client of a stream may leave at any moment of its opening, and nothing of it is left."""

import asyncio
import gc
import logging
import socket
import struct
from collections.abc import AsyncIterator

import pytest

from stream_server.store.redis import batched_reads
from stream_server.web.http import app_keys, request_limits
from stream_server.web.http.connection import Connection
from stream_server.web.http.request_limits import LIMITS
from tests.redis_process import RedisProcess
from tests.stream_server.web.running_server import RunningServer, running_server
from tests.waiting import eventually

TURNS = 24
"""Turns of the event loop after the request, at each of which a client leaves. The longest opening takes fewer."""

PATHS = (
    "/v1/stream?track=x",
    "/v1/stream?follow=@me",
    "/v1/stream/user",
    "/v1/stream?track=x&since=1-0",
    "/v1/stream?track=",
)
"""A stream that waits for nothing but the token, three that ask Redis more, and one that is refused."""


UPGRADE = [
    "Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==",
]  # fmt: skip


@pytest.fixture
async def server(redis_url: str) -> AsyncIterator[RunningServer]:
    async with running_server(redis_url, {"limits": "on"}) as made:
        yield made


def _leave_after(turns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the connection of each request end ``turns`` turns of the event loop after the request has come."""
    received, loop = Connection.data_received, asyncio.get_running_loop()

    def data_received(connection: Connection, data: bytes) -> None:
        transport = connection.transport
        received(connection, data)
        wait(transport, turns)

    def wait(transport: asyncio.Transport | None, left: int) -> None:
        if left:
            loop.call_soon(wait, transport, left - 1)
        elif transport is not None:
            transport.abort()

    monkeypatch.setattr(Connection, "data_received", data_received)


async def _open_and_read(server: RunningServer, path: str) -> bytes:
    reader, writer = await server.send_raw(f"GET {path} HTTP/1.1")
    try:
        return await reader.read()
    except ConnectionResetError:
        return b""
    finally:
        writer.close()


def _left_over(server: RunningServer) -> dict[str, int]:
    app = server.app
    limits = app[LIMITS]
    return {
        "openings": request_limits.MAX_OPENINGS - limits.openings._free,
        "waiting openings": len(limits.openings._waiting),
        "clients of the hub": len(app[app_keys.HUB].registry),
        "places of streams": limits.streams.total(),
        "places of connections": limits.connections._count,
    }


async def _expect_nothing_left(server: RunningServer) -> None:
    await server.session.close()  # its kept connections have places too
    await eventually(lambda: not any(_left_over(server).values()), what="nothing left over")


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("is_known", [True, False], ids=["a known token", "an unknown token"])
async def test_a_client_may_leave_at_any_moment_of_its_opening(
    server: RunningServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, path: str,
    is_known: bool,  # noqa: FBT001 - a parameter
) -> None:  # fmt: skip
    caplog.set_level(logging.WARNING)
    for turns in range(TURNS):
        if not is_known:
            server.app[app_keys.TOKEN_VALIDITY_CACHE].forget(None)
        with monkeypatch.context() as patch:
            _leave_after(turns, patch)
            await _open_and_read(server, path)
    await _expect_nothing_left(server)
    assert not [record for record in caplog.records if record.exc_info]


async def test_clients_that_leave_a_silent_redis_leave_nothing(
    redis_server: RedisProcess, server: RunningServer, caplog: pytest.LogCaptureFixture
) -> None:
    """Some of them wait for Redis, the others for a call that they share."""
    reads = server.app[app_keys.STORE].sessions._validities
    count = batched_reads.MAX_CALLS * batched_reads.MAX_QUESTIONS
    redis_server.pause()
    try:
        opening = [await server.send_raw("GET /v1/stream?track=x HTTP/1.1") for _ in range(count)]
        await eventually(lambda: not reads._queue._free, what="all calls under way")
        for _, writer in opening:
            writer.transport.abort()
        await _expect_nothing_left(server)
    finally:
        redis_server.resume()
    await eventually(lambda: not reads._calls, what="no call left over")
    assert not reads._waiting
    assert not [record for record in caplog.records if record.name == "aiohttp.server"]


async def test_a_client_that_leaves_with_its_request_leaves_no_error(
    server: RunningServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The end of its connection may be told in the same turn of the event loop as a request that aiohttp handles."""
    received = Connection.data_received

    def data_received(connection: Connection, data: bytes) -> None:
        transport = connection.transport
        received(connection, data)
        if transport is not None and b"leaving" in data:
            connection.connection_lost(None)
            transport.abort()

    monkeypatch.setattr(Connection, "data_received", data_received)
    reader, writer = await server.send_raw("HEAD /healthz?leaving HTTP/1.1")
    assert await reader.read() == b""
    writer.close()
    await _expect_nothing_left(server)
    gc.collect()  # an error in a task is told when the task is gone
    assert not [record for record in caplog.records if record.exc_info]


@pytest.mark.parametrize("headers", [[], UPGRADE], ids=["a stream", "a WebSocket"])
async def test_a_client_that_resets_its_connection_before_the_answer_leaves_nothing(
    server: RunningServer, headers: list[str]
) -> None:
    """The write of the answer fails, when the stream has begun already."""
    head = ["GET /v1/stream?track=x HTTP/1.1", "Host: x", f"Authorization: {server.authorization['Authorization']}"]
    request = "\r\n".join([*head, *headers, "", ""]).encode()
    for is_first in (True, False):
        with socket.create_connection(("127.0.0.1", server.port)) as client:
            client.sendall(request)
            if is_first:  # the server knows the token after it
                client.setblocking(False)
                await asyncio.get_running_loop().sock_recv(client, 100)
            else:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    await _expect_nothing_left(server)
