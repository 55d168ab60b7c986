"""Compressed bytes that refer to earlier ones reach only clients that have got the earlier ones, and nothing since."""

import asyncio
import random
import zlib

import pytest

from stream_server.hub.messages import MAX_HISTORY_BYTES, MIN_SHARING_CLIENTS, SharedHistory
from stream_server.hub.stream_session import StreamSession
from tests.stream_server.hub.world import PackedSocket, Socket, World
from tests.waiting import eventually

TEXT = "the quick brown fox jumps over the lazy dog near the bank of the river"


def joined(earlier: bytes, data: bytes) -> bytes:
    return b"%b|%b" % (earlier, data)


def test_a_history_begins_anew_with_each_change_of_the_group() -> None:
    history = SharedHistory(joined)
    assert [history.wrap(b"a", 1), history.wrap(b"b", 1), history.wrap(b"c", 2)] == [b"|a", b"a|b", b"|c"]
    assert history.wrap(b"d", 2) == b"c|d"
    history.forget()
    assert [history.wrap(b"e", 2), history.wrap(b"f", 2)] == [b"|e", b"e|f"]


def test_a_history_is_bounded() -> None:
    history = SharedHistory(joined)
    history.wrap(b"x" * 3 * MAX_HISTORY_BYTES, 1)
    assert len(history.wrap(b"y", 1)) == MAX_HISTORY_BYTES + 2


async def test_a_large_group_gets_shorter_events_than_a_small_one(world: World) -> None:
    many = [world.open_packed(firehose="true")[1] for _ in range(MIN_SHARING_CLIENTS)]
    few = [world.open_packed(sample="100")[1] for _ in range(MIN_SHARING_CLIENTS - 1)]
    sizes: list[tuple[int, int]] = []
    for number in range(3):
        before = len(many[0].received), len(few[0].received)
        world.post(f"{TEXT} {number}")
        await many[0].expect_last_text(f"{TEXT} {number}")
        sizes.append((len(many[0].received) - before[0], len(few[0].received) - before[1]))
    assert sizes[0][0] == sizes[0][1]
    assert all(packed < alone / 2 for packed, alone in sizes[1:])
    for socket in [*many, *few]:
        await socket.expect_texts(*(f"{TEXT} {number}" for number in range(3)))


async def test_the_first_write_after_a_slow_clients_warning_refers_to_nothing(world: World) -> None:
    streams = [world.open_packed(firehose="true") for _ in range(MIN_SHARING_CLIENTS)]
    slow, quick = streams[0][1], streams[1][1]
    slow.block()
    number = 0
    while "warning" not in (kinds := _kinds_waiting(slow)):
        number += 1
        assert number < 100, kinds
        world.post(f"{TEXT} {number}")
        await quick.expect_last_text(f"{TEXT} {number}")
    before = len(quick.received)
    world.post(f"{TEXT} again")
    await quick.expect_last_text(f"{TEXT} again")
    alone = zlib.decompressobj(-zlib.MAX_WBITS).decompress(bytes(quick.received[before:]))
    assert b"again" in alone


@pytest.mark.parametrize("seed", range(5))
async def test_each_client_reads_all_events_whatever_happens_to_others(world: World, seed: int) -> None:
    """Clients join, leave, stop reading, fall behind and come back, in one group, in random order."""
    play = Play(world, random.Random(seed))
    for _ in range(150):
        await play.step()
    await play.finish()
    for begun_at, socket in play.opened:
        assert socket.texts() == play.posted[begun_at : begun_at + len(socket.texts())]
    for _, socket in play.present():
        assert socket.texts()[-1:] == play.posted[-1:]


class Play:
    """Random steps. ``opened`` has the sockets of all clients, and how many posts there were before each."""

    def __init__(self, world: World, chance: random.Random) -> None:
        self.world = world
        self.chance = chance
        self.posted: list[str] = []
        self.opened: list[tuple[int, PackedSocket]] = []
        self.streams: dict[StreamSession, PackedSocket] = {}
        for _ in range(2 * MIN_SHARING_CLIENTS):
            self.join()

    def join(self) -> None:
        begun_at = self.chance.randint(0, len(self.posted)) if self.chance.random() < 0.5 else len(self.posted)
        position = self.world.log.entries[begun_at - 1].position if begun_at else None
        if position is None and self.posted:
            begun_at, position = len(self.posted), self.world.hub.head
        stream, socket = self.world.open_packed(position, firehose="true")
        self.opened.append((begun_at, socket))
        self.streams[stream] = socket

    def leave(self) -> None:
        if len(self.streams) > MIN_SHARING_CLIENTS:
            stream = self.chance.choice(list(self.streams))
            del self.streams[stream]
            stream.connection_lost()

    def post(self) -> None:
        self.posted.append(f"{TEXT} {len(self.posted)} {self.chance.randbytes(self.chance.randint(0, 60)).hex()}")
        self.world.post(self.posted[-1])

    def stall(self) -> None:
        self.chance.choice(list(self.streams.values())).block()

    def read(self) -> None:
        for socket in self.streams.values():
            socket.unblock()

    async def step(self) -> None:
        self.chance.choices((self.post, self.join, self.leave, self.stall, self.read), (10, 1, 1, 2, 1))[0]()
        for _ in range(self.chance.choice((0, 0, 1, 5))):
            await asyncio.sleep(0)

    async def finish(self) -> None:
        """Let all clients read, until they have the last post."""
        self.post()

        def all_read() -> bool:
            self.read()
            return all(socket.texts()[-1:] == self.posted[-1:] for _, socket in self.present())

        await eventually(all_read, what="the last post at all clients")

    def present(self) -> list[tuple[StreamSession, PackedSocket]]:
        return list(self.streams.items())


def _kinds_waiting(socket: Socket) -> list[object]:
    """Return the kinds of all messages of a blocked socket."""
    look = PackedSocket()
    look.received = socket.received + socket.waiting
    return look.kinds()
