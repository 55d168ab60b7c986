"""Streams through a real proxy with its defaults, and what makes that work: the head, the heartbeats, HTTP/1.0."""

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from email.parser import BytesParser
from email.policy import HTTP
from functools import partial

import aiohttp
import pytest

from tests.end_to_end.api import Api, mint
from tests.end_to_end.consumer import MEDIA, Consumer
from tests.end_to_end.faults.clients import RawClient
from tests.end_to_end.nginx import Nginx, binary
from tests.end_to_end.server import Server
from tests.waiting import eventually

pytestmark = pytest.mark.extended

FRAMINGS = pytest.mark.parametrize("framing", ["sse", "ndjson"])

needs_nginx = pytest.mark.skipif(binary() is None, reason="nginx is not installed")

GZIP = "gzip on; gzip_proxied any; gzip_min_length 1; gzip_types text/event-stream application/x-ndjson;"

TIMEOUT = "proxy_read_timeout 2s;"
"""The minute of nginx's default, shortened; the server of the tests beats every 0.2 s, one of its own every 60 s."""

DEAF = "proxy_ignore_headers X-Accel-Buffering;"


@pytest.fixture(scope="module")
def silent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server whose heartbeats come too late for the proxy."""
    with Server(tmp_path_factory.mktemp("silent"), "--heartbeat-seconds", "60") as running:
        yield running


@pytest.fixture(scope="module")
def nginx(server: Server, silent: Server) -> Iterator[Nginx]:
    """One in front of both servers; what is not said is nginx's default: HTTP/1.0 upstream, buffering on."""
    locations = {
        "/defaults/": (server.address, ""),
        "/http11/": (server.address, "proxy_http_version 1.1;"),
        "/gzip/": (server.address, GZIP),
        "/impatient/": (server.address, TIMEOUT),
        "/silent/": (silent.address, TIMEOUT),
        "/calm/": (silent.address, ""),
        "/deaf/": (silent.address, DEAF),
    }
    with Nginx(locations) as running:
        yield running


@asynccontextmanager
async def through(nginx: Nginx, location: str, uid: str, framing: str) -> AsyncIterator[Consumer]:
    """A stream of one author's posts by way of a location of the proxy."""
    headers = {"Authorization": f"Bearer {mint(uid)}", "Accept": MEDIA[framing], "Accept-Encoding": "gzip"}
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=10, sock_read=60)
    async with (
        aiohttp.ClientSession(timeout=timeout) as session,
        session.get(f"{nginx.address}/{location}/v1/stream", params={"follow": uid}, headers=headers) as response,
    ):
        assert response.status == 200, await response.text()
        async with Consumer(response, framing) as consumer:
            yield consumer


@needs_nginx
@FRAMINGS
@pytest.mark.parametrize("location", ["defaults", "http11", "gzip", "impatient"])
async def test_events_pass_a_proxy_as_they_happen(api: Api, nginx: Nginx, location: str, framing: str) -> None:
    """Buffering, HTTP/1.0 behind it, compression: each event is there while the stream is open, one by one."""
    uid = await api.user()
    async with through(nginx, location, uid, framing) as consumer:
        await consumer.until(lambda c: c.of("hello"))
        for turn in range(3):
            posted = await api.post(uid, f"number {turn}")
            await consumer.until(lambda c: c.events)
            assert consumer.told == [("post", posted["id"])]
            consumer.messages.clear()
            assert not consumer.ended
        assert consumer.response.headers.get("Content-Encoding") == ("gzip" if location == "gzip" else None)


@needs_nginx
async def test_a_proxy_that_does_not_heed_the_head_holds_everything_back(nginx: Nginx, silent: Server) -> None:
    """The control: without `X-Accel-Buffering: no` not even the head is there when others have an event behind it."""
    async with Api(silent) as api, await RawClient.connect(nginx.address) as held:
        uid = await api.user()
        await held.ask(f"/deaf/v1/stream?follow={uid}", mint(uid))
        await eventually(partial(has_streams, api, 1), what="the stream of whom the proxy keeps waiting")
        async with through(nginx, "calm", uid, "sse") as passed:
            posted = await api.post(uid, "hello?")
            await passed.until(lambda c: ("post", posted["id"]) in c.told)
            with pytest.raises(BlockingIOError):
                held.socket.recv(1)


async def has_streams(api: Api, count: int) -> bool:
    """Whether the server has so many streams open."""
    told = await api.call("GET", "/metrics")
    return f"\nstream_server_streams {count}.0\n" in told.body.decode()


@needs_nginx
@FRAMINGS
async def test_heartbeats_hold_a_connection_that_a_proxy_would_cut(api: Api, nginx: Nginx, framing: str) -> None:
    """Twice as long as the proxy waits without a single event, and then one comes over the same connection."""
    uid = await api.user()
    async with through(nginx, "impatient", uid, framing) as consumer:
        await consumer.until(lambda c: len(c.of("heartbeat")) >= 20, 60)  # 4 s of them: the proxy waits for 2
        posted = await api.post(uid, "still there")
        await consumer.until(lambda c: ("post", posted["id"]) in c.told)
        assert not consumer.ended


@needs_nginx
async def test_without_heartbeats_the_proxy_cuts(nginx: Nginx, silent: Server) -> None:
    """The control: a silent stream is ended by the proxy after its two seconds, without a goodbye of ours."""
    async with Api(silent) as api:
        uid = await api.user()
        async with through(nginx, "silent", uid, "ndjson") as consumer:
            await consumer.until(lambda c: c.of("hello"))
            await consumer.until_end(60)
            assert [m["kind"] for m in consumer.messages] == ["hello"]


async def head_of(client: RawClient, token: str, version: str, accept: str) -> tuple[str, dict[str, str], bytes]:
    """Ask for everything; status line, headers by lower-case names, and what of the body came with them."""
    await client.send(
        f"GET /v1/stream?firehose=true HTTP/{version}\r\nHost: localhost\r\nAccept: {accept}\r\n"
        f"Accept-Encoding: gzip, br\r\nAuthorization: Bearer {token}\r\n\r\n".encode()
    )
    head, _, rest = (await client.read_until(b'"hello"')).partition(b"\r\n\r\n")
    status, _, rows = head.partition(b"\r\n")
    parsed = BytesParser(policy=HTTP).parsebytes(rows + b"\r\n\r\n")
    return status.decode(), {name.lower(): str(value) for name, value in parsed.items()}, rest


@FRAMINGS
async def test_the_head_of_a_stream_has_what_proxies_need(api: Api, framing: str) -> None:
    """Not to be stored, not to be held back, not packed, of no known length, and the last on its connection."""
    async with await RawClient.connect(api.server.address) as client:
        status, headers, _ = await head_of(client, mint(api.admin), "1.1", MEDIA[framing])
    assert status == "HTTP/1.1 200 OK"
    assert headers["content-type"].partition(";")[0] == MEDIA[framing]
    assert headers["cache-control"] == "no-store"
    assert headers["x-accel-buffering"] == "no"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["transfer-encoding"] == "chunked"
    assert headers["connection"].lower() == "close"
    assert "content-length" not in headers
    assert "content-encoding" not in headers


@FRAMINGS
async def test_a_client_of_http_1_0_gets_bare_lines_until_the_end(api: Api, framing: str) -> None:
    """No chunks, which it does not know: what comes behind the head is the stream itself, as it happens."""
    async with await RawClient.connect(api.server.address) as client:
        status, headers, body = await head_of(client, mint(api.admin), "1.0", MEDIA[framing])
        assert status.startswith("HTTP/1.0 200")
        assert "transfer-encoding" not in headers
        assert "content-length" not in headers
        assert headers.get("connection", "close").lower() == "close"
        posted = await api.post(api.admin, "to an old client")
        body += await client.read_until(posted["id"].encode())
        body += await client.read_until(b"\n")
    said = [line.removeprefix(b"data: ") for line in body.split(b"\n") if line.startswith((b"{", b"data: {"))]
    assert json.loads(said[0])["kind"] == "hello"
    assert any(json.loads(line).get("status", {}).get("id") == posted["id"] for line in said)
    fields = (b"id: ", b"event: ", b"data: ", b"retry: ") if framing == "sse" else (b"{",)
    whole = body[: body.rfind(b"\n")].split(b"\n")
    assert all(not line or line.startswith(fields) for line in whole), whole
