"""Requests to endpoints: their signatures and bounds, and which URLs are refused."""

import asyncio
import json
import logging
import socket
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from typing import Any

import pytest
from aiohttp import web
from aiohttp.client_proto import ResponseHandler
from standardwebhooks import Webhook, WebhookVerificationError

from stream_server.config.settings import InvalidSetting
from stream_server.errors import BadRequest
from stream_server.store.social.webhooks import make_secret
from stream_server.web.webhooks.addresses import RECEIVE_BUFFER_BYTES
from stream_server.web.webhooks.answers import MAX_RAW_BYTES
from stream_server.web.webhooks.names import LOOKUP_THREADS, THREADS_OF_USER, Names
from stream_server.web.webhooks.sender import MAX_ANSWER_BYTES, Message, Sender
from tests.end_to_end.webhook_endpoint import hang, reset
from tests.redis_process import free_port
from tests.waiting import PATIENCE

MESSAGE = Message("work/1-0:2", '{"type":"events","events":["ä"]}'.encode(), 1)

Serve = Callable[[Callable[[web.Request], Awaitable[web.StreamResponse]]], Awaitable[str]]


@pytest.fixture
async def serve() -> AsyncIterator[Serve]:
    """Start an endpoint with a handler. Return its URL."""
    runners: list[web.AppRunner] = []

    async def start(handler: Callable[[web.Request], Awaitable[web.StreamResponse]]) -> str:
        app = web.Application()
        app.router.add_post("/", handler)
        runner = web.AppRunner(app, shutdown_timeout=0.1, handler_cancellation=True)
        runners.append(runner)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        return f"http://127.0.0.1:{runner.addresses[0][1]}/"

    yield start
    for runner in runners:
        await runner.cleanup()


@pytest.fixture
async def sender() -> AsyncIterator[Sender]:
    made = Sender("127.0.0.1", PATIENCE)
    yield made
    await made.close()


async def test_each_secret_signs_and_a_changed_request_is_found_out(serve: Serve, sender: Sender) -> None:
    seen: list[tuple[bytes, dict[str, str]]] = []

    async def note(request: web.Request) -> web.Response:
        seen.append((await request.read(), dict(request.headers)))
        return web.Response(text="taken")

    new, old = make_secret(), make_secret()
    sent = await sender.send("7", await serve(note), MESSAGE, (new, old))
    assert (sent.answer, sent.outcome.status, sent.outcome.events, sent.outcome.is_success) == (b"taken", 200, 1, True)
    ((body, headers),) = seen
    assert headers["webhook-id"] == MESSAGE.id
    assert headers["Content-Type"] == "application/json"
    for secret in (new, old):
        assert Webhook(secret).verify(body, headers) == json.loads(MESSAGE.body)
    others = [
        (make_secret(), body, headers),
        (new, body.replace(b"events", b"event5"), headers),
        (new, body, {**headers, "webhook-id": "work/1-0:3"}),
        (new, body, {**headers, "webhook-timestamp": str(int(headers["webhook-timestamp"]) + 1)}),
    ]
    for secret, data, given in others:
        with pytest.raises(WebhookVerificationError):
            Webhook(secret).verify(data, given)


async def test_a_repeated_request_has_a_new_time(serve: Serve) -> None:
    times: list[str] = []

    async def note(request: web.Request) -> web.Response:
        times.append(request.headers["webhook-timestamp"])
        return web.Response()

    clock = iter([1000.0, 1000.5, 1400.0, 1401.25])
    sender, url = Sender("127.0.0.1", PATIENCE, unix_time=lambda: next(clock)), await serve(note)
    first, second = [(await sender.send("7", url, MESSAGE, (make_secret(),))).outcome for _ in range(2)]
    await sender.close()
    assert times == ["1000", "1400"]
    assert [(one.time_ms, one.took_ms) for one in (first, second)] == [(1_000_000, 500), (1_400_000, 1250)]


async def test_little_of_an_answer_is_read_and_nothing_of_it_is_kept(serve: Serve, sender: Sender) -> None:
    cookies: list[str | None] = []

    async def flood(request: web.Request) -> web.StreamResponse:
        cookies.append(request.headers.get("Cookie"))
        response = web.StreamResponse(headers={"Set-Cookie": "a=b"})
        await response.prepare(request)
        while True:
            await response.write(b"x" * 65_536)

    url = await serve(flood)
    for _ in range(2):
        sent = await sender.send("7", url, MESSAGE, ())
        assert (sent.outcome.status, len(sent.answer)) == (200, MAX_ANSWER_BYTES)
    assert cookies == [None, None]


async def test_an_endpoint_that_hangs_or_cuts_is_an_outcome_without_an_address(
    serve: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    async def half(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Length": "100"})
        await response.prepare(request)
        await response.write(b"x")
        return await hang(request)

    caplog.set_level(logging.INFO)
    closed = f"http://127.0.0.1:{free_port()}/"
    hasty, patient = Sender("0.0.0.0/0,::/0", 0.2), Sender("0.0.0.0/0,::/0", PATIENCE)
    errors = [(await hasty.send("7", url, MESSAGE, ())).outcome for url in (await serve(hang), await serve(half))]
    urls = [await serve(reset), closed, "http://nobody.invalid/"]
    errors += [(await patient.send("7", url, MESSAGE, ())).outcome for url in urls]
    await asyncio.gather(hasty.close(), patient.close())
    assert [one.status for one in errors] == [None] * 5
    assert [one.error for one in errors] == [
        "no answer in time", "no answer in time", "the connection ended before the answer was complete",
        "no connection", "this host has no address that webhooks may reach",
    ]  # fmt: skip
    assert (hasty.outcomes, patient.outcomes) == ({"ok": 0, "failed": 2}, {"ok": 0, "failed": 3})
    told = [record.getMessage() for record in caplog.records if "does not reach nobody.invalid" in record.getMessage()]
    assert len(told) == 1
    assert "not allowed" not in told[0]


OK = b"HTTP/1.1 200 OK\r\n"
FLOODS = {
    "interim answers": (b"", b"HTTP/1.1 100 Continue\r\n\r\n", "the connection ended before the answer was complete"),
    "fields": (OK, b"a: b\r\n", "the head of the answer is too long, or wrong"),
    "a long field": (OK + b"a: ", b"b", "the head of the answer is too long, or wrong"),
    "small chunks": (
        OK + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\na\r\n", "the connection ended before the answer was complete"
    ),
    "further answers": (b"", OK + b"Content-Length: 0\r\n\r\n", ""),
    "a large body": (OK + b"Content-Length: 1000000000\r\n\r\n", b"a", ""),
}  # fmt: skip
"""What an endpoint begins with, what it then sends again and again, and what its user is told if that is a failure."""


@pytest.mark.parametrize("name", FLOODS)
async def test_few_bytes_of_an_answer_are_parsed(name: str, sender: Sender, monkeypatch: pytest.MonkeyPatch) -> None:
    """The parser takes all that a read brings without a pause, so it would hold the event loop."""
    first, unit, error = FLOODS[name]
    parsed, parse = [], ResponseHandler.data_received

    def count(self: ResponseHandler, data: bytes) -> None:
        parsed.append(len(data))
        parse(self, data)

    async def flood(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(first)
            while True:
                writer.write(unit * 10_000)
                await writer.drain()

    monkeypatch.setattr(ResponseHandler, "data_received", count)
    async with await asyncio.start_server(flood, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        sent = await sender.send("7", url, MESSAGE, ())
        assert (sent.outcome.status, sent.outcome.error) == (None if error else 200, error)
        assert 0 < sum(parsed) <= MAX_RAW_BYTES
        assert max(parsed) <= 2 * RECEIVE_BUFFER_BYTES


async def test_a_connection_serves_more_answers_than_are_parsed_of_one(serve: Serve, sender: Sender) -> None:
    connections: set[object] = set()

    async def answer(request: web.Request) -> web.Response:
        connections.add(request.transport)
        return web.Response(text="x" * (MAX_ANSWER_BYTES - 1))

    url = await serve(answer)
    for _ in range(2 * MAX_RAW_BYTES // MAX_ANSWER_BYTES):
        sent = await sender.send("7", url, MESSAGE, ())
        assert (sent.outcome.status, len(sent.answer)) == (200, MAX_ANSWER_BYTES - 1)
    assert len(connections) == 1


async def test_names_that_hang_hold_up_no_endpoint_of_another_user(serve: Serve) -> None:
    """One user has as many names that hang as there are threads, and more of them have been given up already."""
    ends, asked = threading.Event(), Counter[str]()

    def find(host: str, port: int, **_: object) -> list[Any]:
        asked[host] += 1
        if host == "hangs.example":
            ends.wait()
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]

    async def take(_: web.Request) -> web.Response:
        return web.Response()

    names = Names(find)
    short, sender = (Sender("127.0.0.1", seconds, resolver=names) for seconds in (0.05, PATIENCE))
    url = (await serve(take)).replace("127.0.0.1", "works.example")
    try:
        hanging = "http://hangs.example/"
        sent = await asyncio.gather(*(short.send("7", hanging, MESSAGE, ()) for _ in range(2 * LOOKUP_THREADS)))
        assert {one.outcome.error for one in sent} == {"no answer in time"}
        assert (await sender.send("8", url, MESSAGE, ())).outcome.is_success
        assert asked == {"hangs.example": THREADS_OF_USER, "works.example": 1}
    finally:
        ends.set()
        await sender.close()
    await short.close()


async def test_no_proxy_of_the_environment_is_used(
    serve: Serve, sender: Sender, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def take(_: web.Request) -> web.Response:
        return web.Response()

    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{free_port()}")
    assert (await sender.send("7", await serve(take), MESSAGE, ())).outcome.status == 200


GOOD = ["https://a.example", "https://a.example:8443/x?y=z", "https://[2606:4700::1]/", "https://1.1.1.1/"]
BAD = [
    "", "tea", "//a.example", "ftp://a.example", "http://a.example", "https://", "https://a.example:99999/", "https:/a",
    "https://user:pass@a.example/", "https://a.example/#x", "https://a.example/ x", "https://a.example/\n", "https://ä.example/",
    "https://a.example:0/", "https://a.example/" + "x" * 2000, "https://12/", "https://a.1/", "https://a.0x7/", "https://[::1",
]  # fmt: skip


@pytest.mark.parametrize("url", GOOD)
def test_a_public_https_url_is_accepted(url: str) -> None:
    Sender("", PATIENCE).check_url(url, "deliver.url")


@pytest.mark.parametrize("url", BAD)
def test_another_text_is_refused_by_name(url: str) -> None:
    with pytest.raises(BadRequest) as refused:
        Sender("", PATIENCE).check_url(url, "deliver.url")
    assert refused.value.param == "deliver.url"


def test_a_wrong_network_is_refused_at_the_start() -> None:
    with pytest.raises(InvalidSetting, match="--webhook-networks"):
        Sender("127.0.0.1, tea", PATIENCE)


async def test_a_message_is_accepted_by_the_clock_of_now(serve: Serve, sender: Sender) -> None:
    """The library refuses a time that is five minutes away, so the server sends seconds of the present."""
    found: list[int] = []

    async def note(request: web.Request) -> web.Response:
        found.append(int(request.headers["webhook-timestamp"]))
        return web.Response()

    before = int(time.time())
    await sender.send("7", await serve(note), MESSAGE, ())
    assert before <= found[0] <= time.time()
