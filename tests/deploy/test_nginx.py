"""The shipped nginx files before real servers: streams, WebSockets, a server that ends, invented headers."""

import asyncio
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path

import aiohttp
import pytest

from tests.end_to_end.api import Api, mint
from tests.end_to_end.consumer import Consumer
from tests.end_to_end.faults.clients import RawClient
from tests.end_to_end.nginx import SHIPPED, Nginx, find_nginx, shipped
from tests.end_to_end.server import Server
from tests.redis_process import private_redis
from tests.waiting import eventually

pytestmark = [pytest.mark.extended, pytest.mark.skipif(find_nginx() is None, reason="nginx is not installed")]


ATTACKED, ATTACKERS = "127.0.0.7", {"Forwarded": "127.0.0.3", "X-Forwarded-For": "127.0.0.4", "X-Real-IP": "127.0.0.5"}
"""Addresses of clients: all of 127.0.0.0/8 is this machine."""

LOOKUPS = 5


def _nginx(servers: list[Server], path: str = SHIPPED) -> Nginx:
    return Nginx(shipped([server.address for server in servers], path))


async def _open(session: aiohttp.ClientSession, uid: str, since: str = "") -> Consumer | None:
    """Open a stream through nginx. None if nginx does not answer yet."""
    headers = {"Authorization": f"Bearer {mint(uid)}", "Accept": "application/x-ndjson"}
    params = {"follow": uid} | ({"since": since} if since else {})
    try:
        response = await session.get("/v1/stream", params=params, headers=headers)
    except aiohttp.ClientConnectionError:
        return None
    assert response.status == 200, await response.text()
    return await Consumer(response, "ndjson").until(lambda c: c.messages)


async def test_streams_resume_on_the_other_server_while_one_ends(tmp_path: Path) -> None:
    """Each client of the ending server gets a goodbye, asks again at once, and gets 200 and what it missed."""
    with private_redis() as redis:
        servers = [Server(tmp_path / str(at), "--redis", redis.url) for at in range(2)]
        with servers[0], servers[1], _nginx(servers) as nginx:
            async with AsyncExitStack() as stack:
                api = await stack.enter_async_context(Api(servers[1]))
                session = await stack.enter_async_context(aiohttp.ClientSession(nginx.address))
                uid = await api.user()
                first = await eventually(lambda: _open(session, uid), what="nginx answers")
                opened = [first, *[await _open(session, uid) for _ in range(6)]]
                streams = [await stack.enter_async_context(each) for each in opened if each is not None]
                await _hear_by_websocket(session, uid)
                before = await api.post(uid, "while both serve")
                for stream in streams:
                    await stream.until(lambda c: ("post", before["id"]) in c.received)
                await asyncio.to_thread(servers[0].stop)
                ended = [stream for stream in streams if stream.of("goodbye")]
                assert 0 < len(ended) < len(streams)  # nginx had spread them
                missed = await api.post(uid, "while they are away")
                for stream in ended:
                    resumed = await _open(session, uid, stream.cursor)
                    assert resumed is not None
                    await stack.enter_async_context(resumed)
                    await resumed.until(lambda c: c.received == [("post", missed["id"])])


async def _hear_by_websocket(session: aiohttp.ClientSession, uid: str) -> None:
    headers = {"Authorization": f"Bearer {mint(uid)}"}
    async with session.ws_connect("/v1/stream", params={"follow": uid}, headers=headers) as socket:
        assert (await socket.receive_json())["kind"] == "hello"


async def _look_up(address: str, client: str, headers: Mapping[str, str], times: int) -> list[int]:
    """Ask from an address of this machine whether a login is free. Return the statuses, once nginx answers."""
    found: list[int] = []
    connector = aiohttp.TCPConnector(local_addr=(client, 0))
    async with aiohttp.ClientSession(address, connector=connector) as session:

        async def asks() -> bool:
            try:
                async with session.get("/v1/users/available", params={"login": "ann"}, headers=headers) as answer:
                    found.append(answer.status)
            except aiohttp.ClientConnectionError:
                return False
            return len(found) == times

        await eventually(asks, what="answers of nginx")
    return found


DECLINED = "{} HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nContent-Length: 200000\r\n\r\n"


@pytest.mark.parametrize("path", [SHIPPED, "compose/nginx.conf"])
async def test_upgrades_that_the_server_declines_hurt_nobody_behind_nginx(tmp_path: Path, path: str) -> None:
    """On the routes of streams, and on others. Each used to leave a hung connection in nginx's pool."""
    with Server(tmp_path, "--limits", "off") as server, _nginx([server], path) as nginx:
        await _look_up(nginx.address, ATTACKED, {}, 1)
        for line in ("GET /healthz", "GET /v1/stream?track=x", "POST /v1/sessions") * 15:
            async with await RawClient.connect(nginx.address) as attacker:
                await attacker.send(DECLINED.format(line).encode() + bytes(200_000))
                await attacker.read_until(b"HTTP/1.1 ")
        assert await _look_up(nginx.address, ATTACKED, {}, 60) == [200] * 60


@pytest.mark.parametrize("path", [SHIPPED, "compose/nginx.conf"])
async def test_a_client_cannot_choose_whose_limit_it_meets(tmp_path: Path, path: str) -> None:
    """A client invents another address with each request, and then sends that of somebody else."""
    flags = ("--limits", f"lookups={LOOKUPS}", "--trusted-proxies", "127.0.0.1")
    with Server(tmp_path, *flags) as server, _nginx([server], path) as nginx:
        for header, attacker in ATTACKERS.items():
            value = "for={}" if header == "Forwarded" else "{}"
            met = []
            for turn in range(LOOKUPS):
                met += await _look_up(nginx.address, attacker, {header: value.format(f"198.51.100.{turn}")}, 1)
            met += await _look_up(nginx.address, attacker, {header: value.format(ATTACKED)}, 2 * LOOKUPS)
            assert met == [200] * LOOKUPS + [429] * (2 * LOOKUPS), header
        assert await _look_up(nginx.address, ATTACKED, {}, 1) == [200]
