"""Retention of the log: by age, by size, oldest entries first, and never the newest entry."""

import asyncio
import itertools
import time
from collections.abc import Sequence
from typing import Any

import pytest

from stream_server.store import keys
from stream_server.store.log import retention
from stream_server.store.log.retention import LogSize, RetentionLimits
from stream_server.store.redis.lua_library import LuaLibrary, read_library
from stream_server.store.redis.script_settings import SizeLimits, lua_constants
from stream_server.store.store import Store
from tests.redis_process import RedisProcess, binaries
from tests.stream_server.store.people import People, new_key
from tests.tiers import each_engine
from tests.waiting import PATIENCE

pytestmark = pytest.mark.every_redis

UNBOUND = RetentionLimits(0, 0)
HOUR = 3600.0

A_NODE = 4096 + 512
"""Bytes of a node of the Redis stream, about. A trim may leave so much above its limit, or one larger entry."""


PAST = """
function run.past_entry(body, ms, n)
  log_bytes = tonumber(redis.call('HGET', KEY.meta, 'bytes') or '0')
  return append_entry('post', PUBLIC, body, tonumber(ms), 0, tonumber(n))
end
"""
_LIBRARY = LuaLibrary([*read_library().values(), PAST], lua_constants(SizeLimits()))


class Past:
    """Writes entries with old ids, and reads what is left of them."""

    def __init__(self, raw: Any) -> None:
        self.raw = raw
        self.n = 0
        self.next_ms = 0

    def write(self, count: int, *, hours: float, sizes: Sequence[int] = (300,)) -> None:
        """Write ``count`` entries, one a millisecond, with bodies of about ``sizes`` in turn; the first ``hours`` old.

        They are written as all writes append entries.
        """
        seconds, micros = self.raw.time()
        first = max(seconds * 1000 + micros // 1000 - round(hours * 3_600_000), self.next_ms)
        self.next_ms = first + count
        sha1 = self.raw.script_load(_LIBRARY.script("past_entry"))
        with self.raw.pipeline(transaction=False) as pipe:
            for ms, size in zip(range(first, first + count), itertools.cycle(sizes), strict=False):
                self.n += 1
                body = b'{"wire":{"kind":"post"},"x":"%b"}' % (b"x" * size)
                pipe.evalsha(sha1, 1, keys.LOG, "-", 0, body, ms, self.n)
            pipe.execute()

    def left(self) -> list[int]:
        return [int(fields[b"n"]) for _, fields in self.raw.xrange(keys.LOG)]

    def bytes(self) -> int:
        """Return the memory of the log. Redis 7 guesses 248 bytes for each node of the tree, which are about 40."""
        guessed = int(self.raw.memory_usage(keys.LOG, samples=0) or 0)
        if not guessed or "valkey_version" in self.raw.info("server"):
            return guessed
        tree = self.raw.xinfo_stream(keys.LOG)
        return guessed - 248 * int(tree["radix-tree-nodes"]) + 80 * int(tree["radix-tree-keys"])


@pytest.fixture
def past(raw: Any) -> Past:
    return Past(raw)


async def trim(store: Store, past: Past, bounds: RetentionLimits) -> LogSize:
    """Trim once. Checks the result against Redis, and that only the front is gone."""
    before = past.left()
    found = await store.retention.trim(bounds)
    left = past.left()
    assert left == before[len(before) - len(left) :], "only the front may go"
    assert (found.entries, found.trimmed) == (len(left), len(before) - len(left))
    if found.entries > 100:  # the last node of the stream has room that this does not count
        assert found.bytes == pytest.approx(past.bytes(), rel=0.1)
    return found


async def test_old_entries_are_trimmed_up_to_one_node(store: Store, past: Past) -> None:
    began = time.monotonic()
    past.write(1000, hours=3)
    past.write(500, hours=1)
    found = await trim(store, past, RetentionLimits(2 * HOUR, 0))
    assert 500 <= found.entries < 600
    assert HOUR < found.age_seconds <= 3 * HOUR + time.monotonic() - began
    assert (await trim(store, past, RetentionLimits(2 * HOUR, 0))).trimmed == 0
    floor = await store.log.floor()
    assert floor is not None
    assert floor.n == past.left()[0]


async def test_zero_means_no_limit(store: Store, past: Past) -> None:
    past.write(1000, hours=24 * 365)
    found = await trim(store, past, UNBOUND)
    assert (found.entries, found.trimmed) == (1000, 0)
    assert found.age_seconds == pytest.approx(24 * 365 * HOUR, rel=0.01)


async def test_the_newest_entry_stays_at_any_age(store: Store, past: Past) -> None:
    past.write(1000, hours=3)
    head = await store.log.head()
    found = await trim(store, past, RetentionLimits(0.001, 1))
    assert 1 <= found.entries <= 100
    assert await store.log.head() == head == (await store.log.look_up(head.ms, head.seq)).head
    past.raw.xtrim(keys.LOG, maxlen=1, approximate=False)
    assert (await trim(store, past, RetentionLimits(0.001, 1))).entries == 1


async def test_an_empty_log_is_no_error(store: Store, past: Past) -> None:
    assert await trim(store, past, RetentionLimits(HOUR, 10_000)) == LogSize(kept_seconds=HOUR)


async def test_a_log_over_its_size_is_trimmed_to_it_and_hardly_below(store: Store, past: Past) -> None:
    past.write(5000, hours=1)
    full = past.bytes()
    nearly = await trim(store, past, RetentionLimits(0, full * 105 // 100))
    assert nearly.trimmed == 0
    assert nearly.kept_seconds == pytest.approx(1.05 * nearly.age_seconds, rel=0.01)
    for seconds, kept in ((0, None), (99 * HOUR, 99 * HOUR)):  # its growth tells nothing yet
        assert (await trim(store, past, RetentionLimits(seconds, full * 11))).kept_seconds == kept
    found = await trim(store, past, RetentionLimits(0, full // 2))
    assert full * 0.4 < found.bytes < full // 2 + A_NODE


@pytest.mark.parametrize("max_bytes", [0, 2**30])
async def test_the_log_takes_at_most_half_of_a_small_redis(store: Store, past: Past, max_bytes: int) -> None:
    past.write(5000, hours=1)
    full = past.bytes()
    past.raw.config_set("maxmemory", full)
    try:
        found = await store.retention.trim(RetentionLimits(0, max_bytes))
    finally:
        past.raw.config_set("maxmemory", 0)
    assert full * 0.4 < found.bytes < full // 2 + A_NODE


@pytest.mark.parametrize("small_first", [True, False])
async def test_entries_of_unequal_size_are_trimmed_by_their_bytes(
    store: Store, past: Past, *, small_first: bool
) -> None:
    sizes = [(4000, 100), (40, 100_000)]
    for count, size in sizes if small_first else reversed(sizes):
        past.write(count, hours=2 if past.n == 0 else 1, sizes=(size,))
    found = await trim(store, past, RetentionLimits(0, 2_200_000))
    assert found.bytes < 2_200_000 + 100_000 + A_NODE
    if small_first:
        assert 0 < found.entries < 40
    else:
        assert found.entries >= 3900  # the first step, which takes a hundred, is enough
    assert (await trim(store, past, RetentionLimits(0, 2_200_000))).trimmed == 0


async def test_longer_nodes_are_trimmed_by_longer_steps(past: Past, store: Store) -> None:
    kept = past.raw.config_get("stream-node-max-*")
    past.raw.config_set("stream-node-max-entries", 2000)
    past.raw.config_set("stream-node-max-bytes", 0)
    try:
        past.write(9000, hours=1, sizes=(20,))
        found = await trim(store, past, RetentionLimits(0, past.bytes() // 2))
        assert 2000 <= found.entries <= 5000
    finally:
        for name, value in kept.items():
            past.raw.config_set(name, value)


async def test_a_long_log_is_trimmed_in_slices(store: Store, past: Past, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention, "TRIM_SLICE_ENTRIES", 200)
    past.raw.config_resetstat()
    past.write(3000, hours=2)
    found = await trim(store, past, RetentionLimits(HOUR, 0))
    assert found.trimmed > 2800
    assert past.raw.info("commandstats")["cmdstat_xtrim"]["calls"] > 2800 / 200


async def test_concurrent_trims_and_writes_keep_new_entries(store: Store, past: Past, people: People) -> None:
    past.write(3000, hours=2)
    seconds, _ = past.raw.time()
    past.raw.hset(keys.META, mapping={"ms": seconds * 1000, "seq": 0})
    ann = await people.user("Ann")
    bounds = RetentionLimits(HOUR, 10_000_000)
    await asyncio.gather(
        *(store.retention.trim(bounds) for _ in range(20)), *(people.status(ann, str(i)) for i in range(50))
    )
    left = past.left()
    assert left[-50:] == list(range(3001, 3051))
    assert len(left) <= 50 + 100
    assert (await trim(store, past, bounds)).trimmed == 0


SHAPES: dict[str, tuple[int, ...]] = {
    "tiny": (20,),
    "usual": tuple(range(200, 800, 7)),
    "one_size": (420,),
    "unequal": tuple(range(100, 3000, 37)),
    "one_a_node": (2100,),
    "large": (5200,),
    "a_large_one_of_ten": (300,) * 9 + (5000,),
    "huge": (100_000,),
}


@pytest.mark.parametrize("shape", SHAPES)
async def test_the_size_is_about_what_redis_says(store: Store, past: Past, shape: str) -> None:
    sizes = SHAPES[shape]
    past.write(2_000 if max(sizes) < 50_000 else 200, hours=1, sizes=sizes)
    found = await store.retention.trim(UNBOUND)
    assert found.bytes == pytest.approx(past.bytes(), rel=0.1)
    assert (await store.retention.trim(UNBOUND)).bytes == found.bytes


async def test_no_command_measures_the_log_by_reading_it(store: Store, past: Past) -> None:
    past.write(3000, hours=1)
    past.raw.config_resetstat()
    found = await store.retention.trim(UNBOUND)
    await store.retention.trim(RetentionLimits(0, found.bytes // 2))
    assert not [name for name in past.raw.info("commandstats") if name.startswith("cmdstat_memory")]


@pytest.mark.parametrize(("old", "new"), [(3000, 100), (100, 3000)])
async def test_a_log_of_unequal_times_is_trimmed_to_its_limit(store: Store, past: Past, old: int, new: int) -> None:
    past.write(3000, hours=40, sizes=(old,))
    past.write(2000, hours=1, sizes=(new,))
    found = await store.retention.trim(UNBOUND)
    assert found.bytes == pytest.approx(past.bytes(), rel=0.15)
    found = await store.retention.trim(RetentionLimits(0, 3_000_000))
    assert past.bytes() == pytest.approx(3_000_000, rel=0.15)


async def test_a_log_without_a_mark_has_a_size_and_a_limit(store: Store, past: Past) -> None:
    """Its entries are smaller than one mark together, as those of a new site."""
    past.write(150, hours=1)
    assert past.raw.zcard(keys.key_for("sizes")) == 0
    found = await store.retention.trim(UNBOUND)
    assert found.bytes == pytest.approx(past.bytes(), rel=0.3)
    trimmed = await store.retention.trim(RetentionLimits(0, found.bytes // 2))
    assert 0 < trimmed.entries < 110
    assert trimmed.bytes < found.bytes


async def test_a_log_of_version_1_0_has_a_size_and_a_limit(store: Store, past: Past, people: People) -> None:
    """That version did not count the bytes of entries. Without a size, an upgraded log could fill Redis."""
    past.write(4000, hours=1)
    past.raw.hdel(keys.META, "bytes")
    past.raw.delete(keys.key_for("sizes"))
    for _ in range(2):  # before the first write of this version, and after it
        found = await store.retention.trim(UNBOUND)
        assert found.bytes == pytest.approx(4000 * 512, rel=0.3)
        await people.users(1)
    trimmed = await store.retention.trim(RetentionLimits(0, found.bytes // 2))
    assert trimmed.entries == pytest.approx(2000, rel=0.3)


async def test_marks_of_trimmed_entries_leave(store: Store, past: Past) -> None:
    """A mark for 64 KiB of entries, or for each larger entry. The last one before the log stays."""
    past.write(5000, hours=1)
    marks = past.raw.zrange(keys.key_for("sizes"), 0, -1, withscores=True)
    assert len(marks) == pytest.approx(5000 * 360 / 65536, rel=0.1)
    await trim(store, past, RetentionLimits(0, 400_000))
    left = past.raw.zrange(keys.key_for("sizes"), 0, -1, withscores=True)
    assert left == marks[-len(left) :]
    assert left[0][1] < past.left()[0] <= left[1][1]


async def test_a_full_redis_is_trimmed(redis_url: str, store: Store, past: Past) -> None:
    past.write(5000, hours=2)
    full = past.raw.info("memory")["used_memory"]
    past.raw.config_set("maxmemory", full // 2)
    try:
        with pytest.raises(Exception, match="accepts no writes"):
            await store.users.create("Ann", "Ann", "a@example.org", "x", new_key())
        found = await store.retention.trim(RetentionLimits(HOUR, 100_000))
        assert found.trimmed > 4800
        assert found.bytes < 100_000 + A_NODE
    finally:
        past.raw.config_set("maxmemory", 0)


@pytest.mark.parametrize("binary", each_engine())
async def test_a_trim_survives_a_restart(binary: str) -> None:
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
