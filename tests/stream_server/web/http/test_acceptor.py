"""Connections that wait behind the one that the loop has accepted are accepted too, a limited number at once."""

import asyncio
import os
import socket
from collections.abc import AsyncIterator
from contextlib import ExitStack

import pytest

from stream_server.runtime.listening import listen_alone
from stream_server.web.http import front_door
from stream_server.web.http.front_door import Acceptor
from tests.waiting import PATIENCE, eventually


class Echo(asyncio.Protocol):
    """Sends back what comes."""

    made = 0

    def __init__(self, peer: object) -> None:
        self.peer = peer

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        Echo.made += 1
        assert not os.get_blocking(transport.get_extra_info("socket").fileno()), "the loop must see to that"
        assert self.peer == transport.get_extra_info("peername")
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        assert isinstance(self.transport, asyncio.Transport)
        self.transport.write(data)


@pytest.fixture
async def listener(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[socket.socket]:
    """A socket on which nobody else accepts."""
    monkeypatch.setattr(Echo, "made", 0)
    with listen_alone("127.0.0.1", 0) as listening:
        yield listening.sockets[0]


def connect(stack: ExitStack, listener: socket.socket, count: int) -> list[socket.socket]:
    """Open connections, which the kernel completes before the server accepts them."""
    clients = [stack.enter_context(socket.create_connection(listener.getsockname(), PATIENCE)) for _ in range(count)]
    for client in clients:
        client.setblocking(False)
    return clients


async def test_all_that_wait_are_accepted_and_served(listener: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    accepting = Acceptor(listener, Echo)
    with ExitStack() as stack:
        clients = connect(stack, listener, 20)
        accepting.accept()
        for number, client in enumerate(clients):
            await loop.sock_sendall(client, b"%d" % number)
        async with asyncio.timeout(PATIENCE):
            assert [await loop.sock_recv(client, 9) for client in clients] == [b"%d" % n for n in range(20)]
    assert Echo.made == 20


async def test_one_call_accepts_a_limited_number(listener: socket.socket, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(front_door, "MAX_ACCEPTED_AT_ONCE", 5)
    accepting = Acceptor(listener, Echo)
    with ExitStack() as stack:
        connect(stack, listener, 12)
        for expected in (5, 10, 12, 12):
            accepting.accept()
            await eventually(lambda expected=expected: Echo.made == expected)  # type: ignore[misc]  # a lambda with a default


async def test_a_closed_socket_and_one_without_connections_accept_nothing(listener: socket.socket) -> None:
    accepting = Acceptor(listener, Echo)
    accepting.accept()
    listener.close()
    accepting.accept()
    assert not Echo.made


async def test_a_client_that_has_left_already_is_no_error(
    listener: socket.socket, caplog: pytest.LogCaptureFixture
) -> None:
    accepting = Acceptor(listener, Echo)
    with ExitStack() as stack:
        connect(stack, listener, 3)
    accepting.accept()
    await eventually(lambda: Echo.made == 3)
    assert not [record for record in caplog.records if record.levelname == "ERROR"]
