"""A log that lost its end: the feeds find the rollback and record it before any client reads on."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from stream_server.errors import Unavailable
from stream_server.events.entry import Entry
from stream_server.events.position import LOG_START, Position
from stream_server.feed.link_health import LinkLost
from stream_server.store import keys
from stream_server.store.log.event_log import LogLookup, RecordedRollback
from tests.redis_process import RedisProcess, binaries
from tests.stream_server.feed.node import LogWriter, Node
from tests.stream_server.feed.returning_client import ReturningClient
from tests.tiers import each_engine
from tests.waiting import eventually

HOUR_MS = 3_600_000


async def _until_equal(node: Node, writer: LogWriter) -> None:
    """Wait until the ring has exactly what is on the log."""
    await eventually(lambda: node.feed.is_ready and node.received() == writer.positions(), what="the log")


async def test_a_rollback_moves_the_head_back_and_the_new_entries_arrive(
    node: Node, writer: LogWriter, caplog: pytest.LogCaptureFixture
) -> None:
    """The log of the server calls the loss an error, with its size."""
    positions = [writer.write() for _ in range(5)]
    await node.expect_received(positions)
    writer.lose(2)
    writer.write()
    await _until_equal(node, writer)
    assert node.jumps == [(positions[2], "rolled_back", None)]
    assert writer.recorded_rollbacks() == [(positions[2].cursor, positions[4].cursor)]
    assert [position.n for position in node.received()] == [1, 2, 3, 4, 5]
    assert node.received()[3] > positions[4] or node.received()[4] > positions[4]
    (told,) = (record.getMessage() for record in caplog.records if record.levelname == "ERROR")
    assert told.startswith(f"Redis lost data: 2 entries of the log after {positions[2].cursor}, ")


async def test_a_rollback_that_new_writes_have_overtaken_is_noticed(without_canary: Node, writer: LogWriter) -> None:
    """The number of the next message is used again."""
    positions = [writer.write() for _ in range(10)]
    await without_canary.expect_received(positions)
    writer.lose(4, links=False)
    for _ in range(8):
        writer.write()
    await _until_equal(without_canary, writer)
    assert without_canary.jumps == [(positions[5], "rolled_back", None)]


async def test_a_redis_that_lost_everything_gets_a_rollback_and_higher_ids(node: Node, writer: LogWriter) -> None:
    positions = [writer.write() for _ in range(5)]
    await node.expect_received(positions)
    writer.lose(5)
    await _until_equal(node, writer)
    assert node.jumps == [(LOG_START, "rolled_back", None)]
    assert writer.recorded_rollbacks() == [(LOG_START.cursor, positions[4].cursor)]
    writer.write()
    await _until_equal(node, writer)
    assert all(position > positions[4] for position in node.received())


async def test_two_feeds_record_the_same_rollback_once(node: Node, without_canary: Node, writer: LogWriter) -> None:
    positions = [writer.write() for _ in range(8)]
    for one in (node, without_canary):
        await one.expect_received(positions)
    writer.lose(4)
    for one in (node, without_canary):
        await _until_equal(one, writer)
        assert one.jumps == [(positions[3], "rolled_back", None)]
    assert writer.recorded_rollbacks() == [(positions[3].cursor, positions[7].cursor)]


async def test_clients_of_a_server_that_never_received_the_lost_entries_get_the_gap_too(
    node: Node, without_canary: Node, writer: LogWriter
) -> None:
    informed, unaware = ReturningClient(), ReturningClient()
    await informed.connect(node)
    await unaware.connect(without_canary)
    kept = [writer.write() for _ in range(4)]
    for one in (node, without_canary):
        await one.expect_received(kept)
    lost = [writer.write(published=False) for _ in range(3)]
    await informed.expect_cursor(lost[-1])
    assert without_canary.hub.head == kept[-1]
    writer.lose(3)
    for one in (node, without_canary):
        await _until_equal(one, writer)
    last = writer.write()
    for client in (informed, unaware):
        await client.expect_cursor(last)
        assert client.gaps == ["rolled_back"]
        assert [n for n, _ in client.kept] == [position.n for position in (*kept, last)]
    assert (informed.ghosts, unaware.ghosts) == (3, 0)
    assert (len(node.jumps), without_canary.jumps) == (1, [])
    late = ReturningClient()
    await late.connect(without_canary)
    await late.expect_cursor(last)
    assert late.gaps == ["rolled_back"]


async def test_after_a_rollback_the_restricted_accounts_is_read_before_the_next_entry(
    node: Node, writer: LogWriter
) -> None:
    positions = [writer.write() for _ in range(5)]
    await node.expect_received(positions)
    assert node.hub.restricted_accounts.restricted == set()
    writer.client.sadd(keys.key_for("protected"), "7")
    writer.client.zadd(keys.key_for("suspended"), {"8": 1})
    judged: list[set[str]] = []
    publish = node.hub.publish

    def judging(entry: Entry, *, is_last: bool = False) -> None:
        judged.append(set(node.hub.restricted_accounts.restricted))
        publish(entry, is_last=is_last)

    node.hub.publish = judging  # type: ignore[method-assign]  # looks on
    writer.lose(2)
    for _ in range(4):
        writer.write()
    await _until_equal(node, writer)
    assert judged[-5:] == [{"7", "8"}] * 5
    assert (node.hub.restricted_accounts.protected, node.hub.restricted_accounts.suspended) == ({"7"}, {"8"})


async def test_a_forged_next_message_hides_no_entry_of_the_log(node: Node, writer: LogWriter) -> None:
    positions = [writer.write()]
    await node.expect_received(positions)
    forged = Position(positions[0].ms + HOUR_MS, 0, 2)
    assert writer.publish(forged, writer.new_post()) == 1
    await eventually(lambda: node.hub.head == forged or node.jumps, what="the forged one to be taken")
    for _ in range(5):
        writer.write()
    await _until_equal(node, writer)
    assert node.jumps == [(positions[0], "rolled_back", None)]


async def test_a_log_whose_numbers_repeat_is_read_to_its_end(node: Node, writer: LogWriter) -> None:
    """A torn append-only file may leave such a log."""
    positions = [writer.write() for _ in range(3)]
    await node.expect_received(positions)
    writer.client.hset(keys.META, "n", 1)
    writer.client.client_kill_filter(_type="pubsub")
    again = [writer.write(published=False), writer.write(published=False), writer.write()]
    await eventually(lambda: node.hub.head == again[-1], what="the end of the log")
    assert [position.n for position in writer.positions()] == [1, 2, 3, 2, 3, 4]
    assert [reason for _, reason, _ in node.jumps] in (["rolled_back"], [])
    later = writer.write()
    await eventually(lambda: node.hub.head == later, what="what came then")


class PowerCut:
    """A Redis whose append-only file a test truncates, as a power cut does."""

    def __init__(self, server: RedisProcess) -> None:
        self.server = server
        self._size = 0

    @property
    def _file(self) -> Path:
        folder = self.server.folder
        files = [*folder.glob("appendonlydir/*.incr.aof"), *folder.glob("appendonly.aof")]
        return next(file for file in files if file.is_file())

    def mark(self) -> None:
        """Mark what is on the disk by now."""
        self._size = self._file.stat().st_size

    def restart(self) -> None:
        """Restart Redis without what came after the mark."""
        self.server.kill()
        with self._file.open("r+b") as file:
            assert self._file.stat().st_size > self._size
            file.truncate(self._size)
        self.server.start()


@pytest.fixture(params=each_engine())
def power_cut(request: pytest.FixtureRequest) -> Iterator[PowerCut]:
    """Runs on each engine of this machine."""
    options = ("--appendonly", "yes", "--appendfsync", "always")
    with RedisProcess(binaries()[request.param], *options) as server:
        yield PowerCut(server)


@pytest.fixture
async def nodes(power_cut: PowerCut) -> AsyncIterator[list[Node]]:
    made = [Node(power_cut.server.url), Node(power_cut.server.url)]
    for one in made:
        await one.open()
    yield made
    for one in made:
        await one.close()


async def test_live_and_absent_clients_get_the_gap_of_a_power_cut(power_cut: PowerCut, nodes: list[Node]) -> None:
    writer, clients = LogWriter(power_cut.server), [ReturningClient() for _ in range(4)]
    for at, client in enumerate(clients):
        await client.connect(nodes[at % 2])
    kept = [writer.write() for _ in range(4)]
    power_cut.mark()
    lost = [writer.write() for _ in range(5)]
    for one in nodes:
        await one.expect_received([*kept, *lost])
    for client in clients:
        await client.expect_cursor(lost[-1])
    for client in clients[:2]:
        client.disconnect()
    power_cut.restart()
    writer.close()
    writer = LogWriter(power_cut.server)
    new = [writer.write() for _ in range(7)]
    for one in nodes:
        await _until_equal(one, writer)
    for client, node in zip(clients[:2], reversed(nodes), strict=True):
        await client.connect(node)
    last = writer.write()
    for client in clients:
        await client.expect_cursor(last)
        assert (set(client.gaps), client.ghosts) == ({"rolled_back"}, 5)
        assert [n for n, _ in client.kept] == [position.n for position in (*kept, *new, last)]
    assert [len(client.gaps) for client in clients[2:]] == [1, 1]  # who was live; others may pass the word of it, too
    assert writer.recorded_rollbacks() == [(kept[-1].cursor, lost[-1].cursor)]
    writer.close()


async def test_entries_confirmed_on_the_log_may_be_lost_later(without_canary: Node, writer: LogWriter) -> None:
    """As in a failover between two canary checks: the next message has the number after the lost ones."""
    positions = [writer.write() for _ in range(5)]
    await without_canary.expect_received(positions)
    await without_canary.feed.detector.recheck()
    writer.lose(2, links=False)
    for _ in range(2):
        writer.write(published=False)
    await without_canary.expect_received([*positions, writer.write()])
    writer.client.client_kill_filter(_type="pubsub")
    await eventually(lambda: without_canary.received() == writer.positions(), what="the log to be informed")
    assert without_canary.jumps == [(positions[2], "rolled_back", None)]
    assert writer.recorded_rollbacks() == [(positions[2].cursor, positions[4].cursor)]


@pytest.mark.parametrize("emptied", [False, True])
async def test_a_rollback_is_completed_if_the_reader_that_found_it_is_cancelled(
    without_canary: Node, writer: LogWriter, monkeypatch: pytest.MonkeyPatch, *, emptied: bool
) -> None:
    feed, reached = without_canary.feed, asyncio.Event()
    tell = without_canary.store.rollbacks.record
    positions = [writer.write() for _ in range(5)]
    await without_canary.expect_received(positions)
    await feed.detector.recheck()
    recorded: list[RecordedRollback | None] = []

    async def held(survivor: Position, lost: Position) -> RecordedRollback | None:
        recorded.append(await tell(survivor, lost))
        if len(recorded) == 1:
            reached.set()
            await asyncio.Event().wait()
        return recorded[-1]

    monkeypatch.setattr(without_canary.store.rollbacks, "record", held)
    writer.client.xtrim(keys.LOG, 0, approximate=False) if emptied else writer.lose(2, links=False)
    looking = asyncio.create_task(feed.detector.recheck())
    await reached.wait()
    looking.cancel()
    await asyncio.gather(looking, return_exceptions=True)
    await feed.detector.recheck()
    assert [reason for _, reason, _ in without_canary.jumps] == ["rolled_back"]
    last = writer.write()
    await eventually(lambda: without_canary.hub.head == last, what="what came then")
    assert len(recorded) >= 2
    assert len(writer.recorded_rollbacks()) == 1


async def test_a_reader_repeats_a_check_that_failed_for_another_reader(
    without_canary: Node, writer: LogWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    positions = [writer.write() for _ in range(5)]
    await without_canary.expect_received(positions)
    inspect, asked, away = without_canary.store.log.look_up_with_run_id, 0, asyncio.Event()

    async def failing(position: Position) -> tuple[str, LogLookup]:
        nonlocal asked
        asked += 1
        if asked <= 2:
            await away.wait()
            raise Unavailable("away", retry_after=1)
        return await inspect(position)

    monkeypatch.setattr(without_canary.store.log, "look_up_with_run_id", failing)
    writer.lose(2, links=False)
    looks = [asyncio.create_task(without_canary.feed.detector.recheck()) for _ in range(3)]
    await eventually(lambda: asked == 1, what="the first to ask, and the others to wait for it")
    away.set()
    found = await asyncio.gather(*looks, return_exceptions=True)
    assert [type(one) for one in found] == [Unavailable, Unavailable, type(None)]
    assert without_canary.jumps == [(positions[2], "rolled_back", None)]


async def test_receiving_its_own_rollback_entry_does_not_interrupt_the_check_that_records_it(
    node: Node, writer: LogWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded, informed = 0, asyncio.Event()
    tell, require = node.store.rollbacks.record, node.feed._require_valid_head

    def required() -> None:
        try:
            require()
        except LinkLost:
            informed.set()
            raise

    async def held(survivor: Position, lost: Position) -> RecordedRollback | None:
        nonlocal recorded
        recorded += 1
        loss = await tell(survivor, lost)
        await informed.wait()
        return loss

    positions = [writer.write() for _ in range(5)]
    await node.expect_received(positions)
    monkeypatch.setattr(node.feed, "_require_valid_head", required)
    monkeypatch.setattr(node.store.rollbacks, "record", held)
    writer.client.xtrim(keys.LOG, 0, approximate=False)
    await eventually(lambda: node.jumps, what="the hub to go back")
    last = writer.write()
    await eventually(lambda: node.hub.head == last, what="what came then")
    assert node.jumps[0][1] == "rolled_back"
    assert recorded == 1


async def _lose_the_record_of_a_loss(node: Node, writer: LogWriter, client: ReturningClient) -> Position:
    """With the clock set back, lose a post, and then the entry that records its loss. Return this entry's position."""
    await client.connect(node)
    writer.ahead_ms = HOUR_MS
    writer.write()
    writer.ahead_ms = 0
    lost = writer.write()
    await client.expect_cursor(lost)
    writer.lose(1)
    await _until_equal(node, writer)
    (record,) = writer.lose(1)
    assert record == lost._replace(seq=lost.seq + 1)
    return record


async def test_a_post_with_the_number_of_a_lost_record_is_sent(without_canary: Node, writer: LogWriter) -> None:
    client = ReturningClient()
    record = await _lose_the_record_of_a_loss(without_canary, writer, client)
    post = writer.write()
    assert (post.ms, post.seq, post.n) == (record.ms, record.seq + 1, record.n)
    await _until_equal(without_canary, writer)
    await client.expect_cursor(writer.write())
    assert client.kept == writer.posts()
    client.disconnect()


async def test_a_post_at_exactly_a_lost_position_is_taken_for_the_lost_entry(
    without_canary: Node, writer: LogWriter
) -> None:
    """This limit is documented. It is the reason why the histories never use a lost position again."""
    client = ReturningClient()
    hidden = writer.write(position=await _lose_the_record_of_a_loss(without_canary, writer, client))
    await client.expect_cursor(writer.write())
    assert [n for n, _ in writer.posts()] == [1, hidden.n, hidden.n + 1]
    assert [n for n, _ in client.kept] == [1, hidden.n + 1]
    client.disconnect()
