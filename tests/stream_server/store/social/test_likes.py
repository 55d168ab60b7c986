"""Likes and favorites: counters, notifications, audience, and visibility."""

import json

import pytest
import redis

from stream_server.errors import InvalidCursor
from stream_server.store import keys
from stream_server.store.idempotency import IdempotencyKey
from stream_server.store.pagination import PageRequest
from stream_server.store.social.likes import LikeResult
from stream_server.store.store import Store
from tests.stream_server.store.people import People, new_key
from tests.stream_server.store.scenes import (
    befriend,
    dump,
    ids,
    items_of,
    logged,
    notified,
    protect,
    read_pages,
    stored_notifications,
    suspend,
)


async def count(store: Store, viewer: str, status: str) -> int:
    return int(json.loads(await store.statuses.get(viewer, status))["likes"])


async def test_a_like_is_counted_logged_notified_and_stored(store: Store, people: People, raw: "redis.Redis") -> None:
    ann, bob = await people.users(2)
    status = await people.status(ann)
    assert await store.likes.like(bob, status["id"], new_key()) == LikeResult(is_liked=True, like_count=1)
    (entry,) = await logged(store, "like")
    assert entry.audience == "public"
    assert entry.wire["source"]["id"] == bob
    assert entry.wire["status"] == status | {"likes": 1}
    assert await count(store, ann, status["id"]) == 1
    assert await notified(store, ann) == [("like", bob)]
    assert stored_notifications(raw, ann) == {f"like:{bob}:{status['id']}"}
    when = raw.zscore(keys.key_for("likes", status["id"]), bob)
    assert when is not None
    assert when == raw.zscore(keys.key_for("liked", bob), status["id"])
    assert await store.likes.has_liked(bob, status["id"])
    assert not await store.likes.has_liked(ann, status["id"])


async def test_unliking_removes_everything_of_the_like(store: Store, people: People, raw: "redis.Redis") -> None:
    ann, bob, eve = await people.users(3)
    status = await people.status(ann)
    await store.likes.like(eve, status["id"], new_key())
    await store.likes.like(bob, status["id"], new_key())
    assert await store.likes.unlike(bob, status["id"], new_key()) == LikeResult(is_liked=False, like_count=1)
    (entry,) = await logged(store, "unlike")
    assert (entry.wire["source"]["id"], entry.wire["status"]) == (bob, status | {"likes": 1})
    assert not await store.likes.has_liked(bob, status["id"])
    assert raw.zrange(keys.key_for("likes", status["id"]), 0, -1) == [eve.encode()]
    assert not raw.exists(keys.key_for("liked", bob))
    assert stored_notifications(raw, ann) == {f"like:{eve}:{status['id']}"}


async def test_the_audience_of_a_like_respects_both_protected_users(store: Store, people: People) -> None:
    ann, bob, eve = await people.users(3)
    status = (await people.status(ann))["id"]

    async def audience(uid: str) -> str:
        await store.likes.like(uid, status, new_key())
        await store.likes.unlike(uid, status, new_key())
        liked, unliked = (await logged(store, "like", "unlike"))[-2:]
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


async def test_likers_are_paged_with_a_cursor_of_their_list(store: Store, people: People) -> None:
    ann, *others = await people.users(8)
    status = (await people.status(ann))["id"]
    for uid in others:
        await store.likes.like(uid, status, new_key())
    pages = await read_pages(lambda request: store.likes.list_likers(ann, status, request), 3)
    assert all("since" in json.loads(item) for page in pages for item in items_of(page))
    # Within a millisecond there is no order but that of the ids.
    assert sorted(uid for page in pages for uid in ids(page)) == sorted(others)
    another = (await people.status(ann))["id"]
    first = await store.likes.list_likers(ann, status, PageRequest(3))
    with pytest.raises(InvalidCursor):
        await store.likes.list_likers(ann, another, PageRequest(3, before=first.next))


async def test_hidden_likers_are_not_listed(store: Store, people: People) -> None:
    ann, viewer, blocked, blocking, sue, shy, friend, plain = await people.users(8)
    status = (await people.status(ann))["id"]
    for uid in (blocked, blocking, sue, shy, friend, plain):
        await store.likes.like(uid, status, new_key())
    await befriend(store, viewer, friend)
    await store.blocks.block(viewer, blocked, new_key())
    await store.blocks.block(blocking, viewer, new_key())
    await suspend(store, ann, sue)
    for uid in (shy, friend):
        await protect(store, uid)
    assert set(ids(await store.likes.list_likers(viewer, status, PageRequest()))) == {friend, plain}


async def test_a_repeated_key_gets_the_first_count(store: Store, people: People) -> None:
    ann, bob, eve = await people.users(3)
    status = (await people.status(ann))["id"]
    request = IdempotencyKey.from_client(bob, "k", b"p")
    first = await store.likes.like(bob, status, request)
    await store.likes.like(eve, status, new_key())
    assert await store.likes.like(bob, status, request) == first == LikeResult(is_liked=True, like_count=1)


async def test_a_repeated_favorite_keeps_its_first_time(store: Store, people: People, raw: "redis.Redis") -> None:
    ann = await people.user("Ann")
    status = (await people.status(ann))["id"]
    await store.favorites.remove(ann, status, new_key())
    await store.favorites.add(ann, status, new_key())
    raw.zadd(keys.key_for("favorites", ann), {status: 5})
    before = dump(raw)
    await store.favorites.add(ann, status, new_key())
    assert dump(raw) == before
