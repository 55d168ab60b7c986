"""A client of a WebSocket, built on the library `websockets`: a consumer as of the other streams, with operations."""

import json
from typing import Any, cast

import aiohttp
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from tests.end_to_end.api import Api, mint
from tests.end_to_end.consumer import CONTROL, Consumer, Message

ANSWERS = {"pong", "token", "error"}


class SocketConsumer(Consumer):
    """Adds each message to ``messages``. ``code`` and ``reason`` are those of the server's close frame."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket
        self.code: int | None = None
        self.reason = ""
        super().__init__(cast("aiohttp.ClientResponse", None), "ndjson")

    @property
    def events(self) -> list[Message]:
        return [message for message in self.messages if message["kind"] not in CONTROL | ANSWERS]

    async def ask(self, op: str, **members: Any) -> Message:
        """Send an operation with an id of its own, and return its answer."""
        wanted = f"{op} {len(self.messages)} {members}"[:100]
        await self.socket.send(json.dumps({"op": op, "id": wanted, **members}))
        await self.until(lambda c: any(m.get("id") == wanted for m in c.messages))
        return next(m for m in self.messages if m.get("id") == wanted)

    async def _read(self) -> None:
        try:
            async for text in self.socket:
                assert isinstance(text, str)
                self.messages.append(json.loads(text))
                self._news.set()
        except ConnectionClosed:
            pass
        finally:
            closed = self.socket.protocol.close_rcvd
            self.code, self.reason = (None, "") if closed is None else (closed.code, closed.reason)
            self._news.set()

    async def close(self) -> None:
        await self.socket.close()
        await self.until_end()


async def open_socket(
    api: Api, query: str, *, uid: str | None = None, token: str | None = "", path: str = "/v1/stream",
    compression: str | None = "deflate", **more: Any,
) -> SocketConsumer:  # fmt: skip
    """Open a WebSocket. With ``token`` None it sends none; otherwise it waits for `hello`."""
    headers = {} if token is None else {"Authorization": f"Bearer {token or mint(uid or api.admin)}"}
    url = f"ws{api.server.address.removeprefix('http')}{path}{'?' if query else ''}{query}"
    socket = await connect(url, additional_headers=headers, compression=compression, proxy=None, **more)
    consumer = SocketConsumer(socket)
    if token is not None:
        await consumer.until(lambda c: c.messages)
        assert consumer.messages[0]["kind"] == "hello"
    return consumer
