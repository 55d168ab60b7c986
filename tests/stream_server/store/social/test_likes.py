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
    protect,
    read_pages,
    refusal,
)


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


async def test_a_like_of_a_status_that_was_hidden_since_can_be_taken_back(store: Store, people: People) -> None:
    ann, bob = await people.users(2)
    status = (await people.status(ann))["id"]
    await store.likes.like(bob, status, new_key())
    await store.blocks.block(ann, bob, new_key())
    taken_back = LikeResult(is_liked=False, like_count=0)
    assert await store.likes.unlike(bob, status, new_key()) == taken_back
    assert await refusal(store.likes.unlike(bob, status, new_key())) == (404, "not_found", None)


@pytest.mark.parametrize("protected", [(), ("author",), ("actor",), ("author", "actor")])
async def test_a_reaction_is_for_those_who_see_both_users(
    store: Store, people: People, protected: tuple[str, ...]
) -> None:
    author, actor = await people.users(2)
    uids = {"author": author, "actor": actor}
    status = (await people.status(author))["id"]
    await befriend(store, actor, author)
    for name in protected:
        await protect(store, uids[name])
    await store.likes.like(actor, status, new_key())
    (entry,) = await logged(store, "like")
    both = f"users:{actor},{author}"
    assert entry.audience == (["public", *(f"followers:{uids[name]}" for name in protected[:1]), both][len(protected)])


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
