"""What one may not see is not there: each verb on a status, for each who is kept from it."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import redis

from stream_server.errors import ApiError, NotFound
from stream_server.store.idempotency import IdempotencyKey
from stream_server.store.pagination import PageRequest
from stream_server.store.store import Store
from tests.stream_server.store.people import People
from tests.stream_server.store.scenes import befriend, group, ids, protect, suspend, whole

Verb = Callable[[Store, str, str], Awaitable[Any]]

VERBS: dict[str, Verb] = {
    "get": lambda s, who, status: s.statuses.get(who, status),
    "like": lambda s, who, status: s.likes.like(who, status, IdempotencyKey.generate()),
    "unlike": lambda s, who, status: s.likes.unlike(who, status, IdempotencyKey.generate()),
    "has liked": lambda s, who, status: s.likes.has_liked(who, status, who),
    "who likes": lambda s, who, status: s.likes.list_likers(who, status, PageRequest()),
    "keep": lambda s, who, status: s.favorites.add(who, status, IdempotencyKey.generate()),
    "drop": lambda s, who, status: s.favorites.remove(who, status, IdempotencyKey.generate()),
    "has kept": lambda s, who, status: s.favorites.is_favorite(who, status),
    "comment": lambda s, who, status: s.comments.create(who, status, "x", IdempotencyKey.generate()),
    "comments": lambda s, who, status: s.comments.list_comments(who, status, PageRequest()),
    "reply": lambda s, who, status: People(s).status(who, "x", in_reply_to=status),
    "repost": lambda s, who, status: People(s).status(who, "", origin=status),
    "quote": lambda s, who, status: People(s).status(who, "x", origin=status),
    "reposts": lambda s, who, status: s.timelines.read_reposts(who, status, PageRequest()),
    "replies": lambda s, who, status: s.timelines.read_replies(who, status, PageRequest()),
    "conversation": lambda s, who, status: s.timelines.read_conversation(who, status, PageRequest()),
    "delete": lambda s, who, status: s.statuses.delete(who, status, IdempotencyKey.generate()),
}
"""Everything that is done with one status, by whom, by its id."""

KEPT_FROM = ["the protected", "the blocking", "the blocked", "the suspended", "a private group", "the deleted"]


async def status_of(kind: str, store: Store, author: str, viewer: str) -> str:
    """A status of the author, from which the viewer is kept by that."""
    people = People(store)
    if kind == "a private group":
        return str((await people.status(author, group=await group(store, "private", author)))["id"])
    status = str((await people.status(author))["id"])
    if kind == "the protected":
        await protect(store, author)
    elif kind == "the blocking":
        await store.blocks.block(author, viewer, IdempotencyKey.generate())
    elif kind == "the blocked":
        await store.blocks.block(viewer, author, IdempotencyKey.generate())
    elif kind == "the suspended":
        await suspend(store, viewer, author)
    else:
        await store.statuses.delete(author, status, IdempotencyKey.generate())
    return status


@pytest.mark.parametrize("kind", KEPT_FROM)
async def test_each_verb_takes_it_for_what_does_not_exist(
    store: Store, people: People, raw: "redis.Redis", kind: str
) -> None:
    """The refusal is the one of an id that there never was, to the letter; nothing is changed."""
    author, viewer = await people.users(2)
    status = await status_of(kind, store, author, viewer)
    before = whole(raw)
    for name, verb in VERBS.items():
        refusals = []
        for asked in (status, "1"):
            with pytest.raises(NotFound) as refusal:
                await verb(store, viewer, asked)
            refusals.append(refusal.value.body())
        assert refusals[0] == refusals[1], name
    assert await store.statuses.get_many(viewer, [status, "1"]) == []
    assert whole(raw) == before


async def test_each_verb_works_on_what_is_seen(store: Store, people: People) -> None:
    """The test above can fail: with nothing between the two each goes well, but for deleting what is another's."""
    author, viewer = await people.users(2)
    status = (await people.status(author))["id"]
    for name, verb in VERBS.items():
        if name == "delete":
            with pytest.raises(ApiError) as refusal:
                await verb(store, viewer, status)
            assert refusal.value.error_code == "not_yours"
        else:
            await verb(store, viewer, status)


async def test_the_suspended_do_nothing(store: Store, people: People, raw: "redis.Redis") -> None:
    """Each verb that writes refuses them as such, and changes nothing."""
    author, sue = await people.users(2)
    status = (await people.status(author))["id"]
    await suspend(store, author, sue)
    before = whole(raw)
    for name in ("like", "unlike", "keep", "drop", "comment", "reply", "repost", "quote"):
        with pytest.raises(ApiError) as refusal:
            await VERBS[name](store, sue, status)
        assert refusal.value.error_code == "suspended", name
    assert whole(raw) == before


async def test_the_muted_are_there_when_asked_for(store: Store, people: People) -> None:
    """By id, on their profile, among one's own likes; not on a tag, among mentions or comments, or in a thread."""
    viewer, muted, ann = await people.users(3)
    await store.mutes.mute(viewer, muted, IdempotencyKey.generate())
    root = (await people.status(ann))["id"]
    status = (await people.status(muted, "@u0 #tag", in_reply_to=root))["id"]
    await store.comments.create(muted, root, "x", IdempotencyKey.generate())
    await store.likes.like(viewer, status, IdempotencyKey.generate())
    timelines = store.timelines
    assert ids(await store.statuses.get_many(viewer, [status])) == [status]
    assert ids(await timelines.read_profile(viewer, muted, PageRequest())) == [status]
    assert ids(await timelines.read_liked(viewer, viewer, PageRequest())) == [status]
    assert ids(await timelines.read_tag(viewer, "tag", PageRequest())) == []
    assert ids(await timelines.read_mentions(viewer, PageRequest())) == []
    assert ids(await timelines.read_conversation(viewer, root, PageRequest())) == [root]
    assert ids(await store.comments.list_comments(viewer, root, PageRequest())) == []


async def test_a_change_of_permission_holds_at_once(store: Store, people: People) -> None:
    """Protection, a follow, a block and their ends: what the next question says."""
    ann, bob = await people.users(2)
    status = (await people.status(ann))["id"]

    async def seen() -> bool:
        return bool(await store.statuses.get_many(bob, [status]))

    assert await seen()
    await protect(store, ann)
    assert not await seen()
    await befriend(store, bob, ann)
    assert await seen()
    await store.follows.unfollow(bob, ann, IdempotencyKey.generate())
    assert not await seen()
    await protect(store, ann, on=False)
    assert await seen()
    for source, target in ((ann, bob), (bob, ann)):
        await store.blocks.block(source, target, IdempotencyKey.generate())
        assert not await seen()
        await store.blocks.unblock(source, target, IdempotencyKey.generate())
        assert await seen()
