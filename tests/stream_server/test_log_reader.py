"""Pages of the log: read once for all, behind the very entry that was named, or behind where that was lost."""

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from stream_server.errors import Unavailable
from stream_server.events.position import LOG_START, Position
from stream_server.feed.log_reader import LogReader
from stream_server.store import keys
from stream_server.store.log.page_sizer import PAGE_BYTES
from stream_server.store.redis.client import RedisClient
from tests.redis_process import RedisProcess
from tests.stream_server.feeding import Node, Pen
from tests.stream_server.store.replicas import run, servers
from tests.waiting import PATIENCE, eventually

HOUR_MS = 3_600_000

LARGE = msgspec.json.encode({"wire": {"x": "x" * 1_300_000}})
"""As large as what clients send may make an entry."""


async def test_pages_of_the_log_are_read_once_for_all_and_mark_what_is_gone(without_canary: Node, pen: Pen) -> None:
    """A thousand returning clients do not make a thousand reads; a post without its hash is gone."""
    await without_canary.hears([pen.write() for _ in range(20)])
    for number in range(2, 21, 2):
        pen.client.delete(keys.key_for("status", str(number)))
    reader = LogReader(without_canary.store.log)
    reads = [_reads(pen)]
    for callers in (1, 100):
        pages = await asyncio.gather(*(reader.read_page(LOG_START, 256) for _ in range(callers)))
        reads.append(_reads(pen))
    assert reads[2] - reads[1] == reads[1] - reads[0]
    assert all(page is pages[0] for page in pages)
    assert pages[0].is_contiguous
    assert [entry.is_deleted for entry in pages[0].entries] == [number % 2 == 0 for number in range(1, 21)]


async def test_a_page_asks_once_for_all_that_its_entries_show(without_canary: Node, pen: Pen) -> None:
    """Statuses, comments and originals that are gone are marked, in whatever entry they stand; junk shows nothing."""
    status, comment = {"id": "1", "uid": "7"}, {"id": "2", "uid": "8"}
    quote = {"id": "3", "uid": "8", "message": "q", "original": {"id": "4", "uid": "7"}}
    notice = {"source": {"id": "8"}, "status": status, "comment": {"id": "5", "uid": "8"}}
    wires: list[tuple[str, Any]] = [
        ("like", {"source": {"id": "8"}, "status": status}), ("comment", {"comment": comment, "status": status}),
        ("uncomment", {"comment": comment, "status": status}), ("post", {"status": quote}), ("post", {"junk": 1}),
        ("notification", {"notification": notice}), ("delete", {"status": {"id": "9", "uid": "7"}}),
    ]  # fmt: skip
    for kind, wire in wires:
        pen.write(msgspec.json.encode({"wire": wire}), kind=kind)
    for key in (keys.key_for("status", "1"), keys.key_for("status", "3"), keys.key_for("comment", "5")):
        pen.client.hset(key, "id", "x")
    reader = LogReader(without_canary.store.log)
    page = await reader.read_page(LOG_START, 256)
    assert [entry.is_deleted for entry in page.entries] == [False, True, False, False, False, False, False]
    assert [entry.original_is_deleted for entry in page.entries] == [False, False, False, True, False, False, False]
    pen.client.delete(keys.key_for("status", "1"))
    page = await reader.read_page(LOG_START, 256)
    assert [entry.is_deleted for entry in page.entries] == [True, True, True, False, False, True, False]


def _reads(pen: Pen) -> int:
    info: Any = pen.client.info("commandstats")
    return int(info["cmdstat_xrange"]["calls"])


async def test_a_page_from_a_lost_place_has_the_feed_look_first_and_begins_where_the_log_went_on(
    without_canary: Node, pen: Pen
) -> None:
    """Nobody has noticed yet, and the clock is an hour back: all that came since has ids below the lost one."""
    node = without_canary
    places = []
    for step in range(6):  # a millisecond of its own for each, or what comes since would go on in that of the last
        pen.ahead_ms = HOUR_MS + 10 * step
        places.append(pen.write())
    await node.hears(places)
    pen.lose(3, links=False)
    pen.ahead_ms = 0
    new = [pen.write(published=False) for _ in range(5)]
    assert new[-1] < places[-1]
    page = await node.reader.read_page(places[4], 256)
    assert [entry.position for entry in page.entries][:5] == new
    assert (page.is_contiguous, page.entries[5].kind, node.feed.rollbacks) == (False, "rollback", 1)
    assert node.jumps == [(places[2], "rolled_back", None)]
    await node.hears([*places[:3], *pen.places()[3:]])


async def test_a_page_from_a_place_that_is_there_asks_nobody(without_canary: Node, pen: Pen) -> None:
    """Neither one from the log's front, nor one from below what was trimmed."""
    places = [pen.write() for _ in range(10)]
    await without_canary.hears(places)
    pen.client.xtrim(keys.LOG, maxlen=6, approximate=False)
    for place, begin in (
        (places[5], places[6]),
        (places[3], places[4]),
        (places[1], places[4]),
        (LOG_START, places[4]),
    ):
        page = await without_canary.reader.read_page(place, 3)
        assert (page.entries[0].position, page.is_contiguous) == (begin, True)
    assert without_canary.reader.rechecks == 0


async def test_many_pages_from_lost_places_are_one_look_after_the_other(without_canary: Node, pen: Pen) -> None:
    """Whoever asks while somebody looks waits for one that began later, and no more are made."""
    node = without_canary
    places = [pen.write() for _ in range(30)]
    await node.hears(places)
    pen.lose(20)
    pages = await asyncio.gather(*(node.reader.read_page(place, 10) for place in places[10:29]))
    assert all(page.entries[0].position.n == 11 for page in pages)
    assert pen.told() == [(places[9].cursor, places[29].cursor)]


async def test_a_replica_that_has_less_is_passed_over(node: Node, pen: Pen, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is near answers from a log that stands still, or not at all: the page comes from the primary."""
    places = [pen.write() for _ in range(5)]
    await node.hears(places)
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
        page = await node.reader.read_page(places[1], 256)
        assert [entry.position for entry in page.entries] == places[2:]
        assert page.is_contiguous
    assert node.reader.rechecks == 2


async def test_a_page_of_large_entries_is_bounded_in_bytes(without_canary: Node, pen: Pen) -> None:
    """Also the first page of all; behind them small ones come many at once again, and none is left out."""
    large = [pen.write(LARGE, published=False) for _ in range(12)]
    small = [pen.write(published=False) for _ in range(600)]
    reader, pages, at = LogReader(without_canary.store.log), [], LOG_START
    while at != small[-1]:
        pages.append((await reader.read_page(at, 256)).entries)
        at = pages[-1][-1].position
    assert [entry.position for page in pages for entry in page] == large + small
    assert len(LARGE) < max(sum(len(entry.body) for entry in page) for page in pages) <= PAGE_BYTES
    assert max(map(len, pages)) == 256


async def test_what_a_replica_does_not_have_yet_is_not_taken_for_deleted(
    without_canary: Node, pen: Pen, redis_server: RedisProcess
) -> None:
    """It lags behind the whole page, which comes from the primary; what is deleted there is marked, and only that."""
    log = without_canary.store.log
    await without_canary.hears([pen.write() for _ in range(4)])
    pen.client.delete(keys.key_for("status", "2"))
    with servers(Path(redis_server._command[0]), 1) as (behind,):
        lagging = RedisClient(behind.url, PATIENCE)
        log.replica_router.current = lagging
        with behind.client() as its:
            its.hset(keys.key_for("status", "1"), "id", "1")
        page = await without_canary.reader.read_page(LOG_START, 256)
        assert "cmdstat_exists" in run(behind, "INFO", "commandstats"), "it was asked first"
        await lagging.close()
    assert without_canary.reader.rechecks == 1
    assert [entry.is_deleted for entry in page.entries] == [False, True, False, False]


async def test_while_the_loss_cannot_be_told_nobody_reads_on_from_it(
    without_canary: Node, pen: Pen, caplog: pytest.LogCaptureFixture
) -> None:
    """Redis accepts no writes: readers wait, the feed publishes nothing; then all goes on."""
    node = without_canary
    places = [pen.write() for _ in range(4)]
    await node.hears(places)
    pen.lose(2, links=False)
    pen.write(published=False)
    pen.client.config_set("min-replicas-to-write", 1)
    try:
        with pytest.raises(Unavailable):
            await node.reader.read_page(places[3], 10)
        assert node.jumps == []
        await eventually(lambda: "accepts no writes" in caplog.text, what="the feed to have tried, too")
        assert (node.hub.head, node.feed.is_ready) == (places[3], False)
    finally:
        pen.client.config_set("min-replicas-to-write", 0)
    await eventually(lambda: node.hub.head == pen.places()[-1], what="the new head")
    assert node.heard() == pen.places()
    assert (pen.told(), node.feed.rollbacks) == ([(places[1].cursor, places[3].cursor)], 1)
