"""Each fault of the kit has its effect and counts it. Otherwise a test that passes under it would prove nothing."""

import asyncio
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.end_to_end.faults.clients import RawClient, TcpInfo
from tests.end_to_end.faults.proxy import Proxy
from tests.waiting import PATIENCE, eventually

pytestmark = pytest.mark.extended

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@pytest.fixture
async def echo(tmp_path: Path) -> AsyncIterator[Path]:
    """The path of a unix socket whose server returns all bytes that it receives."""
    heard: set[asyncio.Task[None]] = set()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        heard.add(task)
        while data := await reader.read(65_536):
            writer.write(data)
        writer.close()

    path = tmp_path / "echo"
    async with await asyncio.start_unix_server(answer, path):
        yield path
        if heard:
            await asyncio.wait(heard)


async def dialled(proxy: Proxy) -> Streams:
    return await asyncio.open_unix_connection(proxy.url.removeprefix("unix://"))


async def said(streams: Streams, word: bytes) -> bytes:
    reader, writer = streams
    writer.write(word)
    async with asyncio.timeout(PATIENCE):
        return await reader.read(len(word))


async def test_the_proxy_swallows_for_good(echo: Path) -> None:
    """A client that sent the word receives nothing more and gets no error. Other and later connections work."""
    async with Proxy(echo) as proxy:
        listening, other = await dialled(proxy), await dialled(proxy)
        assert await said(listening, b"SUBSCRIBE") == b"SUBSCRIBE"
        assert await said(other, b"PING") == b"PING"
        proxy.swallow(of=b"SUBSCRIBE")
        listening[1].write(b"anybody?")
        await eventually(lambda: proxy.swallowed_bytes == len(b"anybody?"))
        assert await said(other, b"PING") == b"PING"
        fresh = await dialled(proxy)
        assert await said(fresh, b"SUBSCRIBE") == b"SUBSCRIBE"
        assert not listening[0].at_eof()
        proxy.swallow(False)
        assert await listening[0].read() == b""  # nothing was held back
        assert (proxy.swallowed_bytes, proxy.cuts) == (len(b"anybody?"), 1)
        for one in (listening, other, fresh):
            one[1].close()


@pytest.fixture
async def pair() -> AsyncIterator[tuple[RawClient, socket.socket]]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.setblocking(False)
        client = await RawClient.connect(f"http://127.0.0.1:{listening.getsockname()[1]}", receive_bytes=4096)
        connection, _ = await asyncio.get_running_loop().sock_accept(listening)
        async with client:
            with connection:
                yield client, connection


Pair = tuple[RawClient, socket.socket]


async def test_a_client_that_vanishes_acknowledges_nothing(pair: Pair) -> None:
    """Before `vanish` the client acknowledges bytes. After it, the kernel repeats them without an error."""
    client, server = pair
    loop = asyncio.get_running_loop()
    await loop.sock_sendall(server, b"before")
    assert await client.read() == b"before"
    await eventually(lambda: TcpInfo(server).unacknowledged == 0)
    assert TcpInfo(server).retransmitted == 0
    client.vanish()
    await loop.sock_sendall(server, b"after")
    await eventually(lambda: TcpInfo(server).retransmitted >= 2)
    assert TcpInfo(server).unacknowledged == 1
    with pytest.raises(BlockingIOError):
        client.socket.recv(1)
    with pytest.raises(BlockingIOError):
        server.recv(1)
