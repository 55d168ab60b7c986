"""A TLS proxy before the server, for clients that need TLS."""

import asyncio
import ssl
from asyncio import StreamReader, StreamWriter
from contextlib import suppress
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

from tests.clients.authority import Authority
from tests.listening import stop_listening

CHUNK_BYTES = 65_536


class TlsProxy:
    """Takes TLS on a free port of localhost and forwards the plain bytes to ``server``."""

    def __init__(self, server: str, authority: Authority) -> None:
        behind = urlsplit(server)
        self._behind = (behind.hostname, behind.port)
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(authority.certificate)
        self._talks: set[asyncio.Task[None]] = set()
        self.ca: Path = authority.ca
        self.netloc = ""

    @property
    def address(self) -> str:
        return f"https://{self.netloc}"

    async def __aenter__(self) -> Self:
        self._front = await asyncio.start_server(self._talk, "127.0.0.1", 0, ssl=self._context)
        self.netloc = f"localhost:{self._front.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        await stop_listening(self._front)
        for talk in list(self._talks):
            talk.cancel()
        await asyncio.gather(*self._talks, return_exceptions=True)

    async def _talk(self, reader: StreamReader, writer: StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._talks.add(task)
        server_reader, server_writer = await asyncio.open_connection(*self._behind)
        ways = [asyncio.create_task(pump(reader, server_writer)), asyncio.create_task(pump(server_reader, writer))]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
            server_writer.close()
            writer.close()
            self._talks.discard(task)


async def pump(reader: StreamReader, writer: StreamWriter) -> None:
    with suppress(ConnectionError, ssl.SSLError):
        while data := await reader.read(CHUNK_BYTES):
            writer.write(data)
            await writer.drain()
