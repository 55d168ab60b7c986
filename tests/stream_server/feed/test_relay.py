"""The relay of a host: each process gets each entry once and in order, also a slow one and one whose relay dies."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import closing, suppress
from functools import partial
from pathlib import Path

import pytest

from stream_server.errors import Unavailable
from stream_server.events.bus_signature import BusSignature
from stream_server.feed.link_health import STABLE_SECONDS, LinkHealth
from stream_server.feed.relay import distribution as distribution_module
from stream_server.feed.relay.distribution import Distribution
from stream_server.feed.relay.entry_source import EntrySource
from stream_server.feed.relay.hearing import Hearing
from stream_server.feed.relay.lines import LineSplitter
from stream_server.feed.relay.relay_link import RelayLink
from stream_server.store.store import Store
from tests.listening import stop_listening
from tests.stream_server.feed.node import LogWriter, Node
from tests.waiting import PATIENCE, eventually


class Unsigned(BusSignature):
    """Believes what the writer of these tests publishes, which is not signed."""

    def open(self, message: bytes) -> bytes | None:
        return message if message[:1].isdigit() else None


class Relay:
    """A relay in this process, on a socket at ``path``."""

    def __init__(self, url: str, path: Path) -> None:
        self.path = path
        self.store = Store(url, timeout_seconds=PATIENCE)
        self.distribution = Distribution(Unsigned(b""))
        health = LinkHealth(random.Random(1))
        self.hearing = Hearing(self.store.log, self.distribution, health, lambda: 0.1)
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        self.path.unlink(missing_ok=True)
        loop = asyncio.get_running_loop()
        self._server = await loop.create_unix_server(self.distribution.make_link, str(self.path))
        self._tasks = [asyncio.create_task(self.hearing.run())]

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        await stop_listening(self._server)
        self.distribution.end()

    async def close(self) -> None:
        await self.stop()
        await self.store.close()


@pytest.fixture
async def relay(redis_url: str, tmp_path: Path) -> AsyncIterator[Relay]:
    made = Relay(redis_url, tmp_path / "relay.sock")
    await made.start()
    yield made
    await made.close()


@pytest.fixture
async def nodes(redis_url: str, relay: Relay) -> AsyncIterator[list[Node]]:
    """Two processes that hear the relay."""
    made = [Node(redis_url, 0.1, relay=relay.path) for _ in range(2)]
    for node in made:
        await node.open()
    yield made
    for node in made:
        await node.close()


def all_heard(nodes: list[Node], number: int) -> bool:
    return all(node.hub.head.n == number for node in nodes)


def test_lines_are_found_wherever_the_reads_are_cut() -> None:
    lines = [b"1 2 post public {}", b"", b"!3", b"x" * 100]
    data = b"".join(line + b"\n" for line in lines)
    for size in range(1, len(data) + 1):
        splitter = LineSplitter()
        assert [line for at in range(0, len(data), size) for line in splitter.split(data[at : at + size])] == lines


async def test_all_processes_hear_one_subscription(relay: Relay, nodes: list[Node], writer: LogWriter) -> None:
    assert writer.client.pubsub_numsub("events:post") == [(b"events:post", 1)]
    positions = [writer.write() for _ in range(100)]
    for node in nodes:
        await node.expect_received(positions)
        assert (node.feed.recovered, node.feed.duplicates, node.feed.unsigned) == (0, 0, 0)
    assert (relay.distribution.entries, relay.distribution.links, relay.distribution.lost) == (100, 2, 0)


async def test_an_unsigned_message_makes_each_process_read_the_log(nodes: list[Node], writer: LogWriter) -> None:
    position = writer.write(published=False)
    writer.client.publish("events:post", b"what is this?")
    for node in nodes:
        await node.expect_received([position])
        assert node.feed.unsigned == 1


async def test_relays_that_die_at_random_lose_and_repeat_nothing(
    relay: Relay, nodes: list[Node], writer: LogWriter
) -> None:
    """The processes hear for themselves meanwhile, and return to the relay."""
    chance, positions = random.Random(7), []
    for _ in range(4):
        positions += [writer.write(published=chance.random() < 0.9) for _ in range(chance.randint(1, 30))]
        await asyncio.sleep(0)
        await relay.stop()
        positions += [writer.write() for _ in range(chance.randint(1, 10))]
        await relay.start()
        for node in nodes:
            await node.expect_received(positions)
    assert min(node.feed.reconnects for node in nodes) >= 1
    await eventually(lambda: all(node.feed.source.link for node in nodes), seconds=30, what="a return to the relay")
    positions.append(writer.write())
    for node in nodes:
        await node.expect_received(positions)


async def test_a_silent_relay_is_noticed_by_the_canary(
    nodes: list[Node], writer: LogWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It hears, and hands over nothing."""
    monkeypatch.setattr(distribution_module.ProcessLink, "hand", lambda *_: None)
    positions = [writer.write(), writer.write()]
    for node in nodes:
        await node.expect_received(positions)
        assert node.feed.reconnects >= 1


async def test_a_process_that_takes_nothing_is_told_what_it_lost_and_holds_back_nobody(
    relay: Relay, nodes: list[Node], writer: LogWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(distribution_module, "MAX_WAITING_BYTES", 4096)
    monkeypatch.setattr(distribution_module, "ROOM_AGAIN_BYTES", 1024)
    told: list[int] = []
    with closing(await RelayLink.connect(relay.path, lambda _: None, told.append)) as slow:
        await slow.wait_ready()  # from here on it reads nothing
        count = 0
        while not relay.distribution.lost:
            for _ in range(200):
                writer.write()
            count += 200
            await eventually(partial(all_heard, nodes, count), what="the others to hear all")
        reading = asyncio.create_task(slow.deliver(lambda _: None))
        await eventually(lambda: told, what="a loss to be told")
        await eventually(lambda: slow.lost + slow.entries == count, what="all lines to be taken or lost")
        assert slow.lost == relay.distribution.lost > 0
        assert [node.feed.recovered for node in nodes] == [0, 0]
    with suppress(Unavailable):
        await reading


async def test_without_a_relay_a_process_hears_redis(redis_url: str, tmp_path: Path) -> None:
    store = Store(redis_url, timeout_seconds=PATIENCE)
    source = EntrySource(store.log, None, tmp_path / "nobody")
    link = await source.open()
    assert source.link is None
    assert not await source.is_relay_back()
    link.close()
    await store.close()


async def lose(source: EntrySource) -> None:
    (await source.open()).close()
    assert source.leave_relay()


async def test_a_lost_relay_is_tried_again_soon_and_later_if_its_links_end_soon(redis_url: str, relay: Relay) -> None:
    """The pauses: 2, 4 and 8 s after links that ended at once, and 1 s again after one that worked for a while."""
    store, now = Store(redis_url, timeout_seconds=PATIENCE), 1000.0
    source = EntrySource(store.log, None, relay.path, lambda: now)
    for pause in (2, 4, 8, 8):
        await lose(source)
        now += pause - 0.5
        assert not await source.is_relay_back()
        now += 0.5
        await eventually(source.is_relay_back, what="a link")
    (await source.open()).close()
    now += STABLE_SECONDS
    assert source.leave_relay()
    now += 1
    await eventually(source.is_relay_back, what="a link")
    source.close()
    await store.close()


async def test_a_relay_that_is_not_there_is_asked_for_every_second(redis_url: str, relay: Relay) -> None:
    store, now = Store(redis_url, timeout_seconds=PATIENCE), 1000.0
    source = EntrySource(store.log, None, relay.path, lambda: now)
    await relay.stop()
    relay.path.unlink()
    (await source.open()).close()
    for _ in range(20):
        now += 1
        assert not await source.is_relay_back()
    await relay.start()
    now += 1
    await eventually(source.is_relay_back, what="a link")
    source.close()
    await store.close()
