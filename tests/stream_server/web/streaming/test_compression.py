"""Streams with gzip: what the client may ask for, and that many clients share what was compressed once."""

import asyncio
import json
import zlib
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import httpx
import pytest

from stream_server.errors import NotAcceptable
from stream_server.hub.messages import IDENTITY
from stream_server.web.streaming import compression
from stream_server.web.streaming.compression import (
    GZIP,
    GZIP_HEADER,
    begin_body,
    compress_framing,
    deflate,
    negotiate_content_coding,
)
from stream_server.web.streaming.framing import NDJSON, SSE, select_framing
from tests.stream_server.web.running_server import RunningServer, running_server
from tests.waiting import PATIENCE

LINES = select_framing(NDJSON, chunked=False)
EVENTS = select_framing(SSE, chunked=False)


def inflate(data: bytes) -> bytes:
    """Decode a body without a trailer, as clients do."""
    return zlib.decompressobj(16 + zlib.MAX_WBITS).decompress(data)


@pytest.mark.parametrize(
    ("accept", "coding"),
    [
        (None, IDENTITY),
        ("", IDENTITY),
        ("gzip", GZIP),
        ("X-GZip", GZIP),
        ("gzip, deflate, br, zstd", GZIP),
        ("br, GZIP ; Q=0.3", GZIP),
        ("*", GZIP),
        ("deflate, br", IDENTITY),
        ("gzip;q=0", IDENTITY),
        ("gzip;q=0, *", IDENTITY),
        ("gzip;q=0.5, identity", IDENTITY),
        ("gzip;q=0.5, identity;q=0.4", GZIP),
        ("gzip, identity", GZIP),
        ("*;q=0, gzip", GZIP),
        ("*;q=0, identity", IDENTITY),
        ("identity;q=0, *", GZIP),
        ("gzip;q=x", IDENTITY),
        (",, ;q=1", IDENTITY),
    ],
)
def test_the_coding_is_what_the_client_prefers(accept: str | None, coding: str) -> None:
    """RFC 9110, section 12.5.3."""
    assert negotiate_content_coding(accept) == coding


@pytest.mark.parametrize("accept", ["identity;q=0", "*;q=0", "br, identity;q=0", "gzip;q=0, identity;q=0"])
def test_a_client_that_accepts_nothing_is_refused(accept: str) -> None:
    with pytest.raises(NotAcceptable) as refused:
        negotiate_content_coding(accept)
    assert (refused.value.status, refused.value.param) == (406, "Accept-Encoding")


def test_blocks_fit_behind_any_other_bytes() -> None:
    """Two clients share the last write, and have got other bytes before it."""
    packed = compress_framing(LINES)
    shared = packed.wrap(b'{"kind":"post"}\n')
    for earlier in (b"", b"x" * 70_000, b'{"kind":"post"}\n'):
        begun = begin_body(b"hello\n") + (packed.wrap(earlier) if earlier else b"")
        assert inflate(begun + shared) == b"hello\n" + earlier + b'{"kind":"post"}\n'


@pytest.mark.parametrize("size", [1, 100, 8192, 8193, 100_000])
def test_each_write_is_decoded_at_once(size: int) -> None:
    decoder = zlib.decompressobj(-zlib.MAX_WBITS)
    for number in range(5):
        data = bytes([65 + number]) * size
        assert decoder.decompress(deflate(data)) == data


@pytest.mark.parametrize("framing", [LINES, EVENTS])
def test_messages_that_are_packed_apart_do_not_shorten_each_other(framing: Any) -> None:
    end = b"\n\n" if framing is EVENTS else b"\n"
    one, other = b"id: 1\ndata: a secret of somebody" + end, b"id: 1\ndata: another text of equal length" + end
    if framing is LINES:
        one, other = one.replace(b"\n", b" ", 1), other.replace(b"\n", b" ", 1)
    apart, joined = compress_framing(framing, apart=True), compress_framing(framing)
    assert len(apart.wrap(one + one)) == 2 * len(apart.wrap(one))
    assert len(apart.wrap(one + other)) == len(apart.wrap(one)) + len(apart.wrap(other))
    assert len(joined.wrap(one + one)) < 2 * len(joined.wrap(one))
    assert inflate(GZIP_HEADER + apart.wrap(one + other)) == one + other


@pytest.fixture
async def server(redis_url: str) -> AsyncIterator[RunningServer]:
    async with running_server(redis_url, {"heartbeat_seconds": 60.0}) as running:
        yield running


async def post(server: RunningServer, text: str) -> str:
    body = {"message": text}
    async with server.session.post("/v1/statuses", json=body, headers=server.authorization) as answer:
        assert answer.status == 201
        return str((await answer.json())["id"])


def asking(server: RunningServer, **more: str) -> dict[str, str]:
    return {**server.authorization, "Accept": NDJSON, "Accept-Encoding": "gzip", **more}


async def next_message(answer: aiohttp.ClientResponse) -> dict[str, Any]:
    async with asyncio.timeout(PATIENCE):
        message: dict[str, Any] = json.loads(await answer.content.readline())
        return message


@pytest.mark.parametrize("accept", ["identity", "gzip;q=0"])
async def test_a_plain_stream_says_that_it_depends_on_the_header(server: RunningServer, accept: str) -> None:
    headers = asking(server, **{"Accept-Encoding": accept})
    async with server.session.get("/v1/stream?track=tea", headers=headers) as stream:
        assert "Content-Encoding" not in stream.headers
        assert stream.headers["Vary"] == "Accept-Encoding"
        assert (await next_message(stream))["kind"] == "hello"


async def test_the_clients_of_a_group_share_what_is_compressed_once(
    server: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Five clients of one filter and two of others, with one event in one flush: one call of the compressor."""
    paths = ["firehose=true"] * 5 + ["track=tea", "track=green"]
    streams = [await server.session.get(f"/v1/stream?{path}", headers=asking(server)) for path in paths]
    plain = await server.session.get("/v1/stream?firehose=true", headers=asking(server, **{"Accept-Encoding": ""}))
    for stream in [*streams, plain]:
        await next_message(stream)
    compressed: list[bytes] = []

    def counting(data: bytes) -> bytes:
        compressed.append(data)
        return deflate(data)

    monkeypatch.setattr(compression, "deflate", counting)
    posted = await post(server, "green tea")
    for stream in [*streams, plain]:
        assert (await next_message(stream))["status"]["id"] == posted
    assert len(compressed) == 1
    for stream in [*streams, plain]:
        stream.close()


async def test_the_user_stream_is_compressed_message_by_message(
    server: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with server.session.get("/v1/stream/user", headers=asking(server)) as stream:
        cursor = (await next_message(stream))["cursor"]
    posted = [await post(server, "the same words") for _ in range(3)]
    compressed: list[bytes] = []

    def counting(data: bytes) -> bytes:
        compressed.append(data)
        return deflate(data)

    monkeypatch.setattr(compression, "deflate", counting)
    async with server.session.get(f"/v1/stream/user?since={cursor}", headers=asking(server)) as stream:
        assert stream.headers["Content-Encoding"] == GZIP
        await next_message(stream)
        assert [(await next_message(stream))["status"]["id"] for _ in posted] == posted
    assert [data.count(b'"kind"') for data in compressed] == [1, 1, 1, 1]


async def test_a_client_of_http_1_0_reads_gzip_without_chunks(server: RunningServer) -> None:
    reader, writer = await server.send_raw("GET /v1/stream?track=tea HTTP/1.0\r\nAccept-Encoding: gzip")
    head = await reader.readuntil(b"\r\n\r\n")
    assert b"content-encoding: gzip" in head.lower()
    assert b"chunked" not in head.lower()
    decoder, body = zlib.decompressobj(16 + zlib.MAX_WBITS), b""
    posted = await post(server, "tea")
    async with asyncio.timeout(PATIENCE):
        while posted.encode() not in body:
            body += decoder.decompress(await reader.read(4096))
    writer.close()


async def test_httpx_reads_a_stream_up_to_its_goodbye(server: RunningServer) -> None:
    """The body has no trailer, which a client must not mistake for an error."""
    async with (
        httpx.AsyncClient(base_url=f"http://127.0.0.1:{server.port}") as client,
        client.stream("GET", "/v1/stream?track=tea", headers={**server.authorization, "Accept": NDJSON}) as stream,
    ):
        assert stream.headers["Content-Encoding"] == GZIP
        lines = stream.aiter_lines()
        assert json.loads(await anext(lines))["kind"] == "hello"
        posted = await post(server, "tea")
        assert json.loads(await anext(lines))["status"]["id"] == posted
        await server.begin_to_stop()
        assert [json.loads(line)["kind"] async for line in lines] == ["goodbye"]


async def test_a_long_poll_is_compressed_if_it_is_long(server: RunningServer) -> None:
    for number in range(5):
        await post(server, f"tea {number}")
    async with server.session.get("/v1/events?track=tea&since=-1h&wait=0", headers=asking(server)) as answer:
        assert (answer.headers["Content-Encoding"], answer.headers["Vary"]) == (GZIP, "Accept-Encoding")
        assert len((await answer.json())["events"]) == 5
    async with server.session.get("/v1/events?track=nothing&wait=0", headers=asking(server)) as answer:
        assert "Content-Encoding" not in answer.headers
        assert answer.headers["Vary"] == "Accept-Encoding"


async def test_compression_can_be_switched_off(redis_url: str) -> None:
    async with running_server(redis_url, {"compress_streams": "off"}) as server:
        for path in ("/v1/stream?track=tea", "/v1/events?track=tea&wait=0", "/v1/stream/user"):
            async with server.session.get(path, headers=asking(server)) as answer:
                assert answer.status == 200
                assert not {"Content-Encoding", "Vary"} & set(answer.headers)


async def test_a_page_of_another_origin_keeps_both_reasons_to_vary(redis_url: str) -> None:
    async with running_server(redis_url, {"cors_origins": "https://example.org"}) as server:
        for path in ("/v1/stream?track=tea", "/v1/events?track=tea&wait=0"):
            async with server.session.get(path, headers=asking(server, Origin="https://example.org")) as answer:
                assert set(answer.headers["Vary"].split(", ")) == {"Origin", "Accept-Encoding"}


@pytest.mark.parametrize("path", ["/1.1/statuses/filter.json?track=tea", "/2/tweets/sample/stream"])
async def test_the_dialects_are_compressed_too(server: RunningServer, path: str) -> None:
    async with server.session.get(path, headers=asking(server)) as stream:
        assert (stream.status, stream.headers["Content-Encoding"]) == (200, GZIP)
        assert await stream.content.readline() == b"\r\n"
