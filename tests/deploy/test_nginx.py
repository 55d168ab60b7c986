"""The shipped nginx files before real servers: streams, WebSockets, a server that ends, invented headers."""

import asyncio
import re
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path

import aiohttp
import pytest

from stream_server.demo.cluster_demo import NGINX_CONFIGURATION, find_nginx
from tests.deploy.files import text
from tests.end_to_end.api import Api, mint
from tests.end_to_end.consumer import Consumer
from tests.end_to_end.faults.clients import RawClient
from tests.end_to_end.nginx import WHOLE
from tests.end_to_end.server import Server
from tests.redis_process import free_port, private_redis
from tests.waiting import PATIENCE, eventually

pytestmark = [pytest.mark.extended, pytest.mark.skipif(find_nginx() is None, reason="nginx is not installed")]


ATTACKED, ATTACKERS = "127.0.0.7", {"Forwarded": "127.0.0.3", "X-Forwarded-For": "127.0.0.4", "X-Real-IP": "127.0.0.5"}
"""Addresses of clients: all of 127.0.0.0/8 is this machine."""

LOOKUPS = 5


def _shipped(path: str, servers: list[Server], port: int) -> str:
    """Return a file of ``deploy/`` with addresses of this machine in the place of its own."""
    lines = "".join(f"    server {server.address.removeprefix('http://')};\n" for server in servers)
    named = re.sub(r"(    server [\d.]+:8000;\n)+", lines, text(path))
    assert named != text(path)
    return named.replace("listen 80;", f"listen 127.0.0.1:{port};")


@contextmanager
def _nginx(folder: Path, servers: list[Server], path: str = "nginx/stream-server.conf") -> Iterator[str]:
    """Run the nginx of a file of ``deploy/``, or for the path ``demo`` that of the demo. Yields its address."""
    port = free_port()
    folder.mkdir()
    if path == "demo":
        named = " ".join(f"server {server.address.removeprefix('http://')};" for server in servers)
        configured = NGINX_CONFIGURATION.format(folder=folder, port=port, servers=named)
    else:
        configured = WHOLE.format(folder=folder, text=_shipped(path, servers, port))
    file = folder / "nginx.conf"
    file.write_text(configured)
    command = [str(find_nginx()), "-c", str(file), "-p", str(folder)]
    with (folder / "said").open("wb") as said:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=said, stderr=said)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(PATIENCE)


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
        with servers[0], servers[1], _nginx(tmp_path / "nginx", servers) as address:
            async with AsyncExitStack() as stack:
                api = await stack.enter_async_context(Api(servers[1]))
                session = await stack.enter_async_context(aiohttp.ClientSession(address))
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


@pytest.mark.parametrize("path", ["nginx/stream-server.conf", "compose/nginx.conf", "demo"])
async def test_upgrades_that_the_server_declines_hurt_nobody_behind_nginx(tmp_path: Path, path: str) -> None:
    """On the routes of streams, and on others. Each used to leave a hung connection in nginx's pool."""
    with Server(tmp_path, "--limits", "off") as server, _nginx(tmp_path / "nginx", [server], path) as address:
        await _look_up(address, ATTACKED, {}, 1)
        for line in ("GET /healthz", "GET /v1/stream?track=x", "POST /v1/sessions") * 15:
            async with await RawClient.connect(address) as attacker:
                await attacker.send(DECLINED.format(line).encode() + bytes(200_000))
                await attacker.read_until(b"HTTP/1.1 ")
        assert await _look_up(address, ATTACKED, {}, 60) == [200] * 60


@pytest.mark.parametrize("path", ["nginx/stream-server.conf", "compose/nginx.conf", "demo"])
async def test_a_client_cannot_choose_whose_limit_it_meets(tmp_path: Path, path: str) -> None:
    """A client invents another address with each request, and then sends that of somebody else."""
    flags = ("--limits", f"lookups={LOOKUPS}", "--trusted-proxies", "127.0.0.1")
    with Server(tmp_path, *flags) as server, _nginx(tmp_path / "nginx", [server], path) as address:
        for header, attacker in ATTACKERS.items():
            value = "for={}" if header == "Forwarded" else "{}"
            met = []
            for turn in range(LOOKUPS):
                met += await _look_up(address, attacker, {header: value.format(f"198.51.100.{turn}")}, 1)
            met += await _look_up(address, attacker, {header: value.format(ATTACKED)}, 2 * LOOKUPS)
            assert met == [200] * LOOKUPS + [429] * (2 * LOOKUPS), header
        assert await _look_up(address, ATTACKED, {}, 1) == [200]
