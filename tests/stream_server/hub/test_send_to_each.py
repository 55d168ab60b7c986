"""The loop in C over a group's clients: what it sends, what it leaves to Python, and whose descriptor it uses."""

import os
import random
import socket
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import cast

import pytest

from stream_server.hub import group
from stream_server.hub.client import NO_DESCRIPTOR, Client, Outlet
from tests.packages.built import compiler

ROOT = Path(__file__).parents[3]

in_c = pytest.mark.skipif(group.send_to_each is group.leave_to_python, reason="the loop in C is not built")


class FakeClient(Outlet):
    """A client with a socket pair and no transport. ``rest`` is what was handed to the transport."""

    def __init__(self) -> None:
        self.near, self.far = socket.socketpair()
        for end in (self.near, self.far):
            end.setblocking(False)
        self.near.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        self.descriptor = self.near.fileno()
        self.rest = b""
        self.write = self.take_rest

    def take_rest(self, data: bytes) -> None:
        self.rest += data

    def received(self) -> bytes:
        came = b""
        with suppress(BlockingIOError):
            while data := self.far.recv(65_536):
                came += data
        return came


@pytest.fixture
def clients() -> Iterator[list[FakeClient]]:
    made = [FakeClient() for _ in range(3)]
    yield made
    for client in made:
        client.near.close()
        client.far.close()


def send(clients: list[FakeClient], data: bytes) -> list[FakeClient]:
    return cast("list[FakeClient]", list(group.send_to_each(cast("tuple[Client, ...]", tuple(clients)), data)))


@in_c
def test_it_sends_to_each_client_with_a_descriptor_and_returns_the_others(clients: list[FakeClient]) -> None:
    clients[1].descriptor = NO_DESCRIPTOR
    assert send(clients, b"one\0two") == [clients[1]]
    assert [client.received() for client in clients] == [b"one\0two", b"", b"one\0two"]
    assert send([], b"three") == []


@in_c
def test_the_transport_gets_what_the_kernel_does_not_take(clients: list[FakeClient]) -> None:
    said = random.Random(1).randbytes(1 << 20)
    assert send(clients, said) == []
    for client in clients:
        assert 0 < len(client.rest) < len(said)
        assert client.received() + client.rest == said


@in_c
def test_a_client_without_room_is_returned_and_gets_no_byte(clients: list[FakeClient]) -> None:
    full = clients[0]
    with suppress(BlockingIOError):
        while True:
            full.near.send(b"x" * 4096)
    assert send(clients, b"news") == [full]
    assert not full.rest
    assert set(full.received()) == set(b"x")


@in_c
def test_a_client_that_has_left_is_returned_without_a_signal(clients: list[FakeClient]) -> None:
    """The signal SIGPIPE, if it were not ignored, would end the process."""
    code = """
import signal, socket, types
from stream_server.hub.send_to_each import send_to_each
signal.signal(signal.SIGPIPE, signal.SIG_DFL)
near, far = socket.socketpair()
far.close()
client = types.SimpleNamespace(descriptor=near.fileno())
print(send_to_each((client,), b"news") == [client])
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"
    clients[0].near.close()  # a number that is no open descriptor
    assert send(clients, b"news") == [clients[0]]


@in_c
def test_a_connection_ends_if_its_transport_refuses_the_rest(clients: list[FakeClient]) -> None:
    """The client would otherwise take the next message for the rest of this one."""

    def refuse(data: bytes) -> None:
        raise MemoryError

    clients[0].write = refuse
    assert send(clients, b"y" * (1 << 20)) == []
    assert set(clients[0].received()) == set(b"y")
    assert clients[0].far.recv(1) == b""
    assert send(clients[:1], b"news") == clients[:1]


@in_c
def test_it_refuses_what_is_no_client(clients: list[FakeClient]) -> None:
    with pytest.raises(AttributeError):
        send(cast("list[FakeClient]", [clients[0], object()]), b"news")
    clients[1].descriptor = cast(int, "7")
    with pytest.raises(TypeError):
        send(clients, b"news")
    with pytest.raises(TypeError):
        group.send_to_each(cast("tuple[Client, ...]", clients), b"news")
    with pytest.raises(TypeError):
        group.send_to_each((), cast(bytes, "news"))


@in_c
def test_it_keeps_no_object(clients: list[FakeClient]) -> None:
    data, asked, far_away = b"news of " + os.urandom(4), cast("tuple[Client, ...]", tuple(clients)), 1 << 28
    clients[1].descriptor = far_away  # a number that is an object of its own, and of no open descriptor

    def counts() -> list[int]:
        return [sys.getrefcount(one) for one in (data, asked, far_away, *clients)]

    before, blocks = counts(), sys.getallocatedblocks()
    for _ in range(20_000):
        group.send_to_each(asked, data)
        clients[0].far.recv(100)
        clients[2].far.recv(100)
    assert counts() == before
    assert sys.getallocatedblocks() - blocks < 1000


@pytest.mark.extended
def test_it_compiles_without_a_warning(tmp_path: Path) -> None:
    program = compiler()
    if program is None:
        pytest.skip("there is no C compiler, or no Python.h")
    flags = ["-std=c11", "-O2", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror", "-fPIC", "-c"]
    source = ROOT / "stream_server" / "hub" / "send_to_each.c"
    command = [program, *flags, "-I", sysconfig.get_paths()["include"], str(source), "-o", str(tmp_path / "loop.o")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
