"""How far back the log reaches: by age, by size, from the front only, and never to nothing."""

import asyncio
from typing import Any

import pytest

from stream_server.events.position import LOG_START
from stream_server.store import keys
from stream_server.store.idempotency import IdempotencyKey
from stream_server.store.log import retention
from stream_server.store.log.retention import LogSize, RetentionLimits
from stream_server.store.store import Store
from tests.redis_process import RedisProcess, binaries
from tests.stream_server.store.people import People
from tests.waiting import PATIENCE

pytestmark = pytest.mark.every_redis

UNBOUND = RetentionLimits(0, 0)
HOUR = 3600.0

A_NODE = 4096 + 512
"""Bytes of a node of Redis, about: so much more than asked for may stay, or one entry more where one is larger."""


class Past:
    """Writes entries of the past, as if they had been there for long, and looks at what is left of them."""

    def __init__(self, raw: Any) -> None:
        self.raw = raw
        self.n = 0

    def write(self, count: int, *, hours: float, size: int = 300) -> None:
        """So many entries, the first of them so long ago, a millisecond apart."""
        seconds, micros = self.raw.time()
        first = seconds * 1000 + micros // 1000 - round(hours * 3_600_000)
        with self.raw.pipeline(transaction=False) as pipe:
            for ms in range(first, first + count):
                self.n += 1
                body = b'{"wire":{"kind":"post"},"x":"%b"}' % (b"x" * size)
                pipe.xadd(keys.LOG, {"n": self.n, "k": "post", "a": "public", "e": body}, id=f"{ms}-0")
            pipe.execute()

    def left(self) -> list[int]:
        """The numbers of the entries that are left."""
        return [int(fields[b"n"]) for _, fields in self.raw.xrange(keys.LOG)]

    def weight(self) -> int:
        """Bytes of the log, by Redis."""
        return int(self.raw.memory_usage(keys.LOG, samples=0) or 0)


@pytest.fixture
def past(raw: Any) -> Past:
    """An empty past."""
    return Past(raw)


async def turn(store: Store, past: Past, bounds: RetentionLimits) -> LogSize:
    """One turn that weighs for itself; what it tells is what is there, and the log still ends where it did."""
    past.raw.delete(keys.key_for("weight"))
    before = past.left()
    found = await store.retention.trim(bounds)
    left = past.left()
    assert left == before[len(before) - len(left) :], "only the front may go"
    assert (found.entries, found.trimmed) == (len(left), len(before) - len(left))
    assert found.bytes == past.weight()
    return found


async def test_what_is_too_old_leaves_the_log_and_nothing_else(store: Store, past: Past) -> None:
    """But for one node of Redis, which goes when all of it is too old."""
    past.write(1000, hours=3)
    past.write(500, hours=1)
    found = await turn(store, past, RetentionLimits(2 * HOUR, 0))
    assert 500 <= found.entries < 600
    assert HOUR < found.age_seconds <= 3 * HOUR
    assert (await turn(store, past, RetentionLimits(2 * HOUR, 0))).trimmed == 0
    floor = await store.log.floor()
    assert floor is not None
    assert floor.n == past.left()[0]


async def test_without_bounds_nothing_leaves(store: Store, past: Past) -> None:
    """Zero is no bound; the extent is told all the same."""
    past.write(1000, hours=24 * 365)
    found = await turn(store, past, UNBOUND)
    assert (found.entries, found.trimmed) == (1000, 0)
    assert found.age_seconds == pytest.approx(24 * 365 * HOUR, rel=0.01)


async def test_the_newest_entry_stays_however_old_it_is(store: Store, past: Past) -> None:
    """Cursors at the head name it, and the hub compares itself with it."""
    past.write(1000, hours=3)
    head = await store.log.head()
    found = await turn(store, past, RetentionLimits(0.001, 1))
    assert 1 <= found.entries <= 100
    assert await store.log.head() == head == (await store.log.look_up(head.ms, head.seq)).head
    past.raw.xtrim(keys.LOG, maxlen=1, approximate=False)
    assert (await turn(store, past, RetentionLimits(0.001, 1))).entries == 1


async def test_an_empty_log_has_nothing_to_lose(store: Store, past: Past) -> None:
    """No log is no error."""
    assert await turn(store, past, RetentionLimits(HOUR, 10_000)) == LogSize()


async def test_what_is_too_much_leaves_the_log(store: Store, past: Past) -> None:
    """It takes no more than it may, and hardly less: what would have fitted stays."""
    past.write(5000, hours=1)
    whole = past.weight()
    assert (await turn(store, past, RetentionLimits(0, whole))).trimmed == 0
    found = await turn(store, past, RetentionLimits(0, whole // 2))
    assert whole * 0.4 < found.bytes < whole // 2 + A_NODE


@pytest.mark.parametrize("small_first", [True, False])
async def test_entries_of_unequal_size_cost_no_more_than_they_must(
    store: Store, past: Past, *, small_first: bool
) -> None:
    """A few of 100 KB weigh as much as thousands: the share of the entries alone would take too few, or too many."""
    sizes = [(4000, 100), (40, 100_000)]
    for count, size in sizes if small_first else reversed(sizes):
        past.write(count, hours=2 if past.n == 0 else 1, size=size)
    found = await turn(store, past, RetentionLimits(0, 2_200_000))
    assert found.bytes < 2_200_000 + 100_000 + A_NODE
    if small_first:
        assert 0 < found.entries < 40
    else:
        assert found.entries >= 3900  # the first step, which takes a hundred, is enough
    assert (await turn(store, past, RetentionLimits(0, 2_200_000))).trimmed == 0


async def test_long_nodes_are_taken_too(past: Past, store: Store) -> None:
    """A Redis that is set to put more into a node than usual: a step that took none is followed by a longer one."""
    kept = past.raw.config_get("stream-node-max-*")
    past.raw.config_set("stream-node-max-entries", 2000)
    past.raw.config_set("stream-node-max-bytes", 0)
    try:
        past.write(9000, hours=1, size=20)
        found = await turn(store, past, RetentionLimits(0, past.weight() // 2))
        assert 2000 <= found.entries <= 5000
    finally:
        for name, value in kept.items():
            past.raw.config_set(name, value)


async def test_a_long_log_is_taken_in_slices(store: Store, past: Past, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each call of the script takes a bounded number of entries, so that Redis is never held for long."""
    monkeypatch.setattr(retention, "TRIM_SLICE_ENTRIES", 200)
    past.raw.config_resetstat()
    past.write(3000, hours=2)
    found = await turn(store, past, RetentionLimits(HOUR, 0))
    assert found.trimmed > 2800
    assert past.raw.info("commandstats")["cmdstat_xtrim"]["calls"] > 2800 / 200


async def test_many_at_once_harm_nothing(store: Store, past: Past, people: People) -> None:
    """Twenty turns at a time, while entries are written: all within the bounds, none lost at the other end."""
    past.write(3000, hours=2)
    seconds, _ = past.raw.time()
    past.raw.hset(keys.META, mapping={"ms": seconds * 1000, "seq": 0, "n": past.n})
    ann = await people.user("Ann")
    bounds = RetentionLimits(HOUR, 10_000_000)
    await asyncio.gather(
        *(store.retention.trim(bounds) for _ in range(20)), *(people.status(ann, str(i)) for i in range(50))
    )
    left = past.left()
    assert left[-50:] == list(range(3001, 3051))
    assert len(left) <= 50 + 100
    assert (await turn(store, past, bounds)).trimmed == 0


async def test_the_weight_is_asked_for_once_by_all(store: Store, past: Past) -> None:
    """Whoever comes a moment later takes what was found, and takes nothing off by what may be outdated."""
    past.write(3000, hours=1)
    weight = past.weight()
    assert (await store.retention.trim(UNBOUND)).bytes == weight
    past.raw.config_resetstat()
    found = await store.retention.trim(RetentionLimits(0, weight // 2))
    assert (found.bytes, found.trimmed, found.entries) == (weight, 0, 3000)
    stats = past.raw.info("commandstats")
    assert "cmdstat_memory" not in stats
    assert "cmdstat_memory|usage" not in stats
    assert 0 < past.raw.pttl(keys.key_for("weight")) <= retention.SIZE_CACHE_MS


async def test_a_full_redis_is_relieved(redis_url: str, store: Store, past: Past) -> None:
    """With no memory left nothing can be written, and the log is trimmed all the same: that is what makes room."""
    past.write(5000, hours=2)
    full = past.raw.info("memory")["used_memory"]
    past.raw.config_set("maxmemory", full // 2)
    try:
        with pytest.raises(Exception, match="accepts no writes"):
            await store.users.create("Ann", "Ann", "a@example.org", "x", IdempotencyKey.generate())
        found = await store.retention.trim(RetentionLimits(HOUR, 100_000))
        assert found.trimmed > 4800
        assert found.bytes < 100_000 + A_NODE
    finally:
        past.raw.config_set("maxmemory", 0)


@pytest.mark.parametrize("binary", sorted(binaries()))
async def test_a_trimmed_log_is_trimmed_after_a_restart(binary: str) -> None:
    """What Redis writes down of an approximate trim is what it did: the log is the same from the file."""
    with RedisProcess(binaries()[binary], "--appendonly", "yes", "--appendfsync", "always") as server:
        past = Past(server.client())
        past.write(2000, hours=2)
        store = Store(server.url, timeout_seconds=PATIENCE)
        await store.open()
        await store.retention.trim(RetentionLimits(HOUR, 0))
        left = past.left()
        assert 0 < len(left) < 200
        await store.close()
        server.kill()
        server.start()
        assert Past(server.client()).left() == left


async def test_readers_see_the_real_floor(store: Store, past: Past) -> None:
    """What is read from the start begins at the first entry that is left, and numbers go on."""
    past.write(2000, hours=2)
    await store.retention.trim(RetentionLimits(HOUR, 0))
    places = [entry.position.n for entry in await store.log.read(LOG_START, 5000)]
    assert places == past.left()
    assert places[-1] == 2000
