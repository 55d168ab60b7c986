"""Reposts and quotes: they belong to the root, and show the original while it is visible."""

import pytest
import redis

from stream_server.errors import BadRequest, NotFound
from stream_server.store.store import Store
from tests.stream_server.store.people import People, new_key
from tests.stream_server.store.scenes import befriend, dump, group, logged, protect


async def test_a_protected_status_is_reposted_by_its_author_only(
    store: Store, people: People, raw: "redis.Redis"
) -> None:
    ann, friend = await people.users(2)
    open_ = (await people.status(ann))["id"]
    await protect(store, ann)
    await befriend(store, friend, ann)
    closed = (await people.status(ann))["id"]
    before = dump(raw)
    for status in (open_, closed):
        with pytest.raises(BadRequest) as refusal:
            await people.status(friend, "", origin=status)
        assert refusal.value.param == "origin"
    assert dump(raw) == before
    own = await people.status(ann, "", origin=closed)
    assert (await logged(store, "post"))[-1].audience == f"followers:{ann}"
    assert own["original"]["id"] == closed
    await protect(store, ann, on=False)
    with pytest.raises(BadRequest):
        await people.status(friend, "", origin=closed)
    assert (await people.status(friend, "", origin=open_))["origin"] == open_


async def test_a_group_post_is_shown_and_answered_in_its_group_only(
    store: Store, people: People, raw: "redis.Redis"
) -> None:
    ann, bob = await people.users(2)
    here, there = await group(store, "private", ann, bob), await group(store, "public", bob)
    inside = (await people.status(ann, group=here))["id"]
    outside = (await people.status(ann))["id"]
    before = dump(raw)
    for target in (None, there):
        with pytest.raises(BadRequest) as refusal:
            await people.status(bob, "look", origin=inside, group=target)
        assert refusal.value.param == "origin"
    with pytest.raises(BadRequest) as refusal:
        await people.status(bob, "indeed", in_reply_to=inside, group=there)
    assert refusal.value.param == "group"
    assert dump(raw) == before
    assert (await people.status(bob, "indeed", in_reply_to=inside))["group"] == here
    assert (await people.status(bob, "", origin=inside, group=here))["group"] == here
    assert (await people.status(bob, "look", origin=outside, group=here))["original"]["id"] == outside


async def test_a_repost_has_the_language_of_its_original(store: Store, people: People) -> None:
    ann, bob = await people.users(2)
    root = (await people.status(ann, "hallo", lang="de"))["id"]
    assert (await people.status(bob, "", origin=root, lang="en"))["lang"] == "de"
    assert (await people.status(bob, "look", origin=root, lang="en"))["lang"] == "en"


async def test_a_repost_takes_reactions_unless_its_original_is_hidden(store: Store, people: People) -> None:
    """The repost of a deleted status stays, and that of a hidden one is hidden, as reads show it."""
    ann, bob, cat, eve = await people.users(4)
    await store.blocks.block(ann, eve, new_key())
    root = (await people.status(ann))["id"]
    repost = (await people.status(bob, "", origin=root))["id"]

    async def reacts(uid: str) -> bool:
        try:
            await store.likes.like(uid, repost, new_key())
            await store.comments.create(uid, repost, "nice", new_key())
            await people.status(uid, "so?", in_reply_to=repost)
        except NotFound:
            return False
        return True

    assert (await reacts(cat), await reacts(eve)) == (True, False)
    await store.statuses.delete(ann, root, new_key())
    assert (await reacts(cat), await reacts(eve)) == (True, True)
