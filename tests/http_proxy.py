"""A small HTTP proxy: CONNECT, and requests whose target is a whole URL. It counts both."""

import asyncio
import base64
import contextlib
from collections.abc import Coroutine
from typing import Any, Self
from urllib.parse import urlsplit

from tests.listening import stop_listening

HEAD_END = b"\r\n\r\n"
REFUSAL = b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


class HttpProxy:
    """Takes requests for any host, and sends all of them to ``target``, a (host, port) of this machine.

    With ``password`` it refuses (407) whoever does not give it as the user ``ada``. ``asked`` has the first line of
    each request. A connection without CONNECT serves one request.
    """

    def __init__(self, target: tuple[str, int], password: str = "") -> None:
        self.asked: list[str] = []
        self._target = target
        self._password = password
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def address(self) -> str:
        assert self._server is not None
        host, port = self._server.sockets[0].getsockname()[:2]
        return f"{host}:{port}"

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        await stop_listening(self._server)
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                await self._serve(reader, writer)
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        line, *headers = (await reader.readuntil(HEAD_END)).decode().removesuffix("\r\n\r\n").split("\r\n")
        self.asked.append(line)
        method, target, version = line.split(" ")
        if not self._is_allowed(headers):
            writer.write(REFUSAL)
            await writer.drain()
            return
        far_reader, far = await asyncio.open_connection(*self._target)
        if method == "CONNECT":
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        else:
            url = urlsplit(target)
            path = (url.path or "/") + (f"?{url.query}" if url.query else "")
            dropped: tuple[str, ...] = ("proxy-",)
            last: list[str] = []
            if not any(header.lower().startswith("upgrade:") for header in headers):
                dropped, last = ("proxy-", "connection:"), ["Connection: close"]
            kept = [header for header in headers if not header.lower().startswith(dropped)]
            far.write("\r\n".join([f"{method} {path} {version}", *kept, *last, "", ""]).encode())
        try:
            await _until_one_ends(_copy(reader, far), _copy(far_reader, writer))
        finally:
            far.close()

    def _is_allowed(self, headers: list[str]) -> bool:
        expected = base64.b64encode(f"ada:{self._password}".encode()).decode()
        return not self._password or f"Proxy-Authorization: Basic {expected}" in headers


async def _copy(source: asyncio.StreamReader, to: asyncio.StreamWriter) -> None:
    while piece := await source.read(65_536):
        to.write(piece)
        await to.drain()


async def _until_one_ends(*ways: Coroutine[Any, Any, None]) -> None:
    tasks = [asyncio.create_task(way) for way in ways]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
