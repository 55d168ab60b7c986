"""The feed: published entries, missed entries, and a link to Redis that fails."""

import asyncio
import time
from collections.abc import Callable
from typing import Any, NoReturn

import pytest

from stream_server.errors import Unavailable
from stream_server.events.entry import Entry
from stream_server.events.position import LOG_START, Position
from stream_server.feed import feed as feed_module
from stream_server.feed import log_reader
from stream_server.feed.feed import Feed
from stream_server.feed.link_health import BACKOFF_SECONDS, LinkLost
from stream_server.store import keys
from stream_server.store.log.event_log import PAGE_BYTES
from stream_server.store.redis.subscription import Subscription
from tests.redis_process import RedisProcess, newest
from tests.stream_server.feed.node import LogWriter, Node, now_ms, record_checks
from tests.waiting import PATIENCE, eventually


async def test_published_entries_arrive_once_and_in_order(node: Node, writer: LogWriter) -> None:
    await node.expect_received([writer.write() for _ in range(100)])
    assert node.feed.recovered == 0
    assert node.feed.is_ready


async def test_a_lost_message_is_read_from_the_log_at_the_next_message(without_canary: Node, writer: LogWriter) -> None:
    positions = [writer.write()]
    await without_canary.expect_received(positions)
    positions += [writer.write(published=False), writer.write()]
    await without_canary.expect_received(positions)
    assert without_canary.feed.recovered == 2


async def more_checks(checks: list[Position], count: int) -> None:
    end = len(checks) + count
    await eventually(lambda: len(checks) >= end, what="canary checks")


async def test_a_silent_link_is_noticed_within_two_canary_checks(
    node: Node, writer: LogWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    checks = record_checks(node, monkeypatch)
    positions = [writer.write(published=False), writer.write(published=False)]
    await node.expect_received(positions)
    assert checks.count(LOG_START) <= 3  # the one that finds it, the new link's own look, and one that was on its way
    assert node.feed.reconnects >= 1
    await eventually(lambda: node.feed.is_ready, what="the feed to be ready again")


async def test_a_time_without_writes_is_no_outage(
    node: Node, writer: LogWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    positions = [writer.write()]
    await node.expect_received(positions)
    await more_checks(record_checks(node, monkeypatch), 5)
    assert (node.feed.reconnects, node.feed.link_health.lag_ms(), node.feed.is_ready) == (0, 0, True)


async def test_a_duplicate_is_counted_and_not_published_again(node: Node, writer: LogWriter) -> None:
    body = writer.new_post()
    positions = [writer.write(body)]
    await node.expect_received(positions)
    assert writer.publish(positions[0], body) == 1
    positions.append(writer.write())
    await node.expect_received(positions)
    assert (node.feed.duplicates, node.feed.malformed) == (1, 0)


async def test_a_message_with_a_position_above_the_head_is_counted_and_skipped(node: Node, writer: LogWriter) -> None:
    positions = [writer.write()]
    await node.expect_received(positions)
    writer.publish(Position(now_ms() + 10**6, 0, 10**6), writer.new_post())
    await eventually(lambda: node.feed.malformed == 1)
    positions.append(writer.write())
    await node.expect_received(positions)


async def test_a_killed_connection_is_reopened_and_misses_nothing(node: Node, writer: LogWriter) -> None:
    positions, cut = [], 0
    for number in range(50):
        positions.append(writer.write())
        if number % 10 == 5:
            cut += writer.client.client_kill_filter(_type="pubsub")
        await asyncio.sleep(0)  # lets the feed read between two writes
    await node.expect_received(positions)
    assert cut >= 1
    assert node.feed.reconnects >= 1


async def test_a_feed_that_missed_trimmed_entries_reports_their_count(without_canary: Node, writer: LogWriter) -> None:
    node = without_canary
    await node.expect_received([writer.write()])
    for _ in range(30):
        writer.write(published=False)
    writer.client.xtrim(keys.LOG, maxlen=5, approximate=False)
    writer.write()
    await eventually(lambda: node.hub.head.n == 32, what="the head to be reached")
    assert [(to.n, reason, missed) for to, reason, missed in node.jumps] == [(26, "trimmed", 25)]
    assert [position.n for position in node.received()] == [27, 28, 29, 30, 31, 32]
    assert writer.recorded_rollbacks() == []


async def test_rows_of_other_programs_on_the_log_are_skipped(node: Node, writer: LogWriter) -> None:
    positions = [writer.write()]
    for _ in range(log_reader.MAX_PAGE_ENTRIES + 1):
        writer.client.xadd(keys.LOG, {"foo": "bar"})
    writer.client.hset(keys.META, mapping={"ms": now_ms() + 1000, "seq": 0})
    positions.append(writer.write(published=False))
    await node.expect_received(positions)
    assert node.store.log.invalid_rows > log_reader.MAX_PAGE_ENTRIES


async def test_large_entries_are_read_in_pages_of_bounded_bytes(
    without_canary: Node, writer: LogWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    node, sizes = without_canary, []
    read = node.store.log.read

    async def weighed(after: Position, count: int) -> list[Entry]:
        entries = await read(after, count)
        sizes.append(sum(len(entry.body) for entry in entries))
        return entries

    monkeypatch.setattr(node.store.log, "read", weighed)
    large = writer.new_post().replace(b"text", b"x" * 1_300_000)
    positions = [writer.write(large) for _ in range(2)]
    await eventually(lambda: node.hub.head == positions[-1], what="the first ones")
    writer.client.client_kill_filter(_type="pubsub")  # a new link looks at what its position weighs
    await eventually(lambda: node.feed.reconnects == 1 and node.feed.is_ready, what="a new link")
    positions += [writer.write(large, published=False) for _ in range(12)]
    positions.append(writer.write())
    await eventually(lambda: node.hub.head == positions[-1], what="the others")
    assert node.feed.recovered == len(positions) - 2
    assert len(large) < max(sizes) <= PAGE_BYTES


async def test_a_killed_redis_is_waited_for_and_nothing_is_missing(tmp_path: object) -> None:
    with RedisProcess(newest(), "--appendonly", "yes", "--appendfsync", "always") as server:
        node, writer = Node(server.url), LogWriter(server)
        await node.open()
        positions = [writer.write()]
        await node.expect_received(positions)
        server.kill()
        await eventually(lambda: not node.feed.is_ready, what="the feed to notice")
        await eventually(lambda: node.feed.link_health.lag_ms() > 0, what="time to pass")
        server.start()
        positions.append(writer.write(published=False))
        await node.expect_received(positions)
        await eventually(lambda: node.feed.is_ready, what="the feed to be ready again")
        assert node.feed.link_health.lag_ms() == 0
        assert node.jumps == []
        await node.close()
        writer.close()


@pytest.mark.extended
async def test_the_connection_attempts_of_an_outage_are_bounded(
    node: Node, writer: LogWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    dials: list[float] = []

    async def refused(_on_question: object) -> NoReturn:
        dials.append(time.monotonic())
        raise Unavailable("refused by the test", retry_after=1)

    await node.expect_received([writer.write()])
    begun, listen = time.monotonic(), node.store.log.subscribe
    monkeypatch.setattr(node.store.log, "subscribe", refused)
    assert writer.client.client_kill_filter(_type="pubsub") == 1
    await eventually(lambda: len(dials) >= 5, what="five dials")
    shortest, longest = BACKOFF_SECONDS
    assert dials[-1] - begun >= sum(shortest * 2**n / 2 for n in range(5))
    assert not node.feed.is_ready
    assert node.feed.link_health.lag_ms() > 0
    monkeypatch.setattr(node.store.log, "subscribe", listen)
    await eventually(lambda: node.feed.is_ready, seconds=PATIENCE + longest, what="the feed to be ready again")


async def test_a_paused_redis_is_noticed(tmp_path: object) -> None:
    with RedisProcess(newest()) as server:
        node, writer = Node(server.url, timeout_seconds=1.0), LogWriter(server)
        await node.open()
        positions = [writer.write()]
        await node.expect_received(positions)
        server.pause()
        await eventually(lambda: not node.feed.is_ready, what="the feed to notice")
        server.resume()
        positions.append(writer.write())
        await node.expect_received(positions)
        await node.close()
        writer.close()


async def test_an_own_write_that_was_not_received_is_logged_and_read(
    node: Node, writer: LogWriter, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The head that Redis reports stands still, as that of a replica taken for a primary."""
    positions = [writer.write()]
    await node.expect_received(positions)
    stale = await node.store.log.look_up_with_run_id(positions[0])

    async def standing_still(position: Position) -> Any:
        assert position == positions[0]
        return stale

    monkeypatch.setattr(feed_module, "OWN_WRITE_TIMEOUT_SECONDS", 0.1)
    monkeypatch.setattr(node.store.log, "look_up_with_run_id", standing_still)
    positions.append(writer.write(published=False))
    questions = await _pretend_write(node, monkeypatch, positions[1])
    await eventually(lambda: "own write" in caplog.text, what="the alarm")
    assert questions
    await node.expect_received(positions[:1])
    monkeypatch.undo()
    await node.expect_received(positions)


async def test_an_own_write_that_the_log_lost_is_recorded_as_a_rollback(
    node: Node, writer: LogWriter, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    await node.expect_received([writer.write()])
    monkeypatch.setattr(feed_module, "OWN_WRITE_TIMEOUT_SECONDS", 0.1)
    lost = Position(now_ms() + 60_000, 0, 2)
    await _pretend_write(node, monkeypatch, lost)
    await eventually(writer.recorded_rollbacks, what="the loss to be told")
    assert writer.recorded_rollbacks() == [(writer.positions()[0].cursor, lost.cursor)]
    assert writer.positions()[1] > lost
    assert f"lost {lost.cursor}" in caplog.text
    await node.expect_received(writer.positions())
    assert node.jumps == []


async def _pretend_write(node: Node, monkeypatch: pytest.MonkeyPatch, written: Position) -> list[Position]:
    """Pretend that this process wrote this position. Returns the list of the feed's questions."""
    asked: list[Position] = []

    def tell() -> Position:
        asked.append(written)
        return written

    monkeypatch.setattr(node.feed, "_last_written", tell)
    return asked


async def test_a_ready_feed_has_read_what_was_written_before_its_subscription(
    redis_url: str, writer: LogWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = Node(redis_url, 3600.0)
    listen = node.store.log.subscribe
    positions: list[Position] = []

    async def late(on_question: Callable[[bytes], None]) -> Subscription:
        subscription = await listen(on_question)
        positions.append(writer.write(published=False))
        return subscription

    monkeypatch.setattr(node.store.log, "subscribe", late)
    await node.open()
    try:
        assert node.received() == positions
    finally:
        await node.close()


async def test_the_canary_soon_finds_unpublished_entries(
    node: Node, writer: LogWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    checks = record_checks(node, monkeypatch)
    position = writer.write(published=False)
    await more_checks(checks, 4)
    assert node.received() == [position]


async def test_the_canary_soon_finds_lost_entries(
    node: Node, writer: LogWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    checks = record_checks(node, monkeypatch)
    positions = [writer.write() for _ in range(5)]
    await node.expect_received(positions)
    await more_checks(checks, 2)
    writer.lose(2, links=False)  # no new link that would look at more than the head
    await more_checks(checks, 4)
    assert [(to.n, reason) for to, reason, _ in node.jumps] == [(3, "rolled_back")]


async def test_a_feed_cancelled_as_its_link_ends_stops(redis_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    lives: list[Feed] = []

    async def failing(feed: Feed) -> None:
        lives.append(feed)
        try:
            await asyncio.Event().wait()
        finally:
            if len(lives) == 1:
                raise LinkLost("at the same moment")

    monkeypatch.setattr(Feed, "_run_canary", failing)
    node = Node(redis_url)
    await node.open()
    node.task.cancel()
    await eventually(lambda: node.task.done() or len(lives) > 1, what="an end, or another life")
    assert len(lives) == 1
    await node.close()
