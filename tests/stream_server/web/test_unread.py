"""Clients that do not read their answers: the time is bounded, and the bytes of a long poll."""

import asyncio

from aiohttp import web

from stream_server.web.http.http_connection import ConnectionTimeouts, HttpRunner
from tests.waiting import eventually

ANSWER_BYTES = 32_000_000
"""More than both kernels' buffers hold."""


async def _serve(request: web.Request) -> web.Response:
    return web.Response(body=b"x" * ANSWER_BYTES)


async def test_an_answer_that_is_not_read_is_given_up() -> None:
    """If the client takes no byte for the write timeout, the server drops the connection and frees its memory."""
    app = web.Application()
    app.router.add_get("/", _serve)
    runner = HttpRunner(
        app, header_seconds=5.0, timeouts=lambda: ConnectionTimeouts(write_seconds=0.2), shutdown_seconds=0.5
    )
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    reader, writer = await asyncio.open_connection(*runner.addresses[0][:2], limit=2048)
    writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    server = runner.server
    assert server is not None
    await eventually(lambda: len(server.connections) == 1, what="the connection")
    await eventually(lambda: not server.connections, what="the connection to be dropped")
    read = 0
    while part := await reader.read(1 << 20):
        read += len(part)
    assert 0 < read < ANSWER_BYTES
    writer.close()
    await writer.wait_closed()
    await runner.cleanup()
