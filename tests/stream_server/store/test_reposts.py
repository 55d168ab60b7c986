"""Reposts and quotes: of the root, with the original inside as long as it is seen, and statuses themselves."""

import json
from typing import Any

import pytest
import redis

from stream_server.errors import BadRequest, NotFound
from stream_server.store import keys
from stream_server.store.idempotency import IdempotencyKey
from stream_server.store.pagination import PageRequest
from stream_server.store.store import Store
from tests.stream_server.store.people import People
from tests.stream_server.store.scenes import befriend, group, hide, ids, notices, protect, soon_unseen, told, whole


async def got(store: Store, viewer: str, status: str) -> Any:
    """A status as a viewer sees it, decoded."""
    return json.loads(await store.statuses.get(viewer, status))


async def test_counter_and_set_are_of_the_root(store: Store, people: People, raw: "redis.Redis") -> None:
    """A repost of a repost counts for the root and tells its author, and so does a quote of a repost."""
    ann, bob, eve = await people.users(3)
    root = (await people.status(ann))["id"]
    repost = (await people.status(bob, "", origin=root))["id"]
    again = (await people.status(eve, "", origin=repost))["id"]
    quote = (await people.status(eve, "so true", origin=again))["id"]
    assert {(await got(store, ann, one))["origin"] for one in (repost, again, quote)} == {root}
    assert (await got(store, ann, root))["reposts"] == raw.zcard(keys.key_for("reposts", root)) == 3
    assert (await got(store, ann, repost))["reposts"] == 0
    assert await notices(store, ann) == [("repost", bob), ("repost", eve), ("quote", eve)]
    assert await notices(store, bob) == []
    assert ids(await store.timelines.read_reposts(ann, root, PageRequest())) == [quote, again, repost]


async def test_a_repost_is_a_status_itself(store: Store, people: People) -> None:
    """It is liked, kept, commented and answered by its own id; its original's counters do not move."""
    ann, bob = await people.users(2)
    root = (await people.status(ann))["id"]
    repost = (await people.status(bob, "", origin=root))["id"]
    await store.likes.like(ann, repost, IdempotencyKey.generate())
    await store.favorites.add(ann, repost, IdempotencyKey.generate())
    await store.comments.create(ann, repost, "thanks", IdempotencyKey.generate())
    reply = await people.status(ann, "thanks", in_reply_to=repost)
    assert (reply["in_reply_to"], reply["conversation"]) == (repost, repost)
    shown = await got(store, bob, repost)
    assert (shown["likes"], shown["comments"]) == (1, 1)
    assert (shown["original"]["likes"], shown["original"]["comments"]) == (0, 0)
    assert await notices(store, bob) == [("like", ann), ("comment", ann), ("reply", ann)]


async def test_the_original_gone_is_shown_as_gone(store: Store, people: People) -> None:
    """Repost and quote stay; neither can be reposted to it any more, the quote itself can."""
    ann, bob, eve = await people.users(3)
    root = (await people.status(ann))["id"]
    repost = (await people.status(bob, "", origin=root))["id"]
    quote = (await people.status(bob, "look", origin=root))["id"]
    await store.statuses.delete(ann, root, IdempotencyKey.generate())
    for one in (repost, quote):
        assert (await got(store, eve, one))["original"] is None
    with pytest.raises(NotFound) as refusal:
        await people.status(eve, "", origin=repost)
    assert refusal.value.param == "origin"
    assert (await people.status(eve, "", origin=quote))["original"]["message"] == "look"


async def test_what_is_not_seen_cannot_be_reposted(store: Store, people: People, raw: "redis.Redis") -> None:
    """With or without words: 404 of `origin`; nothing changes."""
    unseen = await soon_unseen(people)
    bob = unseen.users[1]
    await hide(store, unseen)
    before = whole(raw)
    for status in unseen.statuses:
        for message in ("", "look"):
            with pytest.raises(NotFound) as refusal:
                await people.status(bob, message, origin=status)
            assert refusal.value.param == "origin"
    assert whole(raw) == before


async def test_what_is_protected_is_reposted_by_its_author_only(
    store: Store, people: People, raw: "redis.Redis"
) -> None:
    """A follower sees it and may not pass it on; neither what was protected when it was written."""
    ann, friend = await people.users(2)
    open_ = (await people.status(ann))["id"]
    await protect(store, ann)
    await befriend(store, friend, ann)
    closed = (await people.status(ann))["id"]
    before = whole(raw)
    for status in (open_, closed):
        with pytest.raises(BadRequest) as refusal:
            await people.status(friend, "", origin=status)
        assert refusal.value.param == "origin"
    assert whole(raw) == before
    own = await people.status(ann, "", origin=closed)
    assert (await told(store, "post"))[-1].audience == f"followers:{ann}"
    assert own["original"]["id"] == closed
    await protect(store, ann, on=False)
    with pytest.raises(BadRequest):
        await people.status(friend, "", origin=closed)
    assert (await people.status(friend, "", origin=open_))["origin"] == open_


async def test_what_is_in_a_group_is_reposted_there_only(store: Store, people: People, raw: "redis.Redis") -> None:
    """Into another group or into the open: refused; what is open may be passed on into a group."""
    ann, bob = await people.users(2)
    here, there = await group(store, "private", ann, bob), await group(store, "public", bob)
    inside = (await people.status(ann, group=here))["id"]
    outside = (await people.status(ann))["id"]
    before = whole(raw)
    for target in (None, there):
        with pytest.raises(BadRequest) as refusal:
            await people.status(bob, "look", origin=inside, group=target)
        assert refusal.value.param == "origin"
    assert whole(raw) == before
    assert (await people.status(bob, "", origin=inside, group=here))["group"] == here
    assert (await people.status(bob, "look", origin=outside, group=here))["original"]["id"] == outside


async def test_who_does_not_see_the_original(store: Store, people: People) -> None:
    """A repost without words is then not seen at all; of a quote the words are, with null inside."""
    ann, bob, viewer = await people.users(3)
    root = (await people.status(ann))["id"]
    repost = (await people.status(bob, "", origin=root))["id"]
    quote = (await people.status(bob, "look", origin=root))["id"]
    await store.blocks.block(ann, viewer, IdempotencyKey.generate())
    with pytest.raises(NotFound):
        await store.statuses.get(viewer, repost)
    assert (await got(store, viewer, quote))["original"] is None
    assert ids(await store.timelines.read_profile(viewer, bob, PageRequest())) == [quote]
    for refused in (
        store.likes.like(viewer, repost, IdempotencyKey.generate()),
        store.comments.create(viewer, repost, "x", IdempotencyKey.generate()),
        people.status(viewer, "", origin=repost),
        people.status(viewer, "x", in_reply_to=repost),
    ):
        with pytest.raises(NotFound):
            await refused
    assert (await store.likes.like(viewer, quote, IdempotencyKey.generate())).like_count == 1
    (entry,) = await told(store, "like")
    assert "original" not in entry.wire["status"]


async def test_a_mention_in_a_quote_does_not_show_what_is_quoted(store: Store, people: People) -> None:
    """Who is mentioned there and may not see the original is told of the words alone."""
    ann, bob, blocked, plain = await people.users(4)
    root = (await people.status(ann, "not for u2"))["id"]
    await store.blocks.block(ann, blocked, IdempotencyKey.generate())
    await people.status(bob, "@u2 @u3 look", origin=root)
    told_to = {one.audience: one.wire["notification"] for one in await told(store, "notification")}
    assert told_to[f"users:{blocked}"]["status"]["original"] is None
    assert told_to[f"users:{plain}"]["status"]["original"]["message"] == "not for u2"


async def test_a_repost_speaks_the_language_of_its_original(store: Store, people: People) -> None:
    """`language` goes by what is read; a quote has its own."""
    ann, bob = await people.users(2)
    root = (await people.status(ann, "hallo", lang="de"))["id"]
    assert (await people.status(bob, "", origin=root, lang="en"))["lang"] == "de"
    assert (await people.status(bob, "look", origin=root, lang="en"))["lang"] == "en"
