"""Follows: both sets, both counters and the log entry change together."""

import json
from typing import Any

import pytest
import redis

from stream_server.errors import Conflict, NotFound, TooLarge
from stream_server.events.position import LOG_START
from stream_server.store.idempotency import IdempotencyKey
from stream_server.store.pagination import PageRequest
from stream_server.store.redis.script_settings import SizeLimits
from stream_server.store.store import Store
from tests.stream_server.store.people import People, footprint, new_key, open_store
from tests.stream_server.store.scenes import ids, items_of, protect, read_pages


async def test_a_batch_gives_each_outcome_and_is_repeatable(store: Store, people: People, raw: "redis.Redis") -> None:
    ann, bob, carl, dora = await people.users(4)
    await store.follows.follow(ann, dora, new_key())
    request = IdempotencyKey.from_client(ann, "k", b"batch")
    outcomes = await store.follows.change_many(ann, [bob, "1", ann, carl], [dora, carl], request)
    assert outcomes == [
        (bob, "followed"), ("1", "not_found"), (ann, "oneself"), (carl, "followed"),
        (dora, "unfollowed"), (carl, "unfollowed"),
    ]  # fmt: skip
    assert set((await store.user_graphs.get_graph(ann)).following) == {bob}
    before = footprint(raw)
    assert await store.follows.change_many(ann, [bob, "1", ann, carl], [dora, carl], request) == outcomes
    assert footprint(raw) == before
    with pytest.raises(Conflict):
        await store.follows.change_many(ann, [carl], [], IdempotencyKey.from_client(ann, "k", b"other"))
    with pytest.raises(NotFound):
        await store.follows.change_many("1", [carl], [], new_key())
    assert await store.follows.change_many(ann, [], [], new_key()) == []


async def test_an_interrupted_batch_reports_what_was_done_and_continues(
    store: Store, people: People, raw: "redis.Redis", monkeypatch: pytest.MonkeyPatch
) -> None:
    ann, bob, carl = await people.users(3)
    request = IdempotencyKey.from_client(ann, "k", b"batch")
    write_each = store._scripts.write_each

    async def broken_off(writes: Any) -> Any:
        done = await write_each(writes[:1])
        raw.config_set("maxmemory", 1)
        try:
            return done + await write_each(writes[1:])
        finally:
            raw.config_set("maxmemory", 0)

    monkeypatch.setattr(store._scripts, "write_each", broken_off)
    assert await store.follows.change_many(ann, [bob, carl], [], request) == [(bob, "followed"), (carl, "unavailable")]
    monkeypatch.undo()
    before = (await people.me(bob))["followers"]
    assert await store.follows.change_many(ann, [bob, carl], [], request) == [(bob, "followed"), (carl, "followed")]
    assert ((await people.me(bob))["followers"], (await people.me(carl))["followers"]) == (before, 1)


async def test_pages_are_complete_within_one_millisecond(store: Store, people: People, raw: "redis.Redis") -> None:
    star, *fans = await people.users(12)
    for i, fan in enumerate(fans):
        await store.follows.follow(fan, star, new_key())
        raw.zadd(f"{{core}}:followers:{star}", {fan: 1_795_000_000_000 + i // 5})
    expected = sorted(fans, key=lambda fan: (fans.index(fan) // 5, fan), reverse=True)
    pages = await read_pages(lambda request: store.follows.list_followers(star, star, request), 3)
    assert [uid for page in pages for uid in ids(page)] == expected
    assert [page.prev is None for page in pages] == [True] + [False] * (len(pages) - 1)
    after, backward = pages[-1].prev, ids(pages[-1])
    while after is not None:
        page = await store.follows.list_followers(star, star, PageRequest(4, after=after))
        backward = ids(page) + backward
        after = page.prev
    assert backward == expected


async def test_each_user_on_a_page_has_the_time_of_the_follow(store: Store, people: People) -> None:
    ann, bob = await people.users(2)
    await store.follows.follow(ann, bob, new_key())
    (entry,) = await store.log.read(LOG_START, 1)
    (followed,) = items_of(await store.follows.list_following(ann, ann, PageRequest()))
    (follower,) = items_of(await store.follows.list_followers(ann, bob, PageRequest()))
    assert json.loads(followed)["id"] == bob
    assert json.loads(follower)["since"] == json.loads(entry.message_json())["at"]


async def test_nobody_follows_and_asks_more_people_than_the_limit(redis_url: str, raw: "redis.Redis") -> None:
    async with open_store(redis_url, size_limits=SizeLimits(following_max=3)) as store:
        ann, bob, cid, dan, eve = await People(store).users(5)
        await protect(store, dan)
        for other in (bob, cid, dan):
            await store.follows.follow(ann, other, new_key())
        before = footprint(raw)
        with pytest.raises(TooLarge) as refusal:
            await store.follows.follow(ann, eve, new_key())
        assert (refusal.value.error_code, refusal.value.param) == ("too_many", "id")
        assert footprint(raw) == before
        for other in (bob, dan):
            await store.follows.follow(ann, other, new_key())  # a repetition changes nothing
        outcomes = await store.follows.change_many(ann, [eve], [bob], new_key())
        assert [outcome.outcome for outcome in outcomes] == ["too_many", "unfollowed"]
        assert json.loads(await store.follows.follow(ann, eve, new_key()))["following"]
