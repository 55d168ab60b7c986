"""The log: contiguous, in order, the same as what is PUBLISHed."""

import asyncio
import itertools
from contextlib import aclosing

import pytest
import redis

from stream_server.errors import Unavailable
from stream_server.events.entry import parse_published
from stream_server.events.position import LOG_START, Position
from stream_server.store.idempotency import IdempotencyKey
from stream_server.store.log import event_log
from stream_server.store.log.event_log import LogLookup
from stream_server.store.redis.scripts import SizeLimits
from stream_server.store.store import Store
from tests.redis_process import RedisProcess
from tests.stream_server.store.people import People
from tests.waiting import PATIENCE, eventually

pytestmark = pytest.mark.every_redis


async def test_an_empty_log(store: Store, people: People) -> None:
    """Its head is the start, it has no floor, and a user alone puts nothing on it."""
    await people.user("Ann")
    assert await store.log.head() == LOG_START
    assert await store.log.floor() is None
    assert await store.log.read(LOG_START, 10) == []
    assert await store.log.look_up(5, 0) == LogLookup(LOG_START, None, None, None)
    assert store.last_written == LOG_START


async def test_reading_is_exclusive_and_bounded(store: Store, people: People) -> None:
    """After a place, not beyond another, so many at most."""
    ann = await people.user("Ann")
    for _ in range(6):
        await people.status(ann)
    entries = await store.log.read(LOG_START, 10)
    places = [entry.position for entry in entries]
    assert [place.n for place in places] == [1, 2, 3, 4, 5, 6]
    assert (await store.log.head(), await store.log.floor()) == (places[-1], places[0])
    assert store.last_written == places[-1]
    assert [entry.position for entry in await store.log.read(places[1], 2)] == places[2:4]
    assert [entry.position for entry in await store.log.read(places[1], 9, up_to=places[3])] == places[2:4]
    assert [entry.position for entry in await store.log.read(places[4].entry_id, 9)] == places[5:]


async def test_going_back_by_posts(store: Store, people: People, monkeypatch: pytest.MonkeyPatch) -> None:
    """So many public posts lie behind the place, whatever else lies between, however short the pages are."""
    assert await store.log.position_before_posts(3, LOG_START) == LOG_START
    ann, bob = await people.user("Ann"), await people.user("Bob")
    for number in range(4):
        status = await people.status(ann, f"@Bob {number}")  # which leaves a notification, too
        await store.likes.like(bob, status["id"], IdempotencyKey.generate())
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


async def test_locating_an_entry(store: Store, people: People) -> None:
    """Both ends and the entry come from one moment; a place between entries has none."""
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


async def test_which_statuses_are_still_there(store: Store, people: People) -> None:
    """Deleted and unknown ones are not."""
    ann = await people.user("Ann")
    kept, gone = [(await people.status(ann))["id"] for _ in range(2)]
    await store.statuses.delete(ann, gone, IdempotencyKey.generate())
    assert await store.log.find_existing([kept, gone, "1"]) == {kept}
    assert await store.log.find_existing([]) == set()


async def test_numbers_are_contiguous_under_concurrent_writers(store: Store, people: People) -> None:
    """Twenty writers at once: every entry has the next number, a higher id, and its own data."""
    users = await people.users(20)

    async def write(uid: str, other: str) -> list[str]:
        ids = [(await people.status(uid, f"{uid} {i}"))["id"] for i in range(10)]
        await store.follows.follow(uid, other, IdempotencyKey.generate())
        await store.statuses.delete(uid, ids[0], IdempotencyKey.generate())
        return ids

    made = await asyncio.gather(*(write(a, b) for a, b in itertools.pairwise([*users, users[0]])))
    places = [entry.position for entry in await store.log.read(LOG_START, 1000)]
    assert [place.n for place in places] == list(range(1, 20 * 13 + 1))  # a follow is told, too
    assert places == sorted(places)
    ids = [status_id for one in made for status_id in one]
    assert len(set(ids)) == 200
    assert all(one == sorted(one, key=int) for one in made)


async def test_ids_rise_while_the_clock_is_behind(store: Store, people: People, raw: "redis.Redis") -> None:
    """With the last id an hour ahead of the clock, ids go on from it, past the last of a millisecond, in 53 bits."""
    ann = await people.user("Ann")
    (seconds, _micros) = raw.time()
    ahead = (seconds + 3600) * 1000
    raw.hset("{core}:meta", mapping={"ms": ahead, "seq": 4093})
    ids = [int((await people.status(ann))["id"]) for _ in range(4)]
    bob = int(await people.user("Bob"))
    places = [entry.position for entry in await store.log.read(LOG_START, 10)]
    assert [(p.ms - ahead, p.seq) for p in places] == [(0, 4094), (0, 4095), (1, 0), (1, 1)]
    assert [*ids, bob] == sorted({*ids, bob})
    assert all(status_id == place.status_number < 2**53 for status_id, place in zip(ids, places, strict=True))


async def test_a_user_moves_the_clock_but_not_the_number(store: Store, people: People, raw: "redis.Redis") -> None:
    """Who signs up takes an id that no status gets, and leaves no hole on the log."""
    ann = await people.user("Ann")
    raw.hset("{core}:meta", mapping={"ms": 3_800_000_000_000, "seq": 7})
    first = (await people.status(ann))["id"]
    bob = await people.user("Bob")
    second = (await people.status(ann))["id"]
    assert [int(bob) - int(first), int(second) - int(bob)] == [1, 1]
    assert [entry.position.n for entry in await store.log.read(LOG_START, 10)] == [1, 2]


async def test_what_is_published_is_what_is_on_the_log(store: Store, people: People) -> None:
    """Each message is its entry, in order, over all kinds; None comes first, once."""
    ann, bob = await people.users(2)
    heard: list[bytes | None] = []

    async def hear() -> None:
        async with aclosing(store.log.subscribe()) as messages:
            async for message in messages:
                heard.append(message)  # noqa: PERF401 - the list is looked at while it grows

    listening = asyncio.create_task(hear())
    await eventually(lambda: heard)
    first = await people.status(ann, "zwei\nZeilen")
    await store.follows.follow(ann, bob, IdempotencyKey.generate())
    await store.follows.unfollow(ann, bob, IdempotencyKey.generate())
    await store.statuses.delete(ann, first["id"], IdempotencyKey.generate())
    await store.sessions.revoke(ann, "j", 4_000_000_000_000, IdempotencyKey.generate())
    await eventually(lambda: len(heard) == 7)
    listening.cancel()
    await asyncio.gather(listening, return_exceptions=True)
    assert heard[0] is None
    messages = [parse_published(message) for message in heard[1:] if message is not None]
    entries = await store.log.read(LOG_START, 10)
    assert [entry.kind for entry in entries] == ["post", "follow", "notification", "unfollow", "delete", "revoke"]
    assert [(m.position, m.kind, m.audience, m.body) for m in messages] == [
        (e.position, e.kind, e.audience, e.body) for e in entries
    ]


async def test_listening_ends_with_redis(redis_server: RedisProcess, store: Store, raw: "redis.Redis") -> None:
    """A link that Redis cuts is told, not dialled again behind the back of whoever listens."""
    async with aclosing(store.log.subscribe()) as messages:
        assert await anext(messages) is None
        assert raw.client_kill_filter(_type="pubsub") == 1
        with pytest.raises(Unavailable):
            await anext(messages)


async def test_the_log_is_bounded(redis_url: str, raw: "redis.Redis") -> None:
    """It keeps about as many entries as were asked for, and the floor is the real first one."""
    small = Store(redis_url, size_limits=SizeLimits(log_max_entries=200), timeout_seconds=PATIENCE)
    await small.open()
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
    await small.close()


async def test_a_place_has_one_form() -> None:
    """A position below the first is told from one on the log by the number alone."""
    assert Position(5, 0, 2).previous() == Position(4, 4095, 1)
    assert Position(5, 0, 1).previous() == LOG_START
