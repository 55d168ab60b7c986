"""The connection of a WebSocket on a pair of real sockets: what the event loop feels of a client, and how it ends."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

import pytest

from stream_server.hub.disconnect import DisconnectReason
from stream_server.web.websocket.connection import LONG_BYTES, WebSocketConnection
from stream_server.web.websocket.frames import CloseCode, encode_close
from tests.stream_server.web.websocket.client_frames import BINARY, FIN, RSV1, TEXT, deflated, frame
from tests.waiting import eventually


class Messages:
    """Keeps the messages of a client, and its end of the connection."""

    def __init__(self, client: socket.socket) -> None:
        self.client = client
        self.texts: list[bytes] = []
        self.faults: list[DisconnectReason] = []

    def on_text(self, payload: bytes) -> None:
        self.texts.append(payload)

    def on_fault(self, reason: DisconnectReason) -> None:
        self.faults.append(reason)

    def on_close(self) -> None:
        """Nothing to do."""


@asynccontextmanager
async def connected(
    *, compresses: bool = False
) -> AsyncIterator[tuple[WebSocketConnection, asyncio.Transport, Messages]]:
    """Yield an open WebSocket, its transport, and what it receives."""
    ours, theirs = socket.socketpair()
    loop = asyncio.get_running_loop()
    transport, _ = await loop.connect_accepted_socket(asyncio.Protocol, ours)
    connection = WebSocketConnection(transport, buffer_bytes=65_536, compresses=compresses)
    connection.receiver = messages = Messages(theirs)
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


async def test_a_message_counts_as_it_is_when_expanded() -> None:
    """Else a client could have the loop parse 64 KiB of JSON, again and again in one turn, for a hundred bytes each."""
    short, long = b"{}", b"[" + b"{}," * 20_000 + b"{}]"
    messages_sent = [short, short, long, long, short]
    data = b"".join(frame(TEXT, deflated(message), FIN | RSV1) for message in messages_sent)
    assert len(data) < LONG_BYTES
    async with connected(compresses=True) as (connection, transport, messages):
        connection.data_received(data)
        assert (transport.is_reading(), messages.texts) == (False, messages_sent[:3])
        await eventually(lambda: len(messages.texts) > 3)
        assert (transport.is_reading(), messages.texts) == (False, messages_sent[:4])
        await eventually(transport.is_reading)
    assert messages.texts == messages_sent


async def test_what_a_lost_client_had_sent_begins_nothing() -> None:
    """The frames that waited for their turn are forgotten: a stream or a task would have no owner."""
    async with connected() as (connection, transport, messages):
        connection.data_received(frame(TEXT, b"*" * LONG_BYTES))
        connection.data_received(frame(TEXT, b"{}"))
        lost = asyncio.Event()
        connection.on_lost = lost.set
        transport.abort()
        await lost.wait()
        connection._resume()  # the end of the pause, which may come after the loss
        connection.set_busy(is_busy=False)
    assert len(messages.texts) == 1


@pytest.mark.parametrize("is_faulty", [False, True])
async def test_the_first_close_frame_is_the_last_one(*, is_faulty: bool) -> None:
    """A server that stops closes sockets that are closing already. The second frame would break the protocol."""
    async with connected() as (connection, _, messages):
        if is_faulty:
            connection.data_received(frame(BINARY, b"{}"))
            assert [fault.code for fault in messages.faults] == ["unsupported_data"]
        connection.close(CloseCode.POLICY_VIOLATION, "enough")
        connection.close(CloseCode.GOING_AWAY, "the server is stopping")
        assert messages.client.recv(4096) == encode_close(CloseCode.POLICY_VIOLATION, "enough")


async def test_operations_that_take_a_task_are_few_in_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their messages are short, so their bytes on the wire alone would allow thousands."""
    loop = asyncio.get_running_loop()
    async with connected() as (connection, transport, _):
        with monkeypatch.context() as stopped:
            stopped.setattr(loop, "time", partial(float, loop.time()))
            is_read = []
            for _ in range(2):
                connection.data_received(frame(TEXT, b'{"op":"update"}'))
                connection.set_busy(is_busy=True)
                connection.set_busy(is_busy=False)
                is_read.append(transport.is_reading())
        assert is_read == [True, False]
        await eventually(transport.is_reading)
