"""The server in this process, with one user, which stops when a test says so."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Self

import aiohttp
from aiohttp import web

from stream_server.app import serve_application
from stream_server.config.settings import Config
from stream_server.runtime.listening import listen_alone
from stream_server.web.http import app_keys
from stream_server.web.http.connection_timeouts import ConnectionTimeouts
from tests.stream_server import tokens
from tests.waiting import PATIENCE, eventually


class RunningServer:
    def __init__(
        self, app: web.Application, port: int, leave: asyncio.Event, ended: "asyncio.Task[None]", login: str
    ) -> None:
        self.app = app
        self.port = port
        self.leave = leave
        self.ended = ended
        self.login = login
        self.uid = ""
        self.session = aiohttp.ClientSession(f"http://127.0.0.1:{port}")

    async def __aenter__(self) -> Self:
        email = f"{self.login}@example.com"
        body = {"login": self.login, "name": "S", "email": email, "password": "correct horse"}
        async with self.session.post("/v1/users", json=body) as answer:
            self.uid = (await answer.json())["id"]
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.session.close()
        self.leave.set()
        await self.ended

    @property
    def authorization(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {tokens.fresh(self.uid, 'read write stream firehose')}"}

    async def begin_to_stop(self) -> None:
        """Do what SIGTERM does. Returns once the shutdown has begun."""
        self.leave.set()
        await eventually(lambda: self.app[app_keys.HUB].is_stopping)

    async def call(self, method: str, path: str, **more: Any) -> tuple[int, Any]:
        """Send one request of the user. Return the status and the JSON of the answer."""
        async with self.session.request(method, path, headers=self.authorization, **more) as answer:
            return answer.status, await answer.json(content_type=None)

    async def request(self, method: str, path: str, **more: Any) -> tuple[int, aiohttp.ClientResponse, bytes]:
        """Send one request over its own connection, so that it meets the listening socket."""
        async with (
            aiohttp.ClientSession(f"http://127.0.0.1:{self.port}") as fresh,
            fresh.request(method, path, headers=self.authorization, **more) as answer,
        ):
            return answer.status, answer, await answer.read()

    async def send_raw(self, head: str, body: str = "") -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Open a connection and send this request, with token and body."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        token = f"Authorization: {self.authorization['Authorization']}"
        lines = [head, "Host: x", token, "Content-Type: application/json", "", body]
        writer.write("\r\n".join(lines).encode())
        await writer.drain()
        return reader, writer

    async def open_unread_stream(self) -> asyncio.StreamWriter:
        """Open a stream whose client reads nothing, so that the server waits for it."""
        reader, writer = await self.send_raw("GET /v1/stream?track=x HTTP/1.1")
        await reader.readuntil(b"\n\r\n")
        await eventually(lambda: len(self.app[app_keys.HUB].registry) > 0)
        (member,) = self.app[app_keys.HUB].registry.list_clients()
        # The transport holds more than the kernel takes for a client that does not read.
        assert isinstance(writer.transport, asyncio.Transport)
        writer.transport.pause_reading()
        for _ in range(100):
            member.write(b"2\r\n\n\n\r\n" * 10_000)
        assert member.buffered_bytes() > 0
        return writer


@asynccontextmanager
async def running_server(
    redis_url: str, settings: dict[str, Any], login: str = "somebody"
) -> AsyncIterator[RunningServer]:
    """Start a server in this process with these settings and one user."""
    given = {"redis_timeout_seconds": PATIENCE, "shutdown_seconds": 400.0, "limits": "off", **settings}
    config = tokens.config(redis=redis_url, password_memory_kib=8, **given)
    begun: asyncio.Future[tuple[web.Application, int]] = asyncio.get_running_loop().create_future()
    leave = asyncio.Event()
    ended = asyncio.create_task(_serve(config, begun, leave))
    either: set[asyncio.Future[Any]] = {begun, ended}
    await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
    async with RunningServer(*begun.result(), leave, ended, login) as made:
        yield made


async def _serve(config: Config, begun: "asyncio.Future[tuple[web.Application, int]]", leave: asyncio.Event) -> None:
    keepalive = ConnectionTimeouts(config.write_timeout_seconds, config.heartbeat_seconds).keepalive
    listening = listen_alone("127.0.0.1", 0, keepalive)
    async with serve_application(config, lambda: listening) as app:
        begun.set_result((app, listening.port))
        await leave.wait()
