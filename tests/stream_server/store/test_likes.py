"""Likes: counted, told to the author, and only of what is seen."""

import json

import pytest
import redis

from stream_server.errors import Forbidden, InvalidCursor, NotFound
from stream_server.store import keys
from stream_server.store.idempotency import IdempotencyKey
from stream_server.store.pagination import PageRequest
from stream_server.store.social.likes import LikeResult
from stream_server.store.store import Store
from tests.stream_server.store.people import People
from tests.stream_server.store.scenes import (
    befriend,
    group,
    hide,
    ids,
    kept_notices,
    notices,
    protect,
    soon_unseen,
    suspend,
    told,
    whole,
)


async def count(store: Store, viewer: str, status: str) -> int:
    """How many like a status."""
    return int(json.loads(await store.statuses.get(viewer, status))["likes"])


async def test_a_like_is_counted_told_and_kept(store: Store, people: People, raw: "redis.Redis") -> None:
    """The set, the counter, the entry with the new count, and a notification to the author."""
    ann, bob = await people.users(2)
    status = await people.status(ann)
    assert await store.likes.like(bob, status["id"], IdempotencyKey.generate()) == LikeResult(
        is_liked=True, like_count=1
    )
    (entry,) = await told(store, "like")
    assert entry.audience == "public"
    assert entry.wire["source"]["id"] == bob
    assert entry.wire["status"] == status | {"likes": 1}
    assert await count(store, ann, status["id"]) == 1
    assert await notices(store, ann) == [("like", bob)]
    assert kept_notices(raw, ann) == {f"like:{bob}:{status['id']}"}
    when = raw.zscore(keys.key_for("likes", status["id"]), bob)
    assert when is not None
    assert when == raw.zscore(keys.key_for("liked", bob), status["id"])
    assert await store.likes.has_liked(bob, status["id"], bob)
    assert not await store.likes.has_liked(ann, status["id"], ann)
    assert await store.likes.has_liked(ann, status["id"], bob)


async def test_liking_twice_is_liking_once(store: Store, people: People, raw: "redis.Redis") -> None:
    """The second time, and unliking what is not liked, change nothing and tell nobody."""
    ann, bob = await people.users(2)
    status = (await people.status(ann))["id"]
    assert await store.likes.unlike(bob, status, IdempotencyKey.generate()) == LikeResult(is_liked=False, like_count=0)
    assert await told(store, "unlike") == []
    await store.likes.like(bob, status, IdempotencyKey.generate())
    before = whole(raw)
    assert await store.likes.like(bob, status, IdempotencyKey.generate()) == LikeResult(is_liked=True, like_count=1)
    assert whole(raw) == before


async def test_unliking_takes_everything_back(store: Store, people: People, raw: "redis.Redis") -> None:
    """Sets, counter and notification are as before; the entry says how many are left."""
    ann, bob, eve = await people.users(3)
    status = await people.status(ann)
    await store.likes.like(eve, status["id"], IdempotencyKey.generate())
    await store.likes.like(bob, status["id"], IdempotencyKey.generate())
    assert await store.likes.unlike(bob, status["id"], IdempotencyKey.generate()) == LikeResult(
        is_liked=False, like_count=1
    )
    (entry,) = await told(store, "unlike")
    assert (entry.wire["source"]["id"], entry.wire["status"]) == (bob, status | {"likes": 1})
    assert not await store.likes.has_liked(bob, status["id"], bob)
    assert raw.zrange(keys.key_for("likes", status["id"]), 0, -1) == [eve.encode()]
    assert not raw.exists(keys.key_for("liked", bob))
    assert kept_notices(raw, ann) == {f"like:{eve}:{status['id']}"}


async def test_a_like_of_ones_own_tells_nobody(store: Store, people: People, raw: "redis.Redis") -> None:
    """It counts all the same."""
    ann = await people.user("Ann")
    status = (await people.status(ann))["id"]
    assert (await store.likes.like(ann, status, IdempotencyKey.generate())).like_count == 1
    assert await notices(store, ann) == []
    assert kept_notices(raw, ann) == set()


async def test_the_author_is_spared_those_not_to_be_heard(store: Store, people: People) -> None:
    """Who is muted may like, but the author is not told."""
    ann, bob = await people.users(2)
    status = (await people.status(ann))["id"]
    await store.mutes.mute(ann, bob, IdempotencyKey.generate())
    assert (await store.likes.like(bob, status, IdempotencyKey.generate())).like_count == 1
    assert await notices(store, ann) == []


async def test_a_wordless_repost_is_liked_itself(store: Store, people: People) -> None:
    """Not its original, which is another status; the entry shows no third one inside."""
    ann, bob = await people.users(2)
    first = (await people.status(ann))["id"]
    repost = await people.status(bob, "", origin=first)
    await store.likes.like(ann, repost["id"], IdempotencyKey.generate())
    assert (await count(store, ann, repost["id"]), await count(store, ann, first)) == (1, 0)
    assert await notices(store, bob) == [("like", ann)]
    (entry,) = await told(store, "like")
    assert entry.wire["status"] == {name: repost[name] for name in repost if name != "original"} | {"likes": 1}


async def test_what_is_not_there_cannot_be_liked(store: Store, people: People, raw: "redis.Redis") -> None:
    """Unknown, deleted, blocked, protected, suspended, in a private group: one and the same 404, nothing changes."""
    unseen = await soon_unseen(people)
    bob = unseen.users[1]
    await hide(store, unseen)
    before = whole(raw)
    for status in unseen.statuses:
        for refused in (
            store.likes.like(bob, status, IdempotencyKey.generate()),
            store.likes.unlike(bob, status, IdempotencyKey.generate()),
            store.likes.has_liked(bob, status, bob),
            store.likes.list_likers(bob, status, PageRequest()),
        ):
            with pytest.raises(NotFound) as told_so:
                await refused
            assert told_so.value.message == "unknown status"
    assert whole(raw) == before


async def test_a_like_can_be_taken_back_when_the_status_is_not_seen_any_more(store: Store, people: People) -> None:
    """It is one's own; a second time there is nothing to be seen."""
    ann, bob = await people.users(2)
    status = (await people.status(ann))["id"]
    await store.likes.like(bob, status, IdempotencyKey.generate())
    await store.blocks.block(ann, bob, IdempotencyKey.generate())
    assert (await store.likes.unlike(bob, status, IdempotencyKey.generate())).like_count == 0
    with pytest.raises(NotFound):
        await store.likes.unlike(bob, status, IdempotencyKey.generate())
    assert await count(store, ann, status) == 0


@pytest.mark.parametrize("kind", ["public", "announcement", "private"])
async def test_in_a_group_only_members_like(store: Store, people: People, raw: "redis.Redis", kind: str) -> None:
    """Also where only the owner posts; what they do stays in the group."""
    ann, bob, eve = await people.users(3)
    gid = await group(store, kind, ann, bob)
    status = (await people.status(ann, group=gid))["id"]
    assert (await store.likes.like(bob, status, IdempotencyKey.generate())).like_count == 1
    assert [one.audience for one in await told(store, "like")] == [f"group:{gid}"]
    before = whole(raw)
    with pytest.raises(NotFound if kind == "private" else Forbidden):
        await store.likes.like(eve, status, IdempotencyKey.generate())
    assert whole(raw) == before
    raw.zrem(keys.key_for("joined", gid), bob)
    if kind != "private":
        assert (await store.likes.unlike(bob, status, IdempotencyKey.generate())).like_count == 0


async def test_whom_a_like_may_be_told(store: Store, people: People) -> None:
    """Everyone; the followers of whoever of the two is protected; only the two if both are."""
    ann, bob, eve = await people.users(3)
    status = (await people.status(ann))["id"]

    async def audience(uid: str) -> str:
        await store.likes.like(uid, status, IdempotencyKey.generate())
        await store.likes.unlike(uid, status, IdempotencyKey.generate())
        liked, unliked = (await told(store, "like", "unlike"))[-2:]
        assert liked.audience == unliked.audience
        return liked.audience

    assert await audience(bob) == "public"
    await protect(store, bob)
    assert await audience(bob) == f"followers:{bob}"
    await befriend(store, bob, ann)
    await befriend(store, eve, ann)
    await protect(store, ann)
    assert await audience(bob) == f"users:{bob},{ann}"
    assert await audience(eve) == f"followers:{ann}"
    assert await audience(ann) == f"followers:{ann}"


async def test_who_likes_comes_newest_first_in_pieces(store: Store, people: People) -> None:
    """Each with since when; the cursor is this list's own."""
    ann, *others = await people.users(8)
    status = (await people.status(ann))["id"]
    for uid in others:
        await store.likes.like(uid, status, IdempotencyKey.generate())
    seen, before = [], None
    while True:
        page = await store.likes.list_likers(ann, status, PageRequest(3, before=before))
        seen += ids(page)
        assert all("since" in json.loads(item) for item in page.items)
        if page.next is None:
            break
        before = page.next
    # Within a millisecond there is no order but that of the ids.
    assert sorted(seen) == sorted(others)
    another = (await people.status(ann))["id"]
    first = await store.likes.list_likers(ann, status, PageRequest(3))
    with pytest.raises(InvalidCursor):
        await store.likes.list_likers(ann, another, PageRequest(3, before=first.next))


async def test_among_who_likes_are_only_those_whom_one_sees(store: Store, people: People) -> None:
    """Not the blocked, the blocking, the suspended, and of the protected only those one follows."""
    ann, viewer, blocked, blocking, sue, shy, friend, plain = await people.users(8)
    status = (await people.status(ann))["id"]
    for uid in (blocked, blocking, sue, shy, friend, plain):
        await store.likes.like(uid, status, IdempotencyKey.generate())
    await befriend(store, viewer, friend)
    await store.blocks.block(viewer, blocked, IdempotencyKey.generate())
    await store.blocks.block(blocking, viewer, IdempotencyKey.generate())
    await suspend(store, ann, sue)
    for uid in (shy, friend):
        await protect(store, uid)
    assert set(ids(await store.likes.list_likers(viewer, status, PageRequest()))) == {friend, plain}
    for uid in (blocked, blocking, sue, shy):
        with pytest.raises(NotFound):
            await store.likes.has_liked(viewer, status, uid)


async def test_the_same_key_gets_the_same_count(store: Store, people: People) -> None:
    """Although others liked it since."""
    ann, bob, eve = await people.users(3)
    status = (await people.status(ann))["id"]
    request = IdempotencyKey.from_client(bob, "k", b"p")
    first = await store.likes.like(bob, status, request)
    await store.likes.like(eve, status, IdempotencyKey.generate())
    assert await store.likes.like(bob, status, request) == first == LikeResult(is_liked=True, like_count=1)
