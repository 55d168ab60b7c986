"""Connections in unusual states: each is answered or ends, and nothing behind the last answer runs."""

import asyncio
import socket
from collections.abc import Iterator

import pytest

from tests.end_to_end.api import Api, mint
from tests.end_to_end.faults.clients import RawClient
from tests.end_to_end.server import Server

HEALTH = b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n"
ALIVE = b'{"alive":true}'


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(tmp_path_factory.mktemp("server"), "--limits", "off") as running:
        yield running


def head(line: str, *fields: str) -> bytes:
    return "\r\n".join([f"{line} HTTP/1.1", "Host: a", *fields, "", ""]).encode()


def statuses(came: bytes) -> list[bytes]:
    return [part.split(b" ", 1)[0] for part in came.split(b"HTTP/1.1 ")[1:]]


DECLINED = {
    "a WebSocket": (head("GET /healthz", "Upgrade: websocket", "Connection: Upgrade", "Content-Length: 2"), b"{}"),
    "a WebSocket, in chunks": (
        head("GET /healthz", "Upgrade: websocket", "Connection: Upgrade", "Transfer-Encoding: chunked"),
        b"2\r\n{}\r\n0\r\n\r\n",
    ),
    "an unknown path": (head("POST /nowhere", "Upgrade: tcp", "Connection: Upgrade", "Content-Length: 2"), b"{}"),
    "CONNECT": (head("CONNECT a:80", "Content-Length: 2"), b"{}"),
    "CONNECT whose body looks like a request": (head("CONNECT a:80", f"Content-Length: {len(HEALTH)}"), HEALTH),
}


@pytest.mark.parametrize("is_early", [True, False], ids=["with the head", "after the answer"])
@pytest.mark.parametrize(("asked", "body"), DECLINED.values(), ids=DECLINED)
async def test_a_declined_upgrade_ends_its_connection(
    server: Server, asked: bytes, body: bytes, *, is_early: bool
) -> None:
    """The parser of aiohttp never goes on behind it, so the next request would hang. A body is not run as a request."""
    async with await RawClient.connect(server.address) as client:
        if is_early:
            await client.send(asked + body + HEALTH)
            came = await client.read_to_end()
        else:
            await client.send(asked)
            came = await client.read_until(b"\r\n\r\n")
            await client.send(body + HEALTH)
            came += await client.read_to_end()
        assert len(statuses(came)) == 1
        assert b"Connection: close" in came


async def test_a_declined_upgrade_to_http_2_leaves_the_connection_open(server: Server) -> None:
    """Java's client and curl offer it in usual requests, also with a body."""
    fields = ("Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAAQAAP__")
    async with await RawClient.connect(server.address) as client:
        for _ in range(2):
            await client.send(head("GET /healthz", *fields))
            assert ALIVE in await client.read_until(b"}")
            await client.send(head("POST /v1/sessions", *fields, "Content-Length: 2"))
            assert b"415" in await client.read_until(b"}}")
            await client.send(b"{}" + HEALTH)
            assert ALIVE in await client.read_until(b"}")


@pytest.mark.parametrize("line", ["POST /nowhere", "GET /v1/stream?track=x", "POST /v1/statuses"])
async def test_a_request_behind_a_long_body_that_nobody_reads_is_answered(server: Server, line: str) -> None:
    """The library reads on inside its parser when the body ends, and its parser must not be called again then."""
    async with await RawClient.connect(server.address) as client:
        for size in (70_000, 200_000, 1_000_000):
            sending = asyncio.create_task(client.send(head(line, f"Content-Length: {size}") + bytes(size) + HEALTH))
            assert ALIVE in await client.read_until(ALIVE)
            await sending


async def test_no_request_begins_behind_connection_close(server: Server, api: Api) -> None:
    """RFC 9112 §9.6: also if the body of the last request comes after its answer."""
    token = mint(api.admin)
    stream = head("GET /v1/stream?track=x", f"Authorization: Bearer {token}")
    opened = await api.stream({"track": "x"}, token=token)  # a stream with a token that is known opens at once
    await opened.close()
    for close in ("Connection: close", "Connection: keep-alive, close"):
        async with await RawClient.connect(server.address) as client:
            await client.send(head("POST /v1/statuses", close, "Content-Length: 2"))
            came = await client.read_until(b"}}")
            await client.send(b"{}" + stream)
            came += await client.read_to_end()
            assert statuses(came) == [b"401"]


async def test_a_client_that_ends_its_side_after_a_whole_request_is_answered(server: Server, api: Api) -> None:
    token = f"Authorization: Bearer {mint(api.admin)}"
    body = b'{"message":"said before the end"}'
    post = head("POST /v1/statuses", token, "Content-Type: application/json", f"Content-Length: {len(body)}") + body
    by_aiohttp = post.replace(b"Host: a\r\n", b"Host: a\r\nTE: trailers\r\n")
    for sent, expected in (
        (post, [b"201"]),
        (by_aiohttp, [b"201"]),
        (HEALTH + post + HEALTH, [b"200", b"201", b"200"]),
        (HEALTH + b"\r\n", [b"200"]),
        (HEALTH + HEALTH[:20], [b"200"]),
    ):
        async with await RawClient.connect(server.address) as client:
            await client.send(sent)
            client.socket.shutdown(socket.SHUT_WR)
            assert statuses(await client.read_to_end()) == expected
    said = await api.done("GET", f"/v1/users/{api.admin}/statuses", token=mint(api.admin))
    assert [each["message"] for each in said["statuses"]] == ["said before the end"] * 3


async def test_a_broken_body_is_refused_also_if_the_client_stops_sending(server: Server, api: Api) -> None:
    token = f"Authorization: Bearer {mint(api.admin)}"
    post = head("POST /v1/statuses", token, "Content-Type: application/json", "Transfer-Encoding: chunked")
    async with await RawClient.connect(server.address) as client:
        await client.send(post + b"zz\r\n")
        client.socket.shutdown(socket.SHUT_WR)
        assert statuses(await client.read_to_end()) == [b"400"]


async def test_chunks_in_http_1_0_are_the_last_request_of_their_connection(server: Server) -> None:
    """Something before this server may not know chunks, and count the bytes otherwise (RFC 9112 §6.1)."""
    asked = head("POST /v1/sessions", "Connection: keep-alive", "Transfer-Encoding: chunked").replace(b"1.1", b"1.0")
    async with await RawClient.connect(server.address) as client:
        await client.send(asked + b"2\r\n{}\r\n0\r\n\r\n" + HEALTH)
        came = await client.read_to_end()
        assert came.startswith((b"HTTP/1.0 4", b"HTTP/1.1 4"))
        assert came.count(b"HTTP/1.") == 1


CUT_SHORT = {
    "nothing": b"",
    "half a head": HEALTH[:20],
    "half a body": head("POST /v1/statuses", "TOKEN", "Content-Type: application/json", "Content-Length: 20") + b"{",
    "half a chunk": head("POST /v1/statuses", "TOKEN", "Content-Type: application/json", "Transfer-Encoding: chunked")
    + b"9\r\n{",
    "a stream": head("GET /v1/stream?track=x", "TOKEN"),
    "a poll": head("GET /v1/events?track=x&wait=60", "TOKEN"),
    "a stream by aiohttp": head("GET /v1/stream?track=x", "TOKEN", "TE: trailers"),
}


@pytest.mark.parametrize("sent", CUT_SHORT.values(), ids=CUT_SHORT)
async def test_what_is_not_whole_ends_with_the_client_s_side_and_so_do_streams_and_polls(
    server: Server, api: Api, sent: bytes
) -> None:
    token = f"Authorization: Bearer {mint(api.admin)}".encode()
    async with await RawClient.connect(server.address) as client:
        await client.send(sent.replace(b"TOKEN", token))
        if b"/v1/stream" in sent:
            await client.read_until(b"hello")
        client.socket.shutdown(socket.SHUT_WR)
        assert b"HTTP/1.1" not in await client.read_to_end()


@pytest.mark.parametrize("version", ["HTTP/0.9", "HTTP/2.0", "HTTP/1.2", "HTTP/1.10", "http/1.1", ""])
async def test_other_versions_of_http_are_refused(server: Server, version: str) -> None:
    async with await RawClient.connect(server.address) as client:
        await client.send(f"GET /healthz {version}\r\nHost: a\r\n\r\n".encode())
        came = await client.read_to_end()
        assert statuses(came) == [b"400"]
        assert b"the request is not valid HTTP" in came


async def test_an_idle_connection_is_kept_as_long_as_the_setting_says(tmp_path_factory: pytest.TempPathFactory) -> None:
    """It outlives the deadline of a head that a new connection has, and ends without an answer."""
    with Server(tmp_path_factory.mktemp("idle"), "--idle-seconds", "1") as server:
        async with await RawClient.connect(server.address) as client:
            await client.send(HEALTH)
            assert ALIVE in await client.read_until(b"}")
            assert await client.read_to_end() == b""


async def test_nothing_of_this_is_left(server: Server, api: Api) -> None:
    """No line of the log tells of an error."""
    assert (await api.call("GET", "/healthz")).status == 200
    assert '"level":"error"' not in server.log
    assert "Traceback" not in server.log
