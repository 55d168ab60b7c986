"""Connection-level behaviour, tested on bare sockets."""

import asyncio
import json
import logging
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest
from aiohttp import web

from stream_server.web.http import app_keys, body
from stream_server.web.http.http_connection import ConnectionTimeouts, HttpRunner
from stream_server.web.http.tcp_peer import MAX_KEEPALIVE_IDLE_SECONDS, MAX_KEEPALIVE_PROBES
from tests.end_to_end.faults.clients import RawClient
from tests.stream_server import tokens
from tests.stream_server.web.world import World
from tests.waiting import eventually

Address = tuple[str, int]


@asynccontextmanager
async def connected(address: Address) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """Open a bare connection."""
    reader, writer = await asyncio.open_connection(*address)
    try:
        yield reader, writer
    finally:
        writer.close()
        await asyncio.gather(writer.wait_closed(), return_exceptions=True)


async def answer_to(address: Address, sent: bytes) -> bytes:
    """Return everything received until the server closes the connection."""
    async with connected(address) as (reader, writer):
        writer.write(sent)
        async with asyncio.timeout(10):
            return await reader.read()


UNPARSABLE = {
    "rubbish": b"\x16\x03\x01 hello secret-in-the-request\r\n\r\n",
    "a bad method": b"G\x00T /secret-in-the-request HTTP/1.1\r\nHost: a\r\n\r\n",
    "a bad version": b"GET /secret-in-the-request HTTP/9\r\nHost: a\r\n\r\n",
    "a bad header": b"GET / HTTP/1.1\r\nHost: a\r\nsecret-in-the-request\r\n\r\n",
    "NUL in a header": b"GET / HTTP/1.1\r\nHost: a\r\nX: secret-in-the-request\x00\r\n\r\n",
    "two lengths": b"POST /secret-in-the-request HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
    "length and chunks": b"POST /secret-in-the-request HTTP/1.1\r\n"
    b"Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
    "no length": b"POST /secret-in-the-request HTTP/1.1\r\nContent-Length: x\r\n\r\n",
}


@pytest.mark.parametrize("sent", UNPARSABLE.values(), ids=UNPARSABLE)
async def test_what_cannot_be_parsed_gets_the_one_shape(
    address: Address, caplog: pytest.LogCaptureFixture, sent: bytes
) -> None:
    """An invalid request gets a JSON 400 that repeats nothing, then the connection ends, without a traceback."""
    answer = await answer_to(address, sent)
    head, _, content = answer.partition(b"\r\n\r\n")
    assert head.startswith((b"HTTP/1.1 400", b"HTTP/1.0 400"))
    assert b"application/json; charset=utf-8" in head
    assert json.loads(content)["error"]["code"] == "malformed_body"
    assert b"secret-in-the-request" not in answer
    assert not [record for record in caplog.records if record.exc_info]


@pytest.mark.parametrize(
    "sent",
    [
        b"GET /secret" + b"x" * 70_000 + b" HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nX: secret" + b"x" * 20_000 + b"\r\n\r\n",
    ],
)
async def test_a_line_that_is_too_long_is_told_so(address: Address, sent: bytes) -> None:
    """A request line over 64 KiB or a header field over 16 KiB gets 413, without an echo."""
    answer = await answer_to(address, sent)
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["error"]["code"] == "too_large"
    assert b"secret" not in answer


async def test_a_line_of_sixty_kilobytes_passes(address: Address) -> None:
    """A URL can hold 400 track phrases."""
    sent = b"GET /v1/none?" + b"x" * 60_000 + b" HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
    answer = await answer_to(address, sent)
    assert answer.startswith(b"HTTP/1.1 404")


async def test_an_expectation_that_is_not_known(address: Address) -> None:
    """The server refuses an unknown expectation before any middleware, as a 400 in the one shape."""
    sent = b"POST /v1/users HTTP/1.1\r\nHost: a\r\nExpect: miracles\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
    answer = await answer_to(address, sent)
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["error"] == {
        "code": "invalid_parameter", "message": "only the expectation 100-continue is supported", "param": "Expect",
    }  # fmt: skip


async def test_http_1_0_is_answered(address: Address) -> None:
    """An HTTP/1.0 client gets an answer that ends with the connection."""
    answer = await answer_to(address, b"GET /healthz HTTP/1.0\r\n\r\n")
    assert answer.startswith(b"HTTP/1.0 200")
    assert answer.endswith(b'{"alive":true}')


async def test_requests_in_a_row_share_a_connection(address: Address) -> None:
    """The server answers two pipelined requests in order on one connection."""
    request = b"GET /healthz HTTP/1.1\r\nHost: a\r\n"
    answer = await answer_to(address, request + b"\r\n" + request + b"Connection: close\r\n\r\n")
    assert answer.count(b'{"alive":true}') == 2


async def closed(reader: asyncio.StreamReader) -> bool:
    """Wait until the server closes the connection."""
    async with asyncio.timeout(10):
        return await reader.read() == b""


async def test_a_silent_connection_is_closed(address: Address) -> None:
    """The server closes a silent connection at the header deadline."""
    async with connected(address) as (reader, _):
        assert await closed(reader)


async def test_half_a_head_is_closed(address: Address) -> None:
    """The server closes a connection with an unfinished head at the same deadline."""
    async with connected(address) as (reader, writer):
        writer.write(b"GET /healthz HTTP/1.1\r\nHost: a\r\n")
        assert await closed(reader)


async def test_a_trickle_does_not_wind_the_clock_up(address: Address) -> None:
    """Single bytes do not extend the deadline (slowloris), and other clients are served."""
    async with connected(address) as (reader, writer):
        writer.write(b"GET /healthz HTTP/1.1\r\nX: ")

        async def trickle() -> None:
            while True:
                writer.write(b"x")
                await asyncio.sleep(0.02)  # the attack itself, not a wait for something

        attack = asyncio.create_task(trickle())
        assert b"alive" in await answer_to(address, b"GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        assert await closed(reader)
        attack.cancel()
        await asyncio.gather(attack, return_exceptions=True)


async def test_the_second_head_has_the_deadline_too(address: Address) -> None:
    """A kept-alive connection may be idle longer, but a started head must end in time."""
    async with connected(address) as (reader, writer):
        writer.write(b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n")
        assert b'{"alive":true}' in await reader.readuntil(b"}")
        writer.write(b"GET /he")
        assert await closed(reader)


async def test_an_idle_kept_connection_outlives_the_header_deadline(address: Address) -> None:
    """Between requests the longer keep-alive time applies; a silent new connection is closed earlier."""
    async with connected(address) as (reader, writer):
        writer.write(b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n")
        await reader.readuntil(b"}")
        for _ in range(2):  # each takes a whole header deadline to be let go
            async with connected(address) as (silent, _):
                assert await closed(silent)
        writer.write(b"GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        assert b'{"alive":true}' in await reader.read()


async def test_a_slow_body_is_given_up(address: Address, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A body that is not complete in time gets 400, and nothing is written."""
    monkeypatch.setattr(body, "BODY_TIMEOUT_SECONDS", 0.2)
    ann = await world.user("ann")
    before = world.state()
    head = f"POST /v1/statuses HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {tokens.fresh(ann)}\r\n"
    head += "Content-Type: application/json\r\nContent-Length: 20\r\n\r\n"
    answer = await answer_to(address, head.encode() + b'{"message":')
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["error"]["code"] == "malformed_body"
    assert world.state() == before


async def test_a_body_that_is_framed_wrongly(address: Address, world: World, caplog: pytest.LogCaptureFixture) -> None:
    """Invalid chunks get 400 in the one shape. Nothing is written or logged."""
    ann = await world.user("ann")
    before = world.state()
    head = f"POST /v1/statuses HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {tokens.fresh(ann)}\r\n"
    head += "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    answer = await answer_to(address, head.encode() + b"zz\r\n{}\r\n0\r\n\r\n")
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["error"]["code"] == "malformed_body"
    assert world.state() == before
    assert not [record for record in caplog.records if record.exc_info and record.levelno >= logging.WARNING]


async def test_a_body_that_breaks_while_it_is_read(
    address: Address, world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """An invalid chunk while the handler waits for it gets 400 in the one shape, without a traceback."""
    ann = await world.user("ann")
    before = world.state()
    head = f"POST /v1/statuses HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {tokens.fresh(ann)}\r\n"
    head += "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n"
    async with connected(address) as (reader, writer):
        writer.write(head.encode())
        assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        writer.write(b"zz\r\n{}\r\n0\r\n\r\n")
        async with asyncio.timeout(10):
            answer = await reader.readuntil(b"}}")
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["error"]["code"] == "malformed_body"
    assert world.state() == before
    assert not [record for record in caplog.records if record.exc_info]


async def test_a_length_that_is_too_large_is_refused_unread(address: Address, world: World) -> None:
    """The server refuses such a body before its first byte."""
    ann = await world.user("ann")
    head = f"POST /v1/statuses HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {tokens.fresh(ann)}\r\n"
    head += "Content-Type: application/json\r\nContent-Length: 65537\r\n\r\n"
    async with connected(address) as (reader, writer):
        writer.write(head.encode())
        async with asyncio.timeout(10):
            answer = await reader.readuntil(b"}}")
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["error"]["code"] == "too_large"


async def test_a_leaver_is_noticed_at_once(
    address: Address, world: World, app: web.Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server cancels a handler whose client disconnects (streams rely on it), and logs nothing."""
    ann = await world.user("ann")
    seen: list[str] = []

    async def wait_for_ever(uid: str) -> bytes:
        seen.append("began")
        try:
            await asyncio.Event().wait()
        finally:
            seen.append("cancelled")
        return b""

    monkeypatch.setattr(app[app_keys.STORE].users, "get_own", wait_for_ever)
    async with connected(address) as (_, writer):
        head = f"GET /v1/users/me HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {tokens.fresh(ann)}\r\n\r\n"
        writer.write(head.encode())
        await eventually(lambda: seen == ["began"])
    await eventually(lambda: seen == ["began", "cancelled"])


async def test_an_answer_that_had_begun_is_broken_off(
    address: Address, app: web.Application, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A failure after the first byte breaks the body off, and the log has one line."""

    class Broken:
        @staticmethod
        def text() -> bytes:
            raise RuntimeError("late")

    async def late(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        response.enable_chunked_encoding()
        await response.prepare(request)
        await response.write(b"first")
        Broken.text()
        return response

    route = next(route for route, row in app[app_keys.ROUTES].items() if row.path == "/healthz")
    monkeypatch.setattr(route, "_handler", late)
    answer = await answer_to(address, b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n")
    assert answer.endswith(b"first\r\n")
    assert len([record for record in caplog.records if record.exc_info]) == 1


@pytest.fixture
async def narrow(app: web.Application) -> AsyncIterator[tuple[Address, HttpRunner]]:
    """Serve the same app with small kernel buffers and a short write deadline."""
    listening = socket.create_server(("127.0.0.1", 0))
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    runner = HttpRunner(app, timeouts=lambda: ConnectionTimeouts(write_seconds=0.5), shutdown_seconds=0.5)
    await runner.setup()
    await web.SockSite(runner, listening).start()
    yield runner.addresses[0][:2], runner
    await runner.cleanup()


@pytest.mark.parametrize("size", [40_000, 1_000_000])
@pytest.mark.parametrize("manner", ["keep-alive", "close"])
@pytest.mark.parametrize("drips", [False, True], ids=["never read", "a byte now and then"])
async def test_an_answer_that_is_not_read_is_given_up(
    narrow: tuple[Address, HttpRunner],
    app: web.Application,
    monkeypatch: pytest.MonkeyPatch,
    *,
    size: int,
    manner: str,
    drips: bool,
) -> None:
    """The server also drops a finished answer that the client never reads."""

    async def long(request: web.Request) -> web.StreamResponse:
        return web.Response(body=b"x" * size)

    route = next(route for route, row in app[app_keys.ROUTES].items() if row.path == "/healthz")
    monkeypatch.setattr(route, "_handler", long)
    (host, port), runner = narrow
    server = runner.server
    assert server is not None
    async with await RawClient.connect(f"http://{host}:{port}", receive_bytes=4096) as client:
        await client.send(f"GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: {manner}\r\n\r\n".encode())
        await eventually(lambda: any(one.writing_paused for one in server.connections), what="a full socket")
        if drips:
            client.drip(0.05)
        await eventually(lambda: not server.connections, what="the connection's end")
    whole = await answer_to((host, port), b"GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
    assert whole.endswith(b"x" * size)


async def test_a_body_that_trickles_is_given_up(
    address: Address, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A trickling body does not occupy the handler longer than the body's deadline."""
    monkeypatch.setattr(body, "BODY_TIMEOUT_SECONDS", 0.3)
    ann = await world.user("ann")
    head = f"POST /v1/statuses HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {tokens.fresh(ann)}\r\n"
    head += "Content-Type: application/json\r\nContent-Length: 20000\r\n\r\n"
    async with connected(address) as (reader, writer):
        writer.write(head.encode())

        async def trickle() -> None:
            while True:
                writer.write(b" ")
                await asyncio.sleep(0.02)  # the attack itself, not a wait for something

        attack = asyncio.create_task(trickle())
        async with asyncio.timeout(10):
            answer = await reader.readuntil(b"}}")
        attack.cancel()
        await asyncio.gather(attack, return_exceptions=True)
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["error"]["code"] == "malformed_body"


async def test_blank_lines_between_requests_keep_nothing_open(address: Address) -> None:
    """Line ends before a request start the deadline of the next head."""
    async with connected(address) as (reader, writer):
        writer.write(b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n")
        await reader.readuntil(b"}")

        async def trickle() -> None:
            while True:
                writer.write(b"\r\n")
                await asyncio.sleep(0.02)  # the attack itself, not a wait for something

        attack = asyncio.create_task(trickle())
        async with asyncio.timeout(10):
            with suppress(ConnectionResetError):  # the attack may go on a moment longer than the connection
                assert b"200 OK" not in await reader.read()
        attack.cancel()
        await asyncio.gather(attack, return_exceptions=True)


async def test_deadlines_that_the_kernel_cannot_keep_are_its_longest(app: web.Application) -> None:
    """Linux refuses longer keep-alive times, and such a connection would never answer."""
    runner = HttpRunner(app, timeouts=lambda: ConnectionTimeouts(3_000_000.0, 40_000.0), shutdown_seconds=0.5)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    server = runner.server
    assert server is not None
    async with connected(runner.addresses[0][:2]) as (reader, writer):
        writer.write(b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n")
        assert b'{"alive":true}' in await reader.readuntil(b"}")
        (one,) = server.connections
        assert one.transport is not None
        asked = one.transport.get_extra_info("socket")
        assert asked.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == MAX_KEEPALIVE_IDLE_SECONDS
        assert asked.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT) == MAX_KEEPALIVE_PROBES
    await runner.cleanup()
