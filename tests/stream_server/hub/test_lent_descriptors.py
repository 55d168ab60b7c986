"""A descriptor is used only while its transport is open, and no byte overtakes another. Both event loops."""

import asyncio
import os
import random
import socket
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, Self, cast

import pytest
import uvloop

from stream_server.hub import group
from stream_server.hub.client import NO_DESCRIPTOR, Client, Outlet
from stream_server.runtime.event_loop import TurnQueue
from stream_server.web.streaming.stream_connection import HIGH_WATER_BYTES, LOW_WATER_SHARE, StreamConnection
from tests.tiers import seeds
from tests.waiting import PATIENCE, eventually

in_c = pytest.mark.skipif(group.send_to_each is group.leave_to_python, reason="the loop in C is not built")

both_loops = pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])

Loop = Callable[[], asyncio.AbstractEventLoop]

BUFFER_BYTES = 1 << 20
LARGE = 1 << 18
"""More bytes than the kernel takes at once."""


def run(loop: Loop, work: Coroutine[Any, Any, None]) -> None:
    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(work)


class Ends:
    """Hears of the end of a connection."""

    def __init__(self, on_lost: Callable[[], object], on_stop: Callable[[], object] = lambda: None) -> None:
        self._on_lost, self._on_stop = on_lost, on_stop

    def stop(self) -> None:
        self._on_stop()

    def connection_lost(self) -> None:
        self._on_lost()


class Borrower(Outlet):
    """A client that borrows the descriptor of its connection, whose other end is ``far``."""

    def __init__(self, transport: asyncio.Transport, connection: StreamConnection, far: socket.socket) -> None:
        self.transport, self.connection, self.far = transport, connection, far
        self.write, self.buffered_bytes = connection.write, connection.buffered_bytes
        self.descriptor = NO_DESCRIPTOR
        self.received = b""

    @classmethod
    async def open(cls, kind: type[StreamConnection] = StreamConnection) -> Self:
        """Make a connection that is not yet the protocol of its transport."""
        near, far = socket.socketpair()
        near.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        far.setblocking(False)
        loop = asyncio.get_running_loop()
        transport, _ = await loop.connect_accepted_socket(asyncio.Protocol, near)
        departures = TurnQueue(loop, 1.0)
        return cls(transport, kind(transport, chunked=False, buffer_bytes=BUFFER_BYTES, departures=departures), far)

    def hand_over(self) -> None:
        """Make the connection the protocol of its transport, as `Connection.detach` does."""
        self.transport.set_protocol(self.connection)
        self.connection.resume_writing()

    def read(self, most: int = 1 << 20) -> None:
        """Read what has come, up to ``most`` bytes."""
        with suppress(BlockingIOError, ConnectionError):
            while most > 0 and (data := self.far.recv(most)):
                self.received += data
                most -= len(data)

    async def read_all(self) -> None:
        async with asyncio.timeout(PATIENCE):
            while self.buffered_bytes():
                self.read()
                await asyncio.sleep(0)  # the transport sends more
        self.read()

    def end(self) -> None:
        self.transport.abort()
        self.far.close()


def send(borrowers: list[Borrower], data: bytes) -> None:
    """Send as a batch does: by the loop in C, and by the transports to those that it has left."""
    for left in group.send_to_each(cast("tuple[Client, ...]", tuple(borrowers)), data):
        with suppress(RuntimeError):
            left.write(data)


@both_loops
def test_nothing_is_lent_before_the_transport_has_the_protocol(loop: Loop) -> None:
    """Until then the connection would not be told that its descriptor is about to be closed."""

    async def work() -> None:
        client = await Borrower.open()
        client.connection.lend_descriptor(client)
        assert client.descriptor == NO_DESCRIPTOR
        client.hand_over()
        assert client.descriptor == client.transport.get_extra_info("socket").fileno()
        client.end()

    run(loop, work())


@both_loops
def test_nothing_is_lent_while_bytes_are_unsent(loop: Loop) -> None:
    """A transport tells of its first unsent byte inside `write`, also if it will send in a later iteration."""

    async def work() -> None:
        client = await Borrower.open()
        client.hand_over()
        client.connection.lend_descriptor(client)
        lent = client.descriptor
        assert lent >= 0
        for _ in range(3):
            client.write(b"x" * LARGE)
            assert client.buffered_bytes() > 0
            assert client.descriptor == NO_DESCRIPTOR
        client.connection.lend_descriptor(None)
        client.connection.lend_descriptor(client)
        assert client.descriptor == NO_DESCRIPTOR
        await client.read_all()
        await eventually(lambda: client.descriptor == lent, what="the descriptor")
        assert len(client.received) == 3 * LARGE
        client.end()

    run(loop, work())


@both_loops
def test_a_descriptor_that_is_not_lent_has_the_water_marks_of_its_connection(loop: Loop) -> None:
    async def work() -> None:
        client = await Borrower.open()
        client.hand_over()
        limits = (int(HIGH_WATER_BYTES * LOW_WATER_SHARE), HIGH_WATER_BYTES)
        assert client.transport.get_write_buffer_limits() == limits
        client.connection.lend_descriptor(client)
        assert client.transport.get_write_buffer_limits() == (0, 0)
        is_full = []
        for _ in range(2):
            client.write(b"x" * HIGH_WATER_BYTES)
            is_full.append(client.connection.is_full)
        assert is_full == [False, True]
        client.connection.lend_descriptor(None)
        assert client.transport.get_write_buffer_limits() == limits
        waiting = asyncio.create_task(client.connection.wait_writable())
        await client.read_all()
        await waiting
        client.end()

    run(loop, work())


@both_loops
@pytest.mark.parametrize("end", ["abort", "close", "the client leaves"])
def test_a_descriptor_is_taken_back_before_it_is_closed(loop: Loop, end: str) -> None:
    async def work() -> None:
        client = await Borrower.open()
        client.hand_over()
        client.connection.lend_descriptor(client)
        lent, seen = client.descriptor, asyncio.get_running_loop().create_future()
        when_stopped = list[int]()

        def on_lost() -> None:
            os.fstat(lent)  # raises if it is closed
            seen.set_result(client.descriptor)

        client.connection.listener = Ends(on_lost, lambda: when_stopped.append(client.descriptor))
        client.far.close() if end == "the client leaves" else getattr(client.transport, end)()
        assert await seen == NO_DESCRIPTOR
        assert when_stopped == ([NO_DESCRIPTOR] if end == "the client leaves" else [])
        client.connection.lend_descriptor(client)
        client.connection.resume_writing()
        assert client.descriptor == NO_DESCRIPTOR
        client.end()

    run(loop, work())


class LateWriter(StreamConnection):
    """A connection to which a batch is written twice after the client's end of file, before it is lost."""

    client: Borrower

    def connection_lost(self, exc: Exception | None) -> None:
        send([self.client], b"x" * LARGE)  # more than the kernel takes
        self.client.read()
        send([self.client], b"next")
        self.client.read()
        super().connection_lost(exc)


@in_c
@both_loops
def test_no_message_follows_a_part_of_another_after_the_end_of_file(loop: Loop) -> None:
    """The transport drops the rest of a message then, so the descriptor must not send the next one."""

    async def work() -> None:
        client = await Borrower.open(LateWriter)
        cast(LateWriter, client.connection).client = client
        client.hand_over()
        client.connection.lend_descriptor(client)
        lost = asyncio.Event()
        client.connection.listener = Ends(lost.set)
        client.far.shutdown(socket.SHUT_WR)
        await lost.wait()
        assert b"next" not in client.received
        client.end()

    run(loop, work())


@in_c
@both_loops
@pytest.mark.parametrize("seed", seeds(20, first_tier=2, second_tier=4))
def test_no_byte_overtakes_another(loop: Loop, seed: int) -> None:
    """Bytes of the group and of the client alone, in any order, to a client that reads at any pace."""

    async def work() -> None:
        chance, said = random.Random(seed), b""
        client = await Borrower.open()
        client.hand_over()
        client.connection.lend_descriptor(client)
        for number in range(400):
            data = b"%d " % number * chance.choice([1, 100, 3000])
            deed = chance.randrange(8)
            if deed < 3:
                send([client], data)
                said += data
            elif deed == 3:
                client.write(data)
                said += data
            elif deed == 4:
                client.connection.lend_descriptor(chance.choice([None, client]))
            elif deed == 5:
                await asyncio.sleep(0)
            else:
                client.read(chance.choice([10, 1000, 1 << 16]))
        await client.read_all()
        assert client.received == said
        client.end()

    run(loop, work())


class Churn:
    """Clients and strangers whose sockets open and close all the time, so that numbers of descriptors are reused.

    A group of clients gets numbered frames. The group never forgets a client, also if its connection is gone: that is
    worse than what the hub does. A stranger is a socket to which nobody sends. A client must get its greeting and then
    all frames from its first one on, until its connection ends.
    """

    def __init__(self, chance: random.Random, kind: type[StreamConnection]) -> None:
        self.chance, self.kind = chance, kind
        self.frames: list[bytes] = []
        self.group: list[Borrower] = []
        self.first: dict[Borrower, int] = {}
        self.open: list[Borrower] = []
        self.strangers: list[socket.socket] = []
        self.used: dict[int, int] = {}

    def fan_out(self) -> None:
        self.frames.append(b"frame %d\n" % len(self.frames))
        send(self.group, self.frames[-1])

    async def join(self) -> None:
        client = await Borrower.open(self.kind)
        client.hand_over()
        client.write(b"hello\n")
        client.connection.lend_descriptor(client)
        client.connection.listener = Ends(self.fan_out)  # at the last moment before the descriptor is closed
        self.used[client.descriptor] = self.used.get(client.descriptor, 0) + 1
        self.first[client] = len(self.frames)
        self.group.append(client)
        self.open.append(client)

    def end_one(self) -> None:
        client = self.open.pop(self.chance.randrange(len(self.open)))
        client.read()
        self.check(client)
        self.chance.choice([client.transport.abort, client.transport.close, client.far.close])()

    def check(self, client: Borrower) -> None:
        expected = b"hello\n" + b"".join(self.frames[self.first[client] :])
        assert client.received == expected

    def meet_strangers(self) -> None:
        """Open strangers, which take the numbers that are free, and end the older ones."""
        for side in self.strangers:
            side.setblocking(False)
            with suppress(BlockingIOError):
                assert not side.recv(100), "a stranger got bytes of the group"
        for side in self.strangers:
            side.close()
        self.strangers = [side for _ in range(self.chance.randrange(4)) for side in socket.socketpair()]

    async def run(self, turns: int) -> None:
        for turn in range(turns):
            while len(self.open) < 8:
                await self.join()
            for _ in range(self.chance.randrange(3)):
                self.end_one()
            if turn % 2:
                self.meet_strangers()
            await asyncio.sleep(0)
            self.fan_out()
            for client in self.open:
                client.read()
                self.check(client)

    def end(self) -> None:
        for client in self.open:
            client.connection.listener = None
            client.transport.abort()
        for client in self.group:
            client.far.close()
        for side in self.strangers:
            side.close()


class KeptDescriptor(StreamConnection):
    """The mistake that the test below must find: the borrower keeps the descriptor of a lost connection."""

    def lend_descriptor(self, borrower: Outlet | None) -> None:
        if borrower is not None or self._borrower is None:
            super().lend_descriptor(borrower)


def churn(loop: Loop, seed: int, kind: type[StreamConnection], turns: int) -> Churn:
    async def work() -> None:
        try:
            await made.run(turns)
        finally:
            made.end()
            await asyncio.sleep(0)  # the loop closes what was aborted

    made = Churn(random.Random(seed), kind)
    run(loop, work())
    return made


@in_c
@both_loops
@pytest.mark.parametrize("seed", seeds(20, first_tier=1, second_tier=3))
def test_nobody_gets_the_bytes_of_a_closed_connection(loop: Loop, seed: int) -> None:
    made = churn(loop, seed, StreamConnection, 100)
    assert len(made.group) > 70
    assert max(made.used.values()) > 10  # a number was that of so many connections


@in_c
@both_loops
def test_a_descriptor_that_is_kept_is_found(loop: Loop) -> None:
    with pytest.raises(AssertionError):
        churn(loop, 0, KeptDescriptor, 100)
