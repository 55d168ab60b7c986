"""The connection of a WebSocket on a pair of real sockets: how much of a client's time the event loop gets to feel."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from stream_server.hub.disconnect import DisconnectReason
from stream_server.web.websocket.connection import LONG_BYTES, WebSocketConnection
from tests.stream_server.web.websocket.client_frames import TEXT, frame
from tests.waiting import eventually


class Messages:
    """Keeps the messages of a client."""

    def __init__(self) -> None:
        self.texts: list[bytes] = []

    def on_text(self, payload: bytes) -> None:
        self.texts.append(payload)

    def on_fault(self, reason: DisconnectReason) -> None:
        raise AssertionError(reason)

    def on_close(self) -> None:
        """Nothing to do."""


@asynccontextmanager
async def connected() -> AsyncIterator[tuple[WebSocketConnection, asyncio.Transport, Messages]]:
    """Yield an open WebSocket, its transport, and what it receives."""
    ours, theirs = socket.socketpair()
    loop = asyncio.get_running_loop()
    transport, _ = await loop.connect_accepted_socket(asyncio.Protocol, ours)
    connection = WebSocketConnection(transport, buffer_bytes=65_536, send_buffer_bytes=0, compresses=False)
    connection.receiver = messages = Messages()
    transport.set_protocol(connection)
    with theirs:
        yield connection, transport, messages
        transport.abort()


async def test_a_client_that_sends_much_is_not_read_for_a_while() -> None:
    """Each long message may cost milliseconds. The next one waits, and none is lost. Short ones do not wait."""
    long = json.dumps({"op": "ping", "id": "*" * LONG_BYTES}).encode()
    async with connected() as (connection, transport, messages):
        connection.data_received(frame(TEXT, b"{}"))
        assert (transport.is_reading(), len(messages.texts)) == (True, 1)
        connection.data_received(frame(TEXT, long))
        assert (transport.is_reading(), len(messages.texts)) == (False, 2)
        connection.data_received(frame(TEXT, long))  # the loop had read it before
        assert len(messages.texts) == 2
        await eventually(lambda: len(messages.texts) == 3)
        await eventually(transport.is_reading)
    assert messages.texts == [b"{}", long, long]
