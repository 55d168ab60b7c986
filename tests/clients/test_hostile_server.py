"""A server that harms its clients: answers that expand to much, redirects that take a token away, and absurd delays."""

import re
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from stream_server.client import Client, Malformed, RequestRefused, Unreachable
from stream_server.client.bounds import MAX_RECEIVED_BYTES, MAX_SERVER_DELAY_SECONDS
from stream_server.client.connection import Framing
from tests.program import ROOT
from tests.stream_server.client.scripted_server import RecordedBackoff, message, sse

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

FRAMINGS: tuple[Framing, ...] = ("sse", "ndjson", "websocket")

REDIRECTS = (301, 302, 303, 307, 308)

MONTH = "3196800"
"""37 days in seconds, more than a timer of JavaScript takes in milliseconds."""

DELAYS: dict[str, float | None] = {
    "9" * 4300: MAX_SERVER_DELAY_SECONDS,
    "9" * 5000: MAX_SERVER_DELAY_SECONDS,
    MONTH: MAX_SERVER_DELAY_SECONDS,
    "3601": MAX_SERVER_DELAY_SECONDS,
    "3600": 3600,
    "1.5": 1.5,
    "0": 0,
    "Fri, 31 Dec 2286 23:59:59 GMT": MAX_SERVER_DELAY_SECONDS,
    "Wed, 21 Oct 2015 07:28:00 GMT": 0,
    "Fri, 31 Dec 99999999999 23:59:59 GMT": None,
    "-5": None,
    "NaN": None,
    "Infinity": None,
    "1e9": None,
    "٣": None,
    "soon": None,
}  # fmt: skip
"""The texts of a ``Retry-After``, and the seconds that both clients take from them."""


@asynccontextmanager
async def hostile(handle: Handler) -> AsyncIterator[Client]:
    """Yield a client of a server that answers everything by ``handle``."""
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handle)
    async with TestServer(app) as server, Client(str(server.make_url("")), "jwt", attempts=1) as client:
        yield client


def asks(client: Client) -> list[Callable[[], Awaitable[object]]]:
    """Return a call, and the opening of a stream in each framing."""
    return [client.me, *(client.stream(track="x", framing=framing).__anext__ for framing in FRAMINGS)]


def expanding(chunks: Iterable[bytes], coding: str) -> bytes:
    """Return the compressed form of the chunks, so that the server of the test needs little memory."""
    compressor = zlib.compressobj(9, zlib.DEFLATED, {"gzip": 31, "deflate": 15, "message": -15}[coding])
    body = b"".join([*map(compressor.compress, chunks), compressor.flush(zlib.Z_SYNC_FLUSH)])
    return body[:-4] if coding == "message" else body + compressor.flush()


def long_json() -> Iterable[bytes]:
    yield b'{"id": "'
    for _ in range(2 * MAX_RECEIVED_BYTES // 2**20):
        yield b"x" * 2**20
    yield b'"}'


@pytest.mark.parametrize("coding", ["gzip", "deflate"])
async def test_an_answer_that_expands_to_much_is_malformed(coding: str) -> None:
    body = expanding(long_json(), coding)
    assert len(body) < 100_000

    async def handle(request: web.Request) -> web.Response:
        return web.Response(body=body, headers={"Content-Encoding": coding, "Content-Type": "application/json"})

    async with hostile(handle) as client:
        with pytest.raises(Malformed, match=f"more than {MAX_RECEIVED_BYTES} bytes"):
            await client.request("GET", "/v1/anything")


@pytest.mark.parametrize("framing", FRAMINGS)
async def test_a_message_that_expands_to_much_is_malformed(framing: Framing) -> None:
    async def handle(request: web.Request) -> web.StreamResponse:
        if framing == "websocket":
            socket = web.WebSocketResponse()
            await socket.prepare(request)
            assert request.transport is not None
            body = expanding(long_json(), "message")
            request.transport.write(b"\xc1\x7f" + len(body).to_bytes(8) + body)
            await socket.receive()
            return socket
        prefix = b"data: " if framing == "sse" else b""
        body = expanding([prefix, *long_json()], "gzip")
        return web.Response(body=body, headers={"Content-Encoding": "gzip", "Content-Type": request.headers["Accept"]})

    async with hostile(handle) as client:
        with pytest.raises(Malformed):
            await anext(client.stream(track="x", framing=framing, backoff=RecordedBackoff()))


@pytest.mark.parametrize("status", REDIRECTS)
async def test_no_redirect_is_followed(status: int) -> None:
    """The other host would get the filters and, from some libraries, the token."""
    asked = list[str]()

    async def other(request: web.Request) -> web.Response:
        asked.append(request.path_qs)
        return web.Response()

    async def handle(request: web.Request) -> web.Response:
        return web.Response(status=status, headers={"Location": f"{elsewhere}{request.path_qs}"})

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", other)
    async with TestServer(app) as server, hostile(handle) as client:
        elsewhere = str(server.make_url("")).rstrip("/")
        for ask in (*asks(client), client.poll(track="x").__anext__):
            with pytest.raises(RequestRefused) as refused:
                await ask()
            assert refused.value.status == status
    assert asked == []


@pytest.mark.parametrize("text", DELAYS, ids=lambda text: f"{text[:12]}-{len(text)}")
async def test_absurd_delays_of_a_refusal_are_not_taken(text: str) -> None:
    async def handle(request: web.Request) -> web.Response:
        return web.Response(status=503, headers={"Retry-After": text})

    async with hostile(handle) as client:
        for ask in asks(client):
            with pytest.raises(RequestRefused) as refused:
                await ask()
            assert refused.value.retry_after == pytest.approx(DELAYS[text])


@pytest.mark.parametrize(
    ("messages", "seconds"),
    [
        *((b"retry: %b\n\n" % text, MAX_SERVER_DELAY_SECONDS) for text in (b"9" * 5000, b"9" * 20, b"2147483648")),
        (b"retry: -1\n\n", None),
        (sse("goodbye", 1, code="shutdown", reason="r", retry_after=int(MONTH)), MAX_SERVER_DELAY_SECONDS),
        (sse("goodbye", 1, code="shutdown", reason="r", retry_after=1e308), MAX_SERVER_DELAY_SECONDS),
        (sse("goodbye", 1, code="shutdown", reason="r", retry_after=-1e308), 0),
    ],
)
async def test_absurd_delays_of_a_stream_are_not_taken(messages: bytes, seconds: float | None) -> None:
    asked = list[str]()

    async def handle(request: web.Request) -> web.Response:
        asked.append(request.path)
        if len(asked) > 1:
            raise web.HTTPGone
        return web.Response(body=sse("hello", 0) + messages, headers={"Content-Type": "text/event-stream"})

    backoff = RecordedBackoff()
    async with hostile(handle) as client:
        with pytest.raises(RequestRefused):
            await anext(client.stream(track="x", backoff=backoff))
    assert backoff.waits == [(0, seconds)]


async def test_absurd_delays_of_an_operation_are_not_taken() -> None:
    error = {"code": "rate_limited", "message": "m", "retry_after": 1e300}

    async def handle(request: web.Request) -> web.StreamResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        await socket.send_str(message("hello", 0).decode())
        await socket.send_json({"kind": "error", "error": error})
        await socket.close()
        return socket

    async with hostile(handle) as client:
        stream = client.stream(track="x", framing="websocket", backoff=(backoff := _EndingBackoff()))
        with pytest.raises(_TheEnd):
            await anext(stream)
    assert backoff.waits == [(0, MAX_SERVER_DELAY_SECONDS)]


class _TheEnd(Exception):
    pass


class _EndingBackoff(RecordedBackoff):
    def delay(self, failures: int, server_delay: float | None = None) -> float:
        super().delay(failures, server_delay)
        raise _TheEnd


@pytest.mark.parametrize("body", [b"[" * 60_000, b'{"error":' * 10_000, b'{"error": ' + b"9" * 5000 + b"}"])
async def test_a_refusal_with_absurd_json_is_a_refusal(body: bytes) -> None:
    async def handle(request: web.Request) -> web.Response:
        return web.Response(status=400, body=body)

    async with hostile(handle) as client:
        for ask in (client.me, client.stream(track="x").__anext__):
            with pytest.raises((RequestRefused, Unreachable)) as refused:
                await ask()
            assert getattr(refused.value, "status", None) == 400


def test_both_clients_have_the_same_bounds() -> None:
    """The documentation of both says them."""
    source = (ROOT / "stream_server" / "console" / "client.js").read_text()
    expected: dict[str, Any] = {
        "MAX_RECEIVED_BYTES": MAX_RECEIVED_BYTES, "MAX_SERVER_DELAY_SECONDS": MAX_SERVER_DELAY_SECONDS,
    }  # fmt: skip
    for name, value in expected.items():
        found = re.search(rf"^const {name} = ([\d *]+);", source, re.MULTILINE)
        assert found is not None, name
        factors = [int(base) ** int(power or 1) for base, power in re.findall(r"(\d+)(?: \*\* (\d+))?", found[1])]
        product = 1
        for factor in factors:
            product *= factor
        assert product == value
    for page in (ROOT / "docs" / "guide" / "client.md", ROOT / "clients" / "javascript" / "README.md"):
        text = page.read_text()
        assert f"{MAX_RECEIVED_BYTES // 2**20} MiB" in text, page
        assert f"{MAX_SERVER_DELAY_SECONDS:,} seconds" in text, page
