"""Reposts and quotes: they belong to the root, and show the original while it is visible."""

import json
from typing import Any

import pytest
import redis

from stream_server.errors import BadRequest, NotFound
from stream_server.store import keys
from stream_server.store.pagination import PageRequest
from stream_server.store.store import Store
from tests.stream_server.store.people import People, new_key
from tests.stream_server.store.scenes import befriend, dump, group, ids, logged, notified, protect


async def got(store: Store, viewer: str, status: str) -> Any:
    return json.loads(await store.statuses.get(viewer, status))


async def test_reposts_of_reposts_count_for_the_root(store: Store, people: People, raw: "redis.Redis") -> None:
    ann, bob, eve = await people.users(3)
    root = (await people.status(ann))["id"]
    repost = (await people.status(bob, "", origin=root))["id"]
    again = (await people.status(eve, "", origin=repost))["id"]
    quote = (await people.status(eve, "so true", origin=again))["id"]
    assert {(await got(store, ann, one))["origin"] for one in (repost, again, quote)} == {root}
    assert (await got(store, ann, root))["reposts"] == raw.zcard(keys.key_for("reposts", root)) == 3
    assert (await got(store, ann, repost))["reposts"] == 0
    assert await notified(store, ann) == [("repost", bob), ("repost", eve), ("quote", eve)]
    assert await notified(store, bob) == []
    assert ids(await store.timelines.read_reposts(ann, root, PageRequest())) == [quote, again, repost]


async def test_a_repost_has_its_own_reactions(store: Store, people: People) -> None:
    ann, bob = await people.users(2)
    root = (await people.status(ann))["id"]
    repost = (await people.status(bob, "", origin=root))["id"]
    await store.likes.like(ann, repost, new_key())
    await store.favorites.add(ann, repost, new_key())
    await store.comments.create(ann, repost, "thanks", new_key())
    reply = await people.status(ann, "thanks", in_reply_to=repost)
    assert (reply["in_reply_to"], reply["conversation"]) == (repost, repost)
    shown = await got(store, bob, repost)
    assert (shown["likes"], shown["comments"]) == (1, 1)
    assert (shown["original"]["likes"], shown["original"]["comments"]) == (0, 0)
    assert await notified(store, bob) == [("like", ann), ("comment", ann), ("reply", ann)]


async def test_a_deleted_original_is_null(store: Store, people: People) -> None:
    ann, bob, eve = await people.users(3)
    root = (await people.status(ann))["id"]
    repost = (await people.status(bob, "", origin=root))["id"]
    quote = (await people.status(bob, "look", origin=root))["id"]
    await store.statuses.delete(ann, root, new_key())
    for one in (repost, quote):
        assert (await got(store, eve, one))["original"] is None
    with pytest.raises(NotFound) as refusal:
        await people.status(eve, "", origin=repost)
    assert refusal.value.param == "origin"
    assert (await people.status(eve, "", origin=quote))["original"]["message"] == "look"


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


async def test_a_group_post_is_reposted_in_its_group_only(store: Store, people: People, raw: "redis.Redis") -> None:
    ann, bob = await people.users(2)
    here, there = await group(store, "private", ann, bob), await group(store, "public", bob)
    inside = (await people.status(ann, group=here))["id"]
    outside = (await people.status(ann))["id"]
    before = dump(raw)
    for target in (None, there):
        with pytest.raises(BadRequest) as refusal:
            await people.status(bob, "look", origin=inside, group=target)
        assert refusal.value.param == "origin"
    assert dump(raw) == before
    assert (await people.status(bob, "", origin=inside, group=here))["group"] == here
    assert (await people.status(bob, "look", origin=outside, group=here))["original"]["id"] == outside


async def test_a_hidden_original_hides_a_repost_and_is_null_in_a_quote(store: Store, people: People) -> None:
    ann, bob, viewer = await people.users(3)
    root = (await people.status(ann))["id"]
    repost = (await people.status(bob, "", origin=root))["id"]
    quote = (await people.status(bob, "look", origin=root))["id"]
    await store.blocks.block(ann, viewer, new_key())
    with pytest.raises(NotFound):
        await store.statuses.get(viewer, repost)
    assert (await got(store, viewer, quote))["original"] is None
    assert ids(await store.timelines.read_profile(viewer, bob, PageRequest())) == [quote]
    for refused in (
        store.likes.like(viewer, repost, new_key()),
        store.comments.create(viewer, repost, "x", new_key()),
        people.status(viewer, "", origin=repost),
        people.status(viewer, "x", in_reply_to=repost),
    ):
        with pytest.raises(NotFound):
            await refused
    assert (await store.likes.like(viewer, quote, new_key())).like_count == 1
    (entry,) = await logged(store, "like")
    assert "original" not in entry.wire["status"]


async def test_a_notification_of_a_quote_omits_a_hidden_original(store: Store, people: People) -> None:
    ann, bob, blocked, plain = await people.users(4)
    root = (await people.status(ann, "not for u2"))["id"]
    await store.blocks.block(ann, blocked, new_key())
    await people.status(bob, "@u2 @u3 look", origin=root)
    sent_to = {one.audience: one.wire["notification"] for one in await logged(store, "notification")}
    assert sent_to[f"users:{blocked}"]["status"]["original"] is None
    assert sent_to[f"users:{plain}"]["status"]["original"]["message"] == "not for u2"


async def test_a_repost_has_the_language_of_its_original(store: Store, people: People) -> None:
    ann, bob = await people.users(2)
    root = (await people.status(ann, "hallo", lang="de"))["id"]
    assert (await people.status(bob, "", origin=root, lang="en"))["lang"] == "de"
    assert (await people.status(bob, "look", origin=root, lang="en"))["lang"] == "en"
