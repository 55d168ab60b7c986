"""Mentions and hashtags: kept, read, never crowded out, and gone with their status."""

from collections.abc import AsyncIterator

import pytest
import redis

from stream_server.store import keys
from stream_server.store.idempotency import IdempotencyKey
from stream_server.store.pagination import PageRequest
from stream_server.store.redis.scripts import SizeLimits
from stream_server.store.store import Store
from tests.stream_server.store.people import People
from tests.stream_server.store.scenes import befriend, group, ids, notices, protect, suspend
from tests.waiting import PATIENCE


@pytest.fixture
async def small(redis_url: str) -> AsyncIterator[Store]:
    """A store whose lists end after three."""
    made = Store(redis_url, size_limits=SizeLimits(timeline_max=3), timeout_seconds=PATIENCE)
    await made.open()
    yield made
    await made.close()


async def mentions(store: Store, uid: str) -> list[str]:
    """The ids of what mentions a user."""
    return ids(await store.timelines.read_mentions(uid, PageRequest()))


async def tagged(store: Store, viewer: str, tag: str) -> list[str]:
    """The ids of what has a tag."""
    return ids(await store.timelines.read_tag(viewer, tag, PageRequest()))


async def test_mentions_are_kept_once_and_go_with_the_status(store: Store, people: People, raw: "redis.Redis") -> None:
    """However often and in whatever letters the login stands there."""
    ann, bob = await people.users(2)
    first = (await people.status(ann, "@u1 and @U1, @U1!"))["id"]
    second = (await people.status(ann, "x@u1.org no, (@u1) yes"))["id"]
    await people.status(ann, "mail x@u1.org, @u12 and @u")
    assert await mentions(store, bob) == [second, first]
    assert await notices(store, bob) == [("mention", ann)] * 2
    await store.statuses.delete(ann, first, IdempotencyKey.generate())
    assert await mentions(store, bob) == [second]
    await store.statuses.delete(ann, second, IdempotencyKey.generate())
    assert not raw.exists(keys.key_for("mentions", bob))


async def test_mentions_of_those_not_to_be_heard_are_not_shown(store: Store, people: People) -> None:
    """Muted, blocked, suspended, protected and not followed: neither shown nor told; a mute that ends shows again."""
    viewer, muted, blocked, sue, shy, friend = await people.users(6)
    await store.mutes.mute(viewer, muted, IdempotencyKey.generate())
    await store.blocks.block(viewer, blocked, IdempotencyKey.generate())
    for uid in (shy, friend):
        await protect(store, uid)
    await befriend(store, viewer, friend)
    made = {uid: (await people.status(uid, "@u0"))["id"] for uid in (muted, blocked, sue, shy, friend)}
    await suspend(store, viewer, sue)
    assert await mentions(store, viewer) == [made[friend]]
    assert [who for kind, who in await notices(store, viewer) if kind == "mention"] == [sue, friend]
    await store.mutes.unmute(viewer, muted, IdempotencyKey.generate())
    assert await mentions(store, viewer) == [made[friend], made[muted]]


async def test_a_mention_in_a_private_group_stays_inside(store: Store, people: People) -> None:
    """A member reads it; who is outside is not told, and does not see it."""
    ann, bob, out = await people.users(3)
    made = (await people.status(ann, "@u1 @u2", group=await group(store, "private", ann, bob)))["id"]
    assert (await mentions(store, bob), await mentions(store, out)) == ([made], [])
    assert (await notices(store, bob), await notices(store, out)) == ([("mention", ann)], [])


@pytest.mark.parametrize(
    ("written", "asked"),
    [
        ("#Straße", "strasse"),
        ("#STRASSE", "#straße"),
        ("#İstanbul", "i\u0307stanbul"),
        ("#cafe\u0301", "caf\u00e9"),
        ("\uff03東京", "東京"),
        ("#naïve_2026", "NAÏVE_2026"),
    ],
)
async def test_tags_are_folded_as_filters_do(store: Store, people: People, written: str, asked: str) -> None:
    """Case and composition do not part what is one word."""
    ann = await people.user("Ann")
    made = (await people.status(ann, f"a {written} b"))["id"]
    assert await tagged(store, ann, asked) == [made]


async def test_tags_are_kept_once_and_go_with_the_status(store: Store, people: People, raw: "redis.Redis") -> None:
    """Newest first; a word without the sign, a number, a URL's fragment are none."""
    ann, bob = await people.users(2)
    first = (await people.status(ann, "#Redis #redis #REDIS"))["id"]
    second = (await people.status(bob, "more #redis"))["id"]
    await people.status(bob, "redis #2026 https://example.org/#redis")
    assert await tagged(store, ann, "redis") == [second, first]
    await store.statuses.delete(ann, first, IdempotencyKey.generate())
    assert await tagged(store, ann, "redis") == [second]
    await store.statuses.delete(bob, second, IdempotencyKey.generate())
    assert raw.keys("{core}:tag:*") == []


async def test_a_protected_post_is_in_the_tag_for_followers_only(store: Store, people: People) -> None:
    """And for its author."""
    ann, friend, other = await people.users(3)
    await protect(store, ann)
    await befriend(store, friend, ann)
    made = (await people.status(ann, "#tag"))["id"]
    assert [await tagged(store, uid, "tag") for uid in (ann, friend, other)] == [[made], [made], []]


async def test_what_is_in_a_group_has_no_tag(store: Store, people: People, raw: "redis.Redis") -> None:
    """Not even for its members; it stays in the group."""
    ann = await people.user("Ann")
    await people.status(ann, "#tag", group=await group(store, "public", ann))
    assert await tagged(store, ann, "tag") == []
    assert not raw.exists(keys.key_for("tag", "tag"))


async def test_what_is_hidden_crowds_nothing_out(small: Store) -> None:
    """However much the blocked, the muted and the protected mention and tag, what may be seen is still found."""
    people = People(small)
    ann, bob, eve, meg = await people.users(4)
    await small.blocks.block(bob, eve, IdempotencyKey.generate())
    await small.mutes.mute(bob, meg, IdempotencyKey.generate())
    await protect(small, meg)
    seen = (await people.status(ann, "hi @u1 #tag"))["id"]
    for author in (eve, meg):
        for number in range(5):
            await people.status(author, f"{number} @u1 #tag")
    assert await mentions(small, bob) == [seen]
    assert await tagged(small, bob, "tag") == [seen]


async def test_whom_one_may_not_know_of_is_not_found(store: Store, people: People, raw: "redis.Redis") -> None:
    """A mention of who blocks the author, or is suspended, stays a name: an id would tell of them."""
    ann, bob, eve = await people.users(3)
    await store.blocks.block(bob, ann, IdempotencyKey.generate())
    await suspend(store, ann, eve)
    made = await people.status(ann, "@u1 @u2 @u0")
    assert [mention.get("id") for mention in made["entities"]["mentions"]] == [None, None, ann]
    assert raw.exists(keys.key_for("mentions", bob), keys.key_for("mentions", eve)) == 0
