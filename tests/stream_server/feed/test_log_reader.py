"""Pages of the log: read once for all callers, and checked for deleted and lost entries."""

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from stream_server.errors import Unavailable
from stream_server.events.position import LOG_START, Position
from stream_server.feed.log_reader import LogReader
from stream_server.hub.messages import NOTHING_LOST, ROLLED_BACK, TRIMMED
from stream_server.store import keys
from stream_server.store.log.event_log import PAGE_BYTES
from stream_server.store.redis.client import RedisClient
from tests.redis_process import RedisProcess
from tests.stream_server.feed.node import LogWriter, Node
from tests.stream_server.store.replicas import run, servers
from tests.waiting import PATIENCE, eventually

HOUR_MS = 3_600_000

LARGE = msgspec.json.encode({"wire": {"x": "x" * 1_300_000}})
"""As large as what clients send may make an entry."""


async def test_a_page_of_the_log_is_read_once_for_all_callers_and_marks_deleted_entries(
    without_canary: Node, writer: LogWriter
) -> None:
    await without_canary.expect_received([writer.write() for _ in range(20)])
    for number in range(2, 21, 2):
        writer.client.delete(keys.key_for("status", str(number)))
    reader = LogReader(without_canary.store.log)
    reads = [_reads(writer)]
    for callers in (1, 100):
        pages = await asyncio.gather(*(reader.read_page(LOG_START, 256) for _ in range(callers)))
        reads.append(_reads(writer))
    assert reads[2] - reads[1] == reads[1] - reads[0]
    assert all(page is pages[0] for page in pages)
    assert pages[0].loss == NOTHING_LOST
    assert [entry.is_deleted for entry in pages[0].entries] == [number % 2 == 0 for number in range(1, 21)]


async def test_a_page_marks_deleted_statuses_comments_and_originals(without_canary: Node, writer: LogWriter) -> None:
    status, comment = {"id": "1", "uid": "7"}, {"id": "2", "uid": "8"}
    quote = {"id": "3", "uid": "8", "message": "q", "original": {"id": "4", "uid": "7"}}
    notice = {"source": {"id": "8"}, "status": status, "comment": {"id": "5", "uid": "8"}}
    wires: list[tuple[str, Any]] = [
        ("like", {"source": {"id": "8"}, "status": status}), ("comment", {"comment": comment, "status": status}),
        ("uncomment", {"comment": comment, "status": status}), ("post", {"status": quote}), ("post", {"junk": 1}),
        ("notification", {"notification": notice}), ("delete", {"status": {"id": "9", "uid": "7"}}),
    ]  # fmt: skip
    for kind, wire in wires:
        writer.write(msgspec.json.encode({"wire": wire}), kind=kind)
    for key in (keys.key_for("status", "1"), keys.key_for("status", "3"), keys.key_for("comment", "5")):
        writer.client.hset(key, "id", "x")
    reader = LogReader(without_canary.store.log)
    page = await reader.read_page(LOG_START, 256)
    assert [entry.is_deleted for entry in page.entries] == [False, True, False, False, False, False, False]
    assert [entry.original_is_deleted for entry in page.entries] == [False, False, False, True, False, False, False]
    writer.client.delete(keys.key_for("status", "1"))
    page = await reader.read_page(LOG_START, 256)
    assert [entry.is_deleted for entry in page.entries] == [True, True, True, False, False, True, False]


def _reads(writer: LogWriter) -> int:
    info: Any = writer.client.info("commandstats")
    return int(info["cmdstat_xrange"]["calls"])


async def test_a_page_after_a_lost_position_first_records_the_rollback(without_canary: Node, writer: LogWriter) -> None:
    """The clock is an hour back, so all new entries have ids below the lost position."""
    node = without_canary
    positions = []
    for step in range(6):  # a millisecond of its own for each, or what comes since would go on in that of the last
        writer.ahead_ms = HOUR_MS + 10 * step
        positions.append(writer.write())
    await node.expect_received(positions)
    writer.lose(3, links=False)
    writer.ahead_ms = 0
    new = [writer.write(published=False) for _ in range(5)]
    assert new[-1] < positions[-1]
    page = await node.reader.read_page(positions[4], 256)
    assert [entry.position for entry in page.entries][:5] == new
    assert (page.loss, page.entries[5].kind, node.feed.rollbacks) == (ROLLED_BACK, "rollback", 1)
    assert node.jumps == [(positions[2], "rolled_back", None)]
    await node.expect_received([*positions[:3], *writer.positions()[3:]])


async def test_a_page_after_a_position_on_the_log_needs_no_recheck(without_canary: Node, writer: LogWriter) -> None:
    positions = [writer.write() for _ in range(10)]
    await without_canary.expect_received(positions)
    writer.client.xtrim(keys.LOG, maxlen=6, approximate=False)
    for position, begin, loss in (
        (positions[5], positions[6], NOTHING_LOST),
        (positions[3], positions[4], TRIMMED),
        (positions[1], positions[4], TRIMMED),
        (LOG_START, positions[4], TRIMMED),
    ):
        page = await without_canary.reader.read_page(position, 3)
        assert (page.entries[0].position, page.loss) == (begin, loss)
    assert without_canary.rechecks == 0


async def test_a_replica_that_lags_or_fails_is_replaced_by_the_primary(
    node: Node, writer: LogWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    positions = [writer.write() for _ in range(5)]
    await node.expect_received(positions)
    read = node.store.log.read
    away = False

    async def behind(after: Position, count: int, *, from_primary: bool = False) -> Any:
        if not from_primary and away:
            raise Unavailable("not near", retry_after=1)
        entries = await read(after, count, from_primary=from_primary)
        return [entry for entry in entries if from_primary or entry.position.n != 3]

    monkeypatch.setattr(node.store.log, "read", behind)
    for silent in (False, True):
        away = silent
        page = await node.reader.read_page(positions[1], 256)
        assert [entry.position for entry in page.entries] == positions[2:]
        assert page.loss == NOTHING_LOST
    assert node.rechecks == 2


async def test_a_page_of_large_entries_is_bounded_in_bytes(without_canary: Node, writer: LogWriter) -> None:
    large = [writer.write(LARGE, published=False) for _ in range(12)]
    small = [writer.write(published=False) for _ in range(600)]
    reader, pages, at = LogReader(without_canary.store.log), [], LOG_START
    while at != small[-1]:
        pages.append((await reader.read_page(at, 256)).entries)
        at = pages[-1][-1].position
    assert [entry.position for page in pages for entry in page] == large + small
    assert len(LARGE) < max(sum(len(entry.body) for entry in page) for page in pages) <= PAGE_BYTES
    assert max(map(len, pages)) == 256


async def test_an_entry_that_a_replica_does_not_have_yet_is_not_marked_deleted(
    without_canary: Node, writer: LogWriter, redis_server: RedisProcess
) -> None:
    log = without_canary.store.log
    await without_canary.expect_received([writer.write() for _ in range(4)])
    writer.client.delete(keys.key_for("status", "2"))
    with servers(Path(redis_server._command[0]), 1) as (behind,):
        lagging = RedisClient(behind.url, PATIENCE)
        log.replica_router.current = lagging
        with behind.client() as its:
            its.hset(keys.key_for("status", "1"), "id", "1")
        page = await without_canary.reader.read_page(LOG_START, 256)
        assert "cmdstat_exists" in run(behind, "INFO", "commandstats"), "it was asked first"
        await lagging.close()
    assert without_canary.rechecks == 1
    assert [entry.is_deleted for entry in page.entries] == [False, True, False, False]


async def test_while_a_rollback_cannot_be_recorded_no_page_is_read(
    without_canary: Node, writer: LogWriter, caplog: pytest.LogCaptureFixture
) -> None:
    node = without_canary
    positions = [writer.write() for _ in range(4)]
    await node.expect_received(positions)
    writer.lose(2, links=False)
    writer.write(published=False)
    writer.client.config_set("min-replicas-to-write", 1)
    try:
        with pytest.raises(Unavailable):
            await node.reader.read_page(positions[3], 10)
        assert node.jumps == []
        await eventually(lambda: "Not enough good replicas" in caplog.text, what="the feed to have tried, too")
        assert (node.hub.head, node.feed.is_ready) == (positions[3], False)
    finally:
        writer.client.config_set("min-replicas-to-write", 0)
    await eventually(lambda: node.hub.head == writer.positions()[-1], what="the new head")
    assert node.received() == writer.positions()
    assert (writer.recorded_rollbacks(), node.feed.rollbacks) == ([(positions[1].cursor, positions[3].cursor)], 1)
