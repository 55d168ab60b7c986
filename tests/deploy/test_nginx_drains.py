"""The nginx of ``deploy/nginx`` before two servers: streams, WebSockets, clients that resume as a server ends."""

import asyncio
import subprocess
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path

import aiohttp
import pytest

from stream_server.demo.front import find_nginx
from tests.deploy.files import text
from tests.end_to_end.api import Api, mint
from tests.end_to_end.consumer import Consumer
from tests.end_to_end.nginx import WHOLE
from tests.end_to_end.server import Server
from tests.redis_process import free_port, private_redis
from tests.waiting import eventually

pytestmark = [pytest.mark.extended, pytest.mark.skipif(find_nginx() is None, reason="nginx is not installed")]


@contextmanager
def _nginx(folder: Path, servers: list[Server]) -> Iterator[str]:
    """Run the configuration with addresses of this machine in the place of its own. Yields the address of nginx."""
    port, configured = free_port(), text("nginx/stream-server.conf").replace("listen 80;", "listen 127.0.0.1:{port};")
    for shown, server in zip(("10.0.0.11:8000", "10.0.0.12:8000"), servers, strict=True):
        assert shown in configured
        configured = configured.replace(shown, server.address.removeprefix("http://"))
    folder.mkdir()
    file = folder / "nginx.conf"
    file.write_text(WHOLE.format(folder=folder, text=configured.replace("{port}", str(port))))
    command = [str(find_nginx()), "-c", str(file), "-p", str(folder)]
    with (folder / "said").open("wb") as said:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=said, stderr=said)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(10)


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
