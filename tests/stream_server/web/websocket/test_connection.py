"""The connection of a WebSocket on a pair of real sockets: what the event loop feels of a client, and how it ends."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import count

import pytest
from websockets.frames import CloseCode

from stream_server.hub.disconnect import DisconnectReason
from stream_server.runtime.event_loop import TurnQueue
from stream_server.web.limits.processor_time import MAX_AHEAD_SECONDS, SLICE_SECONDS, USER_SHARE, Payer, ProcessorTime
from stream_server.web.websocket.connection import WebSocketConnection
from stream_server.web.websocket.frames import encode_close
from tests.stream_server.web.limits.clocks import Clocks
from tests.stream_server.web.websocket.client_frames import BINARY, FIN, RSV1, TEXT, deflated, frame
from tests.waiting import eventually


class Messages:
    """Keeps the messages of a client, and its end of the connection. Each takes ``seconds`` of processor time.

    ``lost`` is set when the connection is lost.
    """

    def __init__(self, client: socket.socket, clocks: Clocks) -> None:
        self.client = client
        self.clocks = clocks
        self.seconds = 0.0
        self.texts: list[bytes] = []
        self.faults: list[DisconnectReason] = []
        self.lost = asyncio.Event()

    def on_text(self, payload: bytes) -> None:
        self.texts.append(payload)
        self.clocks.work(self.seconds)

    def on_fault(self, reason: DisconnectReason) -> None:
        self.faults.append(reason)

    def stop(self) -> None:
        """Nothing to do."""

    def connection_lost(self) -> None:
        self.lost.set()


@asynccontextmanager
async def connected(
    *, compresses: bool = False, clocks: Clocks | None = None, payer: Payer | None = None
) -> AsyncIterator[tuple[WebSocketConnection, asyncio.Transport, Messages]]:
    """Yield an open WebSocket, its transport, and what it receives. ``payer`` pays by these ``clocks``."""
    clocks = clocks or Clocks()
    payer = payer or clocks.processor_time().payer("192.0.2.1", "ann")
    ours, theirs = socket.socketpair()
    loop = asyncio.get_running_loop()
    transport, _ = await loop.connect_accepted_socket(asyncio.Protocol, ours)
    connection = WebSocketConnection(
        transport, buffer_bytes=65_536, departures=TurnQueue(loop, 1.0), compresses=compresses, payer=payer
    )
    connection.receiver = connection.listener = messages = Messages(theirs, clocks)
    transport.set_protocol(connection)
    with theirs:
        yield connection, transport, messages
        transport.abort()


async def test_a_user_who_sends_much_by_many_sockets_is_not_read_for_a_while() -> None:
    """Messages of a hundred bytes that expand to what takes 5 ms. Together the sockets get what one would get.

    The others wait, and none is lost. Another user is not hurt.
    """
    message, clocks = b"[" + b"{}," * 20_000 + b"{}]", Clocks()
    data, seconds = frame(TEXT, deflated(message), FIN | RSV1) * 3, 0.005
    assert len(data) < 1024
    time = clocks.processor_time()
    async with AsyncExitStack() as stack:
        payers = [time.payer(f"192.0.2.{nth}", "ann") for nth in range(31)]
        sockets = [
            await stack.enter_async_context(connected(compresses=True, clocks=clocks, payer=payer)) for payer in payers
        ]
        bob = await stack.enter_async_context(connected(clocks=clocks, payer=time.payer("192.0.2.1", "bob")))
        for connection, _, messages in sockets:
            messages.seconds = seconds
            connection.data_received(data)
        at_once = MAX_AHEAD_SECONDS * USER_SHARE / seconds

        def taken() -> int:
            return sum(len(messages.texts) for _, _, messages in sockets)

        assert taken() == 1, "others are served before the next one"
        await eventually(lambda: taken() >= at_once)
        bob[0].data_received(frame(TEXT, b"{}"))
        assert (bob[1].is_reading(), len(bob[2].texts)) == (True, 1)
        assert taken() <= at_once + 1
        assert not any(transport.is_reading() for _, transport, messages in sockets if len(messages.texts) < 3)

        def is_over() -> bool:
            clocks.now += MAX_AHEAD_SECONDS
            return taken() == 31 * 3 and all(transport.is_reading() for _, transport, _ in sockets)

        await eventually(is_over)


async def test_deliveries_are_not_charged() -> None:
    """A client that takes its messages and sends nothing pays nothing."""
    steps = count()
    payer = ProcessorTime(lambda: True, lambda: 100.0, lambda: next(steps) * 100.0).payer("192.0.2.1", "ann")
    async with connected(payer=payer) as (connection, _, _):
        connection.resume_writing()
        connection.set_busy(is_busy=False)
        assert not payer.is_over
        connection.data_received(frame(TEXT, b"{}"))
        assert payer.is_over


async def test_a_lost_socket_does_not_wait_any_more() -> None:
    """Else the turn of a user with many lost sockets would come late."""
    clocks = Clocks()
    async with connected(clocks=clocks) as (connection, transport, messages):
        connection.payer.charge(SLICE_SECONDS)
        connection.data_received(frame(TEXT, b"{}"))
        transport.abort()
        await messages.lost.wait()
        went = asyncio.Event()
        connection.payer.wait(went.set)
        await went.wait()
    assert messages.texts == []


async def test_what_a_lost_client_had_sent_begins_nothing() -> None:
    """The frames that waited for their turn are forgotten: a stream or a task would have no owner."""
    async with connected() as (connection, transport, messages):
        messages.seconds = SLICE_SECONDS
        connection.data_received(frame(TEXT, b"{}") * 2)
        transport.abort()
        await messages.lost.wait()
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
