"""The log: contiguous, in order, and equal to what Redis publishes."""

import asyncio
import itertools
from contextlib import closing

import pytest
import redis

from stream_server.events.entry import parse_published
from stream_server.events.position import LOG_START
from stream_server.store.log import event_log
from stream_server.store.log.event_log import LogLookup
from stream_server.store.redis.script_settings import SizeLimits
from stream_server.store.store import Store
from tests.redis_process import RedisProcess
from tests.stream_server.store.people import People, new_key, open_store
from tests.waiting import eventually

pytestmark = pytest.mark.every_redis


async def test_an_empty_log(store: Store, people: People) -> None:
    await people.user("Ann")
    assert await store.log.head() == LOG_START
    assert await store.log.floor() is None
    assert await store.log.read(LOG_START, 10) == []
    assert await store.log.look_up(5, 0) == LogLookup(LOG_START, None, None, None)
    assert store.last_written == LOG_START


async def test_reading_is_exclusive_and_bounded(store: Store, people: People) -> None:
    ann = await people.user("Ann")
    for _ in range(6):
        await people.status(ann)
    entries = await store.log.read(LOG_START, 10)
    positions = [entry.position for entry in entries]
    assert [position.n for position in positions] == [1, 2, 3, 4, 5, 6]
    assert (await store.log.head(), await store.log.floor()) == (positions[-1], positions[0])
    assert store.last_written == positions[-1]
    assert [entry.position for entry in await store.log.read(positions[1], 2)] == positions[2:4]
    assert [entry.position for entry in await store.log.read(positions[1], 9, up_to=positions[3])] == positions[2:4]
    assert [entry.position for entry in await store.log.read(positions[4].entry_id, 9)] == positions[5:]


async def test_position_before_posts_counts_public_posts_across_pages(
    store: Store, people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert await store.log.position_before_posts(3, LOG_START) == LOG_START
    ann, bob = await people.user("Ann"), await people.user("Bob")
    for number in range(4):
        status = await people.status(ann, f"@Bob {number}")  # which leaves a notification, too
        await store.likes.like(bob, status["id"], new_key())
    entries = await store.log.read(LOG_START, 100)
    posts = [entry.position for entry in entries if entry.kind == "post"]
    head = entries[-1].position
    for page in (1, 3, 1000):
        monkeypatch.setattr(event_log, "PAGE_ENTRIES", page)
        for count in range(1, 5):
            behind = [entry for entry in entries if entry.position > await store.log.position_before_posts(count, head)]
            assert [entry.position for entry in behind if entry.kind == "post"] == posts[-count:]
            assert behind[0].position == posts[-count]
        assert await store.log.position_before_posts(5, head) == LOG_START
        assert (await store.log.read(await store.log.position_before_posts(1, posts[1]), 1))[0].position == posts[1]


async def test_look_up_gives_an_entry_its_previous_and_both_ends(store: Store, people: People) -> None:
    ann = await people.user("Ann")
    for _ in range(3):
        await people.status(ann)
    first, second, third = [entry.position for entry in await store.log.read(LOG_START, 10)]
    located = await store.log.look_up(second.ms, second.seq)
    assert (located.head, located.floor) == (third, first)
    assert located.entry is not None
    assert located.entry.position == second
    assert located.previous == first
    assert (await store.log.look_up(second.ms, 4095)).entry is None


async def test_a_look_up_below_the_log_does_not_walk_through_it(
    store: Store, people: People, redis_server: RedisProcess
) -> None:
    """Redis would compare each entry of the log with a place before the first one. So it is asked for the head only."""
    ann = await people.user("Ann")
    for _ in range(2):
        await people.status(ann)
    first, second = [entry.position for entry in await store.log.read(LOG_START, 10)]
    for place, previous, searches in ((first, None, 1), (second, first, 2)):
        with redis_server.client() as client:
            client.config_resetstat()
            assert (await store.log.look_up(place.ms, place.seq)).previous == previous
            assert client.info("commandstats")["cmdstat_xrevrange"]["calls"] == searches


async def test_numbers_are_contiguous_under_concurrent_writers(store: Store, people: People) -> None:
    users = await people.users(20)

    async def write(uid: str, other: str) -> list[str]:
        ids = [(await people.status(uid, f"{uid} {i}"))["id"] for i in range(10)]
        await store.follows.follow(uid, other, new_key())
        await store.statuses.delete(uid, ids[0], new_key())
        return ids

    made = await asyncio.gather(*(write(a, b) for a, b in itertools.pairwise([*users, users[0]])))
    positions = [entry.position for entry in await store.log.read(LOG_START, 1000)]
    assert [position.n for position in positions] == list(range(1, 20 * 13 + 1))  # a follow also makes a notification
    assert positions == sorted(positions)
    ids = [status_id for one in made for status_id in one]
    assert len(set(ids)) == 200
    assert all(one == sorted(one, key=int) for one in made)


async def test_ids_rise_and_fit_53_bits_while_the_clock_is_behind(
    store: Store, people: People, raw: "redis.Redis"
) -> None:
    ann = await people.user("Ann")
    (seconds, _micros) = raw.time()
    ahead = (seconds + 3600) * 1000
    raw.hset("{core}:meta", mapping={"ms": ahead, "seq": 4093})
    ids = [int((await people.status(ann))["id"]) for _ in range(4)]
    bob = int(await people.user("Bob"))
    positions = [entry.position for entry in await store.log.read(LOG_START, 10)]
    assert [(p.ms - ahead, p.seq) for p in positions] == [(0, 4094), (0, 4095), (1, 0), (1, 1)]
    assert [*ids, bob] == sorted({*ids, bob})
    assert all(status_id == position.status_number < 2**53 for status_id, position in zip(ids, positions, strict=True))


async def test_published_messages_equal_the_log_entries(store: Store, people: People) -> None:
    ann, bob = await people.users(2)
    received: list[bytes] = []
    with closing(await store.log.subscribe(lambda _: None)) as subscription:
        listening = asyncio.create_task(subscription.deliver(received.append))
        first = await people.status(ann, "zwei\nZeilen")
        await store.follows.follow(ann, bob, new_key())
        await store.follows.unfollow(ann, bob, new_key())
        await store.statuses.delete(ann, first["id"], new_key())
        await store.sessions.revoke(ann, "j", 4_000_000_000_000, new_key())
        await eventually(lambda: len(received) == 6)
        listening.cancel()
        await asyncio.gather(listening, return_exceptions=True)
    messages = [parse_published(message) for message in received]
    entries = await store.log.read(LOG_START, 10)
    assert [entry.kind for entry in entries] == ["post", "follow", "notification", "unfollow", "delete", "revoke"]
    assert [(m.position, m.kind, m.audience, m.body) for m in messages] == [
        (e.position, e.kind, e.audience, e.body) for e in entries
    ]


async def test_the_log_is_bounded(redis_url: str, raw: "redis.Redis") -> None:
    async with open_store(redis_url, size_limits=SizeLimits(log_max_entries=200)) as small:
        people = People(small)
        ann = await people.user("Ann")
        await asyncio.gather(*(people.status(ann, str(i)) for i in range(600)))
        length = raw.xlen("{core}:log")
        assert isinstance(length, int)
        assert 200 <= length < 400
        floor = await small.log.floor()
        assert floor is not None
        assert floor.n == 600 - length + 1
        assert (await small.log.head()).n == 600
