"""Many sockets of one user, each with messages of a few hundred bytes that take milliseconds to expand and to parse."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from tests.attacks.arena import ATTACKING_ADDRESS
from tests.end_to_end.api import mint
from tests.end_to_end.raw_socket import RawSocket
from tests.end_to_end.server import Server
from tests.stream_server.web.websocket.client_frames import FIN, RSV1, TEXT, deflated, frame

NESTED = b"[" * 190 + b"]" * 190
MESSAGE = b'{"op":"ping","x":[%b]}' % b",".join([NESTED] * 160)
"""A message near the largest, nested near the deepest."""

REFUSAL = b'"kind":"error"'

PAUSE_SECONDS = 0.01
"""Pause of a socket between two messages, so that the attack costs the machine little."""


class Attack:
    """Sends messages by many sockets. ``answered`` counts the answers of the server."""

    def __init__(self) -> None:
        self.answered = 0
        self._message = frame(TEXT, deflated(MESSAGE), FIN | RSV1)

    async def send(self, socket: RawSocket) -> None:
        while True:
            socket.writer.write(self._message)
            await socket.writer.drain()
            await asyncio.sleep(PAUSE_SECONDS)

    async def hear(self, socket: RawSocket) -> None:
        while data := await socket.reader.read(65_536):
            self.answered += data.count(REFUSAL)


@asynccontextmanager
async def attacking(server: Server, uid: str, sockets: int) -> AsyncIterator[Attack]:
    """Attack by this number of sockets of a user during the block."""
    head = (
        f"Authorization: Bearer {mint(uid)}\r\nX-Forwarded-For: {ATTACKING_ADDRESS}\r\n"
        "Sec-WebSocket-Extensions: permessage-deflate\r\n"
    )
    attack = Attack()
    opened = [await RawSocket.open(server, "/v1/stream?track=nothing", head) for _ in range(sockets)]
    assert all(socket.head.startswith("HTTP/1.1 101") for socket in opened)
    tasks = [asyncio.ensure_future(work(socket)) for socket in opened for work in (attack.send, attack.hear)]
    try:
        yield attack
    finally:
        for task in tasks:
            task.cancel()
        for task in tasks:
            with suppress(asyncio.CancelledError, ConnectionError):
                await task
        for socket in opened:
            socket.writer.transport.abort()
