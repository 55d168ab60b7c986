"""HTTP connections: invalid requests, deadlines, and clients that do not read."""

import asyncio
import gc
import json
import logging
import socket
import struct
import tracemalloc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest
from aiohttp import web

from stream_server.runtime.listening import MAX_IDLE_SECONDS, MAX_PROBES, TcpKeepalive, listen_alone
from stream_server.web.http import app_keys, body, connection_timeouts
from stream_server.web.http import connection as http_connection
from stream_server.web.http.connection_timeouts import ConnectionTimeouts
from stream_server.web.http.front_door import FrontDoor
from stream_server.web.http.request_cycle import MAX_HEAD_BYTES
from stream_server.web.http.request_limits import LIMITS
from stream_server.web.route import Request
from tests.end_to_end.faults.clients import RawClient
from tests.stream_server import tokens
from tests.stream_server.web.world import World, replace_handler
from tests.waiting import PATIENCE, eventually

Address = tuple[str, int]

HEALTH = b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n"
HEALTH_THEN_CLOSE = b"GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"


@pytest.fixture
def header_seconds() -> float:
    """A deadline of a request head that tests can wait for."""
    return 0.3


@asynccontextmanager
async def connected(address: Address) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    reader, writer = await asyncio.open_connection(*address)
    try:
        yield reader, writer
    finally:
        writer.close()
        await asyncio.gather(writer.wait_closed(), return_exceptions=True)


def post_head(uid: str, *headers: str) -> bytes:
    """Return the head of a request that posts a status."""
    token = f"Authorization: Bearer {tokens.fresh(uid)}"
    lines = ["POST /v1/statuses HTTP/1.1", "Host: a", token, "Content-Type: application/json", *headers, "", ""]
    return "\r\n".join(lines).encode()


def error_code(answer: bytes) -> str:
    code: str = json.loads(answer.partition(b"\r\n\r\n")[2])["error"]["code"]
    return code


@asynccontextmanager
async def trickle(writer: asyncio.StreamWriter, data: bytes) -> AsyncIterator[None]:
    """Send the data again and again."""

    async def send() -> None:
        while True:
            writer.write(data)
            await asyncio.sleep(0.02)  # the attack itself, not a wait for something

    attack = asyncio.create_task(send())
    try:
        yield
    finally:
        attack.cancel()
        await asyncio.gather(attack, return_exceptions=True)


async def answer_to(address: Address, sent: bytes) -> bytes:
    """Return everything received until the server closes the connection."""
    async with connected(address) as (reader, writer):
        writer.write(sent)
        async with asyncio.timeout(PATIENCE):
            return await reader.read()


UNPARSABLE = {
    "rubbish": b"\x16\x03\x01 hello secret-in-the-request\r\n\r\n",
    "a bad method": b"G\x00T /secret-in-the-request HTTP/1.1\r\nHost: a\r\n\r\n",
    "a bad version": b"GET /secret-in-the-request HTTP/9\r\nHost: a\r\n\r\n",
    "a bad header": b"GET / HTTP/1.1\r\nHost: a\r\nsecret-in-the-request\r\n\r\n",
    "NUL in a header": b"GET / HTTP/1.1\r\nHost: a\r\nX: secret-in-the-request\x00\r\n\r\n",
    "two lengths": b"POST /secret-in-the-request HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
    "two fields of transfer codings": b"POST /secret-in-the-request HTTP/1.1\r\n"
    b"Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n",
    "length and chunks": b"POST /secret-in-the-request HTTP/1.1\r\n"
    b"Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(9),
    "HTTP/2 by another version": b"PRI * HTTP/1.1\r\n\r\n",
    "HTTP/2 by an old version, whole": b"PRI * HTTP/1.0\r\n\r\nSM\r\n\r\n",
    "no length": b"POST /secret-in-the-request HTTP/1.1\r\nContent-Length: x\r\n\r\n",
    "a stream of a bad version": b"GET /v1/stream?secret-in-the-request=1 HTTP/9.x\r\n\r\n",
    "TLS, unfinished": b"\x16\x03\x01\x02\x00\x01",
    "line feeds alone": b"GET / HTTP/1.1\nHost: a\n\n",
    "no method, unfinished": b"get / HTTP/1.1\r\n",
    "behind a request": HEALTH + b"\x00",
}
TOO_LONG = {
    "a request line": b"GET /secret-in-the-request" + b"x" * 70_000 + b" HTTP/1.1\r\nHost: a\r\n\r\n",
    "a header": b"GET / HTTP/1.1\r\nHost: a\r\nX: secret-in-the-request" + b"x" * 20_000 + b"\r\n\r\n",
    "a head": b"GET / HTTP/1.1\r\nHost: a\r\n" + b"X: y\r\n" * (MAX_HEAD_BYTES // 6) + b"\r\n",
    "a head, unfinished": b"GET / HTTP/1.1\r\nHost: a\r\n" + b"X: y\r\n" * (MAX_HEAD_BYTES // 6),
}
REFUSED = {name: (sent, b"400", "malformed_body") for name, sent in UNPARSABLE.items()}
REFUSED |= {name: (sent, b"413", "too_large") for name, sent in TOO_LONG.items()}
"""What no handler sees, and the status and the code of its refusal."""


@pytest.mark.parametrize(("sent", "status", "code"), REFUSED.values(), ids=REFUSED)
async def test_an_invalid_request_gets_a_json_error_without_an_echo(
    address: Address, caplog: pytest.LogCaptureFixture, sent: bytes, status: bytes, code: str
) -> None:
    """Also one without an end, before its deadline."""
    answer = await answer_to(address, sent)
    head, _, content = answer.rpartition(b"HTTP/1.")[2].partition(b"\r\n\r\n")
    assert head.split(b" ")[1] == status
    assert b"application/json; charset=utf-8" in head
    assert json.loads(content)["error"]["code"] == code
    assert b"secret-in-the-request" not in answer
    assert not [record for record in caplog.records if record.exc_info]


@pytest.mark.parametrize("line", ["POST /v1/statuses HTTP/2.0", "CONNECT a:80 HTTP/1.1"])
async def test_a_refusal_by_the_request_line_survives_the_body_behind_it(address: Address, line: str) -> None:
    """A close at once would meet the body, and the kernel's reset may destroy a refusal that was not read yet."""
    async with connected(address) as (reader, writer), asyncio.timeout(PATIENCE):
        writer.write(f"{line}\r\nHost: a\r\nContent-Length: 400000\r\n\r\n".encode())
        assert b"Connection: close" in await reader.readuntil(b"}}")
        for _ in range(4):
            writer.write(bytes(100_000))
            await writer.drain()
        writer.write_eof()
        assert await reader.read() == b""


UPGRADE = HEALTH.replace(b"\r\n\r\n", b"\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")


@pytest.mark.parametrize(
    "before", [b"", HEALTH, UPGRADE], ids=["alone", "behind a request", "behind one that asks for an upgrade"]
)
async def test_bytes_that_are_no_http_leave_nothing_behind(address: Address, before: bytes) -> None:
    """The error of aiohttp has them four times as text, in a cycle that only a full garbage collection would free."""
    gc.collect()
    gc.disable()
    tracemalloc.start()
    try:
        for _ in range(4):
            async with connected(address) as (reader, writer):
                writer.write(before + b"\x82\xfe" * 200_000)
                with suppress(ConnectionError):
                    await asyncio.wait_for(reader.read(), PATIENCE)
        await eventually(lambda: tracemalloc.get_traced_memory()[0] < 400_000)
    finally:
        tracemalloc.stop()
        gc.enable()


async def test_an_unknown_expectation_is_refused(address: Address) -> None:
    sent = b"POST /v1/users HTTP/1.1\r\nHost: a\r\nExpect: miracles\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
    answer = await answer_to(address, sent)
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["error"] == {
        "code": "invalid_parameter", "message": "only the expectation 100-continue is supported", "param": "Expect",
    }  # fmt: skip


async def is_closed(reader: asyncio.StreamReader) -> bool:
    async with asyncio.timeout(PATIENCE):
        with suppress(ConnectionResetError):  # bytes that cross the close are answered by a reset
            return await reader.read() == b""
    return True


HALF_HEADS = {
    "nothing": (b"", b""),
    "half a head": (b"GET /healthz HTTP/1.1\r\nHost: a\r\n", b""),
    "half a head and single bytes": (b"GET /healthz HTTP/1.1\r\nX: ", b"x"),
    "a second head": (HEALTH + b"GET /he", b""),
    "blank lines behind a request": (HEALTH, b"\r\n"),
}
"""The bytes of a client without a whole head, and what it sends again and again."""


@pytest.mark.parametrize(("sent", "again"), HALF_HEADS.values(), ids=HALF_HEADS)
async def test_a_connection_without_a_whole_head_is_closed(
    address: Address, app: web.Application, sent: bytes, again: bytes
) -> None:
    """It gives its place back, also if the client keeps its side open."""
    async with connected(address) as (reader, writer):
        writer.write(sent)
        if HEALTH in sent:
            assert b'{"alive":true}' in await reader.readuntil(b"}")
        async with trickle(writer, again):
            assert b"alive" in await answer_to(address, HEALTH_THEN_CLOSE)
            assert await is_closed(reader)
        await eventually(lambda: not len(app[LIMITS].connections), what="a place that is free")


async def test_an_idle_kept_connection_outlives_the_header_deadline(address: Address) -> None:
    async with connected(address) as (reader, writer):
        writer.write(HEALTH)
        await reader.readuntil(b"}")
        for _ in range(2):  # each takes a whole header deadline to be let go
            async with connected(address) as (silent, _):
                assert await is_closed(silent)
        writer.write(HEALTH_THEN_CLOSE)
        assert b'{"alive":true}' in await reader.read()


async def test_an_idle_kept_connection_is_closed_in_the_end(app: web.Application) -> None:
    server = FrontDoor(app, timeouts=ConnectionTimeouts(idle_seconds=0.1), shutdown_seconds=0.5)
    await server.open([socket.create_server(("127.0.0.1", 0))])
    async with connected(server.addresses[0][:2]) as (reader, writer):
        writer.write(HEALTH)
        await reader.readuntil(b"}")
        assert await is_closed(reader)
    await server.close()


@pytest.mark.parametrize("more", [(), ("Expect: 100-continue",)], ids=["with the head", "while the handler reads"])
async def test_an_invalid_chunk_gets_400(
    address: Address, world: World, caplog: pytest.LogCaptureFixture, more: tuple[str, ...]
) -> None:
    ann = await world.user("ann")
    before = world.state()
    async with connected(address) as (reader, writer):
        writer.write(post_head(ann, "Transfer-Encoding: chunked", *more))
        if more:
            assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        writer.write(b"zz\r\n{}\r\n0\r\n\r\n")
        async with asyncio.timeout(PATIENCE):
            answer = await reader.readuntil(b"}}")
    assert error_code(answer) == "malformed_body"
    assert world.state() == before
    assert not [record for record in caplog.records if record.exc_info and record.levelno >= logging.WARNING]


@pytest.mark.parametrize("coding", ["gzip, chunked", "GZIP,chunked", "identity, chunked"])
async def test_a_body_with_a_transfer_coding_beside_chunked_is_refused(
    address: Address, world: World, coding: str
) -> None:
    """The server expands no body, so it would take the compressed bytes for JSON (RFC 9112 §6.1)."""
    ann = await world.user("ann")
    async with connected(address) as (reader, writer):
        writer.write(post_head(ann, f"Transfer-Encoding: {coding}") + b'10\r\n{"message":"hi"}\r\n0\r\n\r\n')
        async with asyncio.timeout(PATIENCE):
            answer = await reader.readuntil(b"}}")
    assert error_code(answer) == "unsupported_media_type"
    assert b'"param":"Transfer-Encoding"' in answer


async def test_a_content_length_above_the_limit_is_refused_before_the_body(address: Address, world: World) -> None:
    ann = await world.user("ann")
    head = post_head(ann, "Content-Length: 65537")
    async with connected(address) as (reader, writer):
        writer.write(head)
        async with asyncio.timeout(PATIENCE):
            answer = await reader.readuntil(b"}}")
    assert error_code(answer) == "too_large"


async def test_a_handler_is_cancelled_when_its_client_resets_the_connection(
    address: Address, world: World, app: web.Application, monkeypatch: pytest.MonkeyPatch
) -> None:
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
        client = writer.get_extra_info("socket")
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    await eventually(lambda: seen == ["began", "cancelled"])


async def test_an_error_after_the_first_byte_breaks_the_answer_off(
    address: Address, app: web.Application, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Broken:
        @staticmethod
        def text() -> bytes:
            raise RuntimeError("late")

    async def late(request: Request) -> web.StreamResponse:
        assert isinstance(request, web.BaseRequest)  # `TE` makes it one of aiohttp
        response = web.StreamResponse()
        response.enable_chunked_encoding()
        await response.prepare(request)
        await response.write(b"first")
        Broken.text()
        return response

    replace_handler(monkeypatch, "/healthz", late)
    answer = await answer_to(address, HEALTH.replace(b"\r\n\r\n", b"\r\nTE: trailers\r\n\r\n"))
    assert answer.endswith(b"first\r\n")
    assert len([record for record in caplog.records if record.exc_info]) == 1


def answer_health(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    """Let `/healthz` answer with so many bytes."""

    async def answer(request: Request) -> web.StreamResponse:
        return web.Response(body=b"x" * size)

    replace_handler(monkeypatch, "/healthz", answer)


@pytest.fixture
async def small_buffers(app: web.Application) -> AsyncIterator[tuple[Address, FrontDoor]]:
    """Serve the same app with small kernel buffers and a short write timeout."""
    listening = socket.create_server(("127.0.0.1", 0))
    door = FrontDoor(app, timeouts=ConnectionTimeouts(write_seconds=0.5), shutdown_seconds=0.5)
    await door.open([listening])
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    yield door.addresses[0][:2], door
    await door.close()


@pytest.mark.parametrize(
    ("size", "manner", "drips"),
    [(40_000, "keep-alive", False), (1_000_000, "keep-alive", True), (1_000_000, "close", False)],
)
async def test_an_answer_that_is_not_read_is_dropped(
    small_buffers: tuple[Address, FrontDoor], monkeypatch: pytest.MonkeyPatch, *,
    size: int, manner: str, drips: bool,
) -> None:  # fmt: skip
    answer_health(monkeypatch, size)
    (host, port), server = small_buffers
    async with await RawClient.connect(f"http://{host}:{port}", receive_bytes=4096) as client:
        await client.send(f"GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: {manner}\r\n\r\n".encode())
        await eventually(lambda: any(one.unsent_bytes for one in server.connections), what="a full socket")
        if drips:
            client.drip(0.05)
        await eventually(lambda: not server.connections, what="the connection's end")
    whole = await answer_to((host, port), HEALTH_THEN_CLOSE)
    assert whole.endswith(b"x" * size)


@pytest.mark.parametrize("target", ["/v1/stream?track=x", "/healthz"], ids=["a refused stream", "by aiohttp"])
async def test_requests_wait_until_the_answers_before_them_are_taken(
    small_buffers: tuple[Address, FrontDoor], target: str
) -> None:
    """Otherwise the answers to one client without a token could fill the memory."""
    (host, port), server = small_buffers
    async with await RawClient.connect(f"http://{host}:{port}", receive_bytes=4096) as client:
        await client.send(f"GET {target} HTTP/1.1\r\nHost: a\r\n\r\n".encode() * 400)
        await eventually(lambda: any(one.unsent_bytes for one in server.connections), what="a full socket")
        (connection,) = server.connections
        assert connection.transport is not None
        assert connection.transport.get_write_buffer_size() < 2048, "more than one answer"
        assert connection.is_busy
        while client.received < 400 * 300:
            assert await client.read(65536)
        await eventually(lambda: not connection.is_busy, what="the last answer")


@pytest.fixture
def long_answer(monkeypatch: pytest.MonkeyPatch) -> int:
    """Let `/healthz` answer with as many bytes as this says."""
    answer_health(monkeypatch, 1_000_000)
    return 1_000_000


@pytest.mark.parametrize(("at_least", "is_whole"), [(1024, True), (4_000_000, False)])
async def test_an_answer_is_taken_at_the_least_speed_or_dropped(
    small_buffers: tuple[Address, FrontDoor], monkeypatch: pytest.MonkeyPatch, long_answer: int, *,
    at_least: int, is_whole: bool,
) -> None:  # fmt: skip
    """The client takes some bytes within each write timeout, so it would hold its place for as long as it likes."""
    monkeypatch.setattr(connection_timeouts, "MIN_BYTES_PER_SECOND", at_least)
    (host, port), _ = small_buffers
    async with await RawClient.connect(f"http://{host}:{port}", receive_bytes=4096) as client:
        await client.send(HEALTH_THEN_CLOSE)
        with suppress(ConnectionError):
            for _ in range(1000):
                if not await client.read(8192):
                    break
                await asyncio.sleep(0.01)  # the slow client itself, not a wait for something
        assert (client.received > long_answer) == is_whole


@pytest.mark.usefixtures("long_answer")
@pytest.mark.parametrize("sent", [HEALTH, HEALTH_THEN_CLOSE, HEALTH_THEN_CLOSE + b"G"], ids=["kept", "last", "more"])
async def test_a_full_table_closes_clients_that_leave_their_answer_unread(
    small_buffers: tuple[Address, FrontDoor], app: web.Application, monkeypatch: pytest.MonkeyPatch, sent: bytes
) -> None:
    (host, port), server = small_buffers
    async with await RawClient.connect(f"http://{host}:{port}", receive_bytes=4096) as client:
        await client.send(sent)
        await eventually(lambda: any(one.unsent_bytes for one in server.connections), what="a full socket")
        app[LIMITS].connections.evict_idle(1, of_operator=False)
        (connection,) = server.connections  # the client may be about to read
        assert connection.is_busy, "a server that stops waits for it"
        monkeypatch.setattr(http_connection, "EVICTED_AFTER_SECONDS", 0)
        app[LIMITS].connections.evict_idle(1, of_operator=False)
        assert not server.connections, "later its write deadline would end it anyway"


async def test_single_bytes_do_not_extend_the_body_deadline(
    address: Address, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(body, "BODY_TIMEOUT_SECONDS", 0.3)
    ann = await world.user("ann")
    before = world.state()
    head = post_head(ann, "Content-Length: 20000")
    async with connected(address) as (reader, writer):
        writer.write(head)
        async with trickle(writer, b" "), asyncio.timeout(PATIENCE):
            answer = await reader.readuntil(b"}}")
    assert error_code(answer) == "malformed_body"
    assert world.state() == before


async def test_timeouts_above_the_limits_of_the_kernel_are_cut(app: web.Application) -> None:
    """Linux refuses longer keep-alive times, and such a connection would never answer."""
    server = FrontDoor(app, timeouts=ConnectionTimeouts(3_000_000.0, 40_000.0), shutdown_seconds=0.5)
    await server.open([socket.create_server(("127.0.0.1", 0))])
    async with connected(server.addresses[0][:2]) as (reader, writer):
        writer.write(HEALTH)
        assert b'{"alive":true}' in await reader.readuntil(b"}")
        (one,) = server.connections
        assert one.transport is not None
        asked = one.transport.get_extra_info("socket")
        assert asked.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == MAX_IDLE_SECONDS
        assert asked.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT) == MAX_PROBES
    await server.close()


@pytest.mark.parametrize(("own", "set_times"), [(TcpKeepalive(7, 9), 0), (TcpKeepalive(5, 9), 1)])
async def test_connections_inherit_the_keep_alive_of_the_listening_socket_unless_it_is_another(
    app: web.Application, monkeypatch: pytest.MonkeyPatch, own: TcpKeepalive, set_times: int
) -> None:
    set_on, original = [], TcpKeepalive.set_on

    def note(keepalive: TcpKeepalive, target: socket.socket) -> None:
        set_on.append(keepalive)
        original(keepalive, target)

    timeouts = ConnectionTimeouts(9.0, own.idle_seconds)
    server = FrontDoor(app, timeouts=timeouts, shutdown_seconds=0.5)
    (listener,) = listen_alone("127.0.0.1", 0, TcpKeepalive(7, 9)).sockets
    await server.open([listener])
    monkeypatch.setattr(TcpKeepalive, "set_on", note)
    async with connected(listener.getsockname()) as (reader, writer):
        writer.write(HEALTH)
        assert b'{"alive":true}' in await reader.readuntil(b"}")
        (one,) = server.connections
        assert one.transport is not None
        asked = one.transport.get_extra_info("socket")
        assert asked.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        assert asked.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        assert asked.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL) == 1
        assert asked.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == own.idle_seconds
        assert asked.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT) == own.probes
    await eventually(lambda: not server.connections)
    assert set_on == [own] * set_times
    await server.close()
