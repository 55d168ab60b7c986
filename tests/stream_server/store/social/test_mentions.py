"""Mentions and hashtags: stored once, filtered for the viewer, and removed with their status."""

from collections.abc import AsyncIterator

import pytest
import redis

from stream_server.store import keys
from stream_server.store.pagination import PageRequest
from stream_server.store.redis.script_settings import SizeLimits
from stream_server.store.store import Store
from tests.stream_server.store.people import People, new_key, open_store
from tests.stream_server.store.scenes import ids, notified, protect


@pytest.fixture
async def small(redis_url: str) -> AsyncIterator[Store]:
    """A store that keeps three ids per timeline."""
    async with open_store(redis_url, size_limits=SizeLimits(timeline_max=3)) as made:
        yield made


async def mentions(store: Store, uid: str) -> list[str]:
    return ids(await store.timelines.read_mentions(uid, PageRequest()))


async def tagged(store: Store, viewer: str, tag: str) -> list[str]:
    return ids(await store.timelines.read_tag(viewer, tag, PageRequest()))


async def test_mentions_are_stored_once_and_removed_with_the_status(
    store: Store, people: People, raw: "redis.Redis"
) -> None:
    ann, bob = await people.users(2)
    first = (await people.status(ann, "@u1 and @U1, @U1!"))["id"]
    second = (await people.status(ann, "x@u1.org no, (@u1) yes"))["id"]
    await people.status(ann, "mail x@u1.org, @u12 and @u")
    assert await mentions(store, bob) == [second, first]
    assert await notified(store, bob) == [("mention", ann)] * 2
    await store.statuses.delete(ann, first, new_key())
    assert await mentions(store, bob) == [second]
    await store.statuses.delete(ann, second, new_key())
    assert not raw.exists(keys.key_for("mentions", bob))


@pytest.mark.parametrize(
    ("written", "asked"),
    [
        ("#Straße", "strasse"),
        ("#Straße", "straße"),
        ("#STRASSE", "#straße"),
        ("#İstanbul", "i\u0307stanbul"),
        ("#cafe\u0301", "caf\u00e9"),
        ("\uff03東京", "東京"),
        ("#naïve_2026", "NAÏVE_2026"),
    ],
)
async def test_tags_are_folded_like_filters(store: Store, people: People, written: str, asked: str) -> None:
    ann = await people.user("Ann")
    made = (await people.status(ann, f"a {written} b"))["id"]
    assert await tagged(store, ann, asked) == [made]


async def test_tags_are_stored_once_and_removed_with_the_status(
    store: Store, people: People, raw: "redis.Redis"
) -> None:
    ann, bob = await people.users(2)
    first = (await people.status(ann, "#Redis #redis #REDIS"))["id"]
    second = (await people.status(bob, "more #redis"))["id"]
    await people.status(bob, "redis #2026 https://example.org/#redis")
    assert await tagged(store, ann, "redis") == [second, first]
    await store.statuses.delete(ann, first, new_key())
    assert await tagged(store, ann, "redis") == [second]
    await store.statuses.delete(bob, second, new_key())
    assert raw.keys("{core}:tag:*") == []


async def test_hidden_statuses_do_not_push_visible_ones_out(small: Store) -> None:
    people = People(small)
    ann, bob, eve, meg = await people.users(4)
    await small.blocks.block(bob, eve, new_key())
    await small.mutes.mute(bob, meg, new_key())
    await protect(small, meg)
    seen = (await people.status(ann, "hi @u1 #tag"))["id"]
    for author in (eve, meg):
        for number in range(5):
            await people.status(author, f"{number} @u1 #tag")
    assert await mentions(small, bob) == [seen]
    assert await tagged(small, bob, "tag") == [seen]
