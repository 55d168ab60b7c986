"""Mentions and hashtags: stored once, filtered for the viewer, and removed with their status."""

from collections.abc import AsyncIterator

import pytest
import redis

from stream_server.store import keys
from stream_server.store.pagination import PageRequest
from stream_server.store.redis.scripts import SizeLimits
from stream_server.store.store import Store
from tests.stream_server.store.people import People, new_key, open_store
from tests.stream_server.store.scenes import befriend, group, ids, notified, protect, suspend


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


async def test_mentions_by_hidden_users_are_not_shown(store: Store, people: People) -> None:
    viewer, muted, blocked, sue, shy, friend = await people.users(6)
    await store.mutes.mute(viewer, muted, new_key())
    await store.blocks.block(viewer, blocked, new_key())
    for uid in (shy, friend):
        await protect(store, uid)
    await befriend(store, viewer, friend)
    made = {uid: (await people.status(uid, "@u0"))["id"] for uid in (muted, blocked, sue, shy, friend)}
    await suspend(store, viewer, sue)
    assert await mentions(store, viewer) == [made[friend]]
    assert [who for kind, who in await notified(store, viewer) if kind == "mention"] == [sue, friend]
    await store.mutes.unmute(viewer, muted, new_key())
    assert await mentions(store, viewer) == [made[friend], made[muted]]


async def test_a_mention_in_a_private_group_stays_inside(store: Store, people: People) -> None:
    ann, bob, out = await people.users(3)
    made = (await people.status(ann, "@u1 @u2", group=await group(store, "private", ann, bob)))["id"]
    assert (await mentions(store, bob), await mentions(store, out)) == ([made], [])
    assert (await notified(store, bob), await notified(store, out)) == ([("mention", ann)], [])


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


async def test_a_protected_post_is_under_its_tag_for_followers_only(store: Store, people: People) -> None:
    ann, friend, other = await people.users(3)
    await protect(store, ann)
    await befriend(store, friend, ann)
    made = (await people.status(ann, "#tag"))["id"]
    assert [await tagged(store, uid, "tag") for uid in (ann, friend, other)] == [[made], [made], []]


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


async def test_a_mention_of_a_hidden_user_has_no_id(store: Store, people: People, raw: "redis.Redis") -> None:
    ann, bob, eve = await people.users(3)
    await store.blocks.block(bob, ann, new_key())
    await suspend(store, ann, eve)
    made = await people.status(ann, "@u1 @u2 @u0")
    assert [mention.get("id") for mention in made["entities"]["mentions"]] == [None, None, ann]
    assert raw.exists(keys.key_for("mentions", bob), keys.key_for("mentions", eve)) == 0
