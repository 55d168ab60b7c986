"""WebSockets of careless and hostile clients, behind a proxy, and at the end of a server."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from websockets.exceptions import InvalidStatus

from tests.end_to_end.api import Api, mint
from tests.end_to_end.nginx import Nginx, find_nginx, with_locations
from tests.end_to_end.raw_socket import RawSocket
from tests.end_to_end.server import Server
from tests.end_to_end.socket_consumer import open_socket
from tests.stream_server.web.websocket.client_frames import BINARY, PING, TEXT, frame
from tests.waiting import eventually

pytestmark = pytest.mark.extended

CONNECTS = 8
UNPROVEN = 32
PAGE = "https://pages.example"

PASS_ON = (
    "proxy_http_version 1.1; proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection upgrade; "
    "proxy_set_header Host $http_host;"
)
"""What nginx needs to pass WebSockets on."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One server with limits, without compression, and with pages of one other origin."""
    options = ("--limits", f"connects={CONNECTS}", "--compress-streams", "off", "--cors-origins", PAGE)
    with Server(tmp_path_factory.mktemp("server"), *options) as running:
        yield running


async def test_the_settings_hold_for_websockets_too(api: Api) -> None:
    """No compression, though the client offers it. Pages of the named origin may connect, others not."""
    async with await open_socket(api, "track=a", uid=await api.user(), origin=PAGE) as socket:
        assert not socket.socket.protocol.extensions
    with pytest.raises(InvalidStatus) as refused:
        await open_socket(api, "track=a", origin="https://pages.example.org")
    assert refused.value.response.status_code == 403


async def test_few_sockets_without_a_token_are_open_and_not_for_long(api: Api) -> None:
    """A silent socket is closed after five seconds, and its place is free then."""
    sockets = await asyncio.gather(*(RawSocket.open(api.server, "/v1/stream?track=a") for _ in range(UNPROVEN)))
    assert all(raw.head.startswith("HTTP/1.1 101") for raw in sockets)
    async with await RawSocket.open(api.server, "/v1/stream?track=a") as refused:
        assert refused.head.startswith("HTTP/1.1 429")
    sockets[0].writer.write(frame(TEXT, json.dumps({"op": "token", "token": mint(await api.user())}).encode()))
    assert (await sockets[0].read_message())["kind"] == "hello"
    async with await RawSocket.open(api.server, "/v1/stream?track=a") as next_one:
        assert next_one.head.startswith("HTTP/1.1 101")
    for raw in sockets[1:]:
        error = await raw.read_message()
        assert error["error"]["code"] == "invalid_token"
        assert (await raw.until_close()).code == 1008
    for raw in sockets:
        raw.writer.close()

    async def opens() -> bool:
        async with await RawSocket.open(api.server, "/v1/stream?track=a") as raw:
            return raw.head.startswith("HTTP/1.1 101")

    await eventually(opens, what="free places")


async def test_a_client_that_sends_without_reading_is_not_read(api: Api) -> None:
    """Its answers fill its buffers. Then the server reads no more of it, so its own writes stop. Others go on."""
    ann = await api.user()
    authorization = f"Authorization: Bearer {mint(ann)}\r\n"
    async with await RawSocket.open(api.server, "/v1/stream?track=a", authorization) as raw:
        raw.reader._transport.pause_reading()  # type: ignore[attr-defined]  # a private member
        pings = frame(PING, b"*" * 125) * 1000
        sent = 0
        try:
            while sent < 200_000_000:
                raw.writer.write(pings)
                async with asyncio.timeout(3):
                    await raw.writer.drain()
                sent += len(pings)
        except TimeoutError:
            pass
        assert sent < 50_000_000
        async with await open_socket(api, "track=tea", uid=ann) as socket:
            post = await api.post(ann, "tea")
            await socket.until(lambda s: s.received == [("post", post["id"])])
        raw.writer.transport.abort()


async def test_a_revoked_token_closes_the_socket(api: Api) -> None:
    token = mint(await api.user())
    socket = await open_socket(api, "track=a", token=token)
    await api.done("DELETE", "/v1/sessions", token=token)
    await socket.until_end()
    assert (socket.messages[-1]["code"], socket.code) == ("token_revoked", 1008)


async def test_a_server_that_stops_says_so(own_folder: Path) -> None:
    """Streams get a goodbye. A socket without a token is closed too, and one that is closing already hinders nobody."""
    async with Server(own_folder) as own, Api(own) as api:
        socket, other = await open_socket(api, "track=a"), await open_socket(api, "track=a", token=None)
        faulty = await RawSocket.open(own, "/v1/stream?track=a")
        faulty.writer.write(frame(BINARY, b"{}"))
        assert (await faulty.until_close()).code == 1003
        stopping = asyncio.create_task(asyncio.to_thread(own.stop))
        for each in (socket, other):
            await each.until_end()
            assert each.code == 1001
        await stopping
        faulty.writer.close()
    goodbye = socket.messages[-1]
    assert (goodbye["kind"], goodbye["code"]) == ("goodbye", "shutdown")
    assert goodbye["retry_after"] > 0


@pytest.mark.skipif(find_nginx() is None, reason="nginx is not installed")
async def test_a_proxy_passes_websockets_on(api: Api, server: Server) -> None:
    with Nginx(with_locations({"/": (server.address, PASS_ON)})) as proxy:
        direct, ann = server.address, await api.user()
        server.address = proxy.address
        try:
            async with await open_socket(api, "track=tea", uid=ann, origin=proxy.address) as socket:
                assert (await socket.ask("ping"))["kind"] == "pong"
        finally:
            server.address = direct
