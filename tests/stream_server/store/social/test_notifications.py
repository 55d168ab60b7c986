"""Notifications: their sources, who gets none, and what removes them."""

import asyncio
import json
import random
from typing import Any

import pytest
import redis

from stream_server.events.position import LOG_START
from stream_server.store import keys
from stream_server.store.pagination import PageRequest
from stream_server.store.redis.script_settings import SizeLimits
from stream_server.store.store import Store
from tests.stream_server.store.job_queue import drain
from tests.stream_server.store.people import People, new_key, open_store
from tests.stream_server.store.scenes import items_of, notifications, protect, told


async def kinds(store: Store, uid: str) -> list[str]:
    return [one["kind"] for one in await notifications(store, uid)]


async def follow(store: Store, source: str, target: str) -> None:
    await store.follows.follow(source, target, new_key())


def mute(raw: "redis.Redis", source: str, target: str) -> None:
    """Write the mute directly, without an entry on the log."""
    raw.zadd(f"{{core}}:mutes:{source}", {target: 1})


def block(raw: "redis.Redis", source: str, target: str) -> None:
    """Write the block directly, as in `mute`."""
    raw.zadd(f"{{core}}:blocks:{source}", {target: 1})
    raw.zadd(f"{{core}}:blockers:{target}", {source: 1})


async def one_of_each(store: Store, people: People, ann: str, bob: str) -> list[str]:
    """Bob does every public action towards Ann once. Returns the kinds of notification in order."""
    status = (await people.status(ann, "mine"))["id"]
    await people.status(bob, "hi @ann")
    await people.status(bob, "indeed", in_reply_to=status)
    await people.status(bob, "", origin=status)
    await people.status(bob, "look", origin=status)
    await follow(store, bob, ann)
    await store.likes.like(bob, status, new_key())
    await store.comments.create(bob, status, "well", new_key())
    return ["mention", "reply", "repost", "quote", "follow", "like", "comment"]


async def test_each_kind_of_notification_has_source_and_subject(store: Store, people: People) -> None:
    ann, bob = [await people.user(login) for login in ("ann", "bob")]
    expected = await one_of_each(store, people, ann, bob)
    found = await notifications(store, ann)
    assert [one["kind"] for one in found][::-1] == expected
    by_kind = {one["kind"]: one for one in found}
    assert {one["source"]["id"] for one in found} == {bob}
    assert not any(one["read"] for one in found)
    assert [one["id"] for one in found] == sorted((one["id"] for one in found), key=int, reverse=True)
    assert by_kind["mention"]["status"]["message"] == "hi @ann"
    assert by_kind["reply"]["status"]["in_reply_to_uid"] == ann
    assert by_kind["repost"]["status"]["original"]["message"] == "mine"
    assert by_kind["quote"]["status"]["message"] == "look"
    assert by_kind["like"]["status"]["message"] == "mine"
    assert by_kind["comment"]["comment"]["message"] == "well"
    assert by_kind["comment"]["status"]["message"] == "mine"
    assert "status" not in by_kind["follow"]
    mention, _, repost, quote = [json.loads(one)["status"] for one in (await told(store, ann))[:4]]
    originals = [repost["original"]["message"], quote["original"]["message"]]
    assert ("original" in mention, originals) == (False, ["mine", "mine"])
    assert await notifications(store, bob) == []


async def test_a_muted_user_notifies_nobody_of_anything_also_not_after_the_mute(
    store: Store, people: People, raw: "redis.Redis"
) -> None:
    ann, bob = [await people.user(login) for login in ("ann", "bob")]
    mute(raw, ann, bob)
    await one_of_each(store, people, ann, bob)
    raw.delete(f"{{core}}:mutes:{ann}")
    assert (await kinds(store, ann), await told(store, ann)) == ([], [])


async def test_a_protected_user_who_is_not_followed_notifies_too(store: Store, people: People) -> None:
    ann, bob = [await people.user(login) for login in ("ann", "bob")]
    status = (await people.status(ann, "mine"))["id"]
    await protect(store, bob)
    await store.likes.like(bob, status, new_key())
    await follow(store, bob, ann)
    assert await kinds(store, ann) == ["follow", "like"]
    assert len(await told(store, ann)) == 2


async def test_a_comment_shows_the_status_of_a_muted_author_to_whom_it_mentions(
    store: Store, people: People, raw: "redis.Redis"
) -> None:
    ann, bob, eve = [await people.user(login) for login in ("ann", "bob", "eve")]
    status = (await people.status(ann, "mine"))["id"]
    mute(raw, eve, ann)
    await store.comments.create(bob, status, "well @eve", new_key())
    (entry,) = await told(store, eve)
    assert json.loads(entry)["status"]["id"] == status


async def test_a_hidden_original_is_neither_on_the_page_nor_in_the_entry(
    store: Store, people: People, raw: "redis.Redis"
) -> None:
    ann, bob, cyd = [await people.user(login) for login in ("ann", "bob", "cyd")]
    block(raw, cyd, ann)
    secret = (await people.status(cyd, "not for ann"))["id"]
    await people.status(bob, "@ann see", origin=secret)
    (entry,) = await told(store, ann)
    assert json.loads(entry)["status"]["original"] is None
    assert items_of(await store.notifications.list_notifications(ann, PageRequest())) == [entry]


async def test_one_entry_tells_all_who_get_the_same_notification(
    store: Store, people: People, raw: "redis.Redis"
) -> None:
    """Eve may not see the original. Its author is quoted and answered, which are two notifications.

    So a server of version 1.0, which knows no entry that differs for its receivers, shows each of them rightly.
    """
    ann, bob, cyd, eve = [await people.user(login) for login in ("ann", "bob", "cyd", "eve")]
    block(raw, cyd, eve)
    quoted = (await people.status(cyd, "mine"))["id"]
    await people.status(bob, "@ann @eve @bob @cyd see", origin=quoted, in_reply_to=quoted)
    entries = [entry for entry in await store.log.read(LOG_START, 100) if entry.kind == "notification"]
    assert [entry.audience for entry in entries] == [f"users:{cyd}", f"users:{cyd}", f"users:{ann}", f"users:{eve}"]
    shown = {uid: [json.loads(one) for one in await told(store, uid)] for uid in (ann, bob, cyd, eve)}
    kinds_and_originals = {
        uid: [(one["kind"], one["status"]["original"] is not None) for one in notes] for uid, notes in shown.items()
    }
    assert kinds_and_originals == {
        ann: [("mention", True)], bob: [], cyd: [("quote", True), ("reply", True)], eve: [("mention", False)]
    }  # fmt: skip
    for uid in (ann, cyd, eve):
        kept = items_of(await store.notifications.list_notifications(uid, PageRequest()))
        assert [json.loads(one) for one in kept[::-1]] == shown[uid], "the page has the same ids and texts"


async def test_deleting_a_status_removes_notifications_of_its_reactions(
    store: Store, people: People, raw: "redis.Redis"
) -> None:
    ann, bob, eve = [await people.user(login) for login in ("ann", "bob", "eve")]
    status = (await people.status(ann, "mine"))["id"]
    await store.likes.like(bob, status, new_key())
    await store.comments.create(bob, status, "well @eve", new_key())
    await people.status(bob, "indeed", in_reply_to=status)
    await store.statuses.delete(ann, status, new_key())
    assert await kinds(store, ann) == ["reply"]
    await drain(store, raw)
    assert [raw.zcard(keys.key_for("notices", uid)) for uid in (ann, bob, eve)] == [1, 0, 0]


async def do_and_undo(kind: str, store: Store, source: str, status: str) -> None:
    """Notify Ann, the author of ``status``, by an action of this kind, and undo the action."""
    posts: dict[str, dict[str, Any]] = {
        "mention": {"message": "@ann"}, "reply": {"in_reply_to": status}, "repost": {"message": "", "origin": status},
        "quote": {"origin": status},
    }  # fmt: skip
    if kind in posts:
        await store.statuses.delete(source, (await People(store).status(source, **posts[kind]))["id"], new_key())
    elif kind == "like":
        await store.likes.like(source, status, new_key())
        await store.likes.unlike(source, status, new_key())
    else:
        made = json.loads(await store.comments.create(source, status, "well", new_key()))
        await store.comments.delete(source, made["id"], new_key())


@pytest.mark.parametrize("kind", ["mention", "reply", "repost", "quote", "like", "comment"])
async def test_what_was_undone_pushes_no_notification_out(redis_url: str, kind: str) -> None:
    async with open_store(redis_url, size_limits=SizeLimits(timeline_max=4)) as store:
        people = People(store)
        ann, bob, eve = [await people.user(login) for login in ("ann", "bob", "eve")]
        status = (await people.status(ann, "mine"))["id"]
        await people.status(bob, "hi @ann")
        for _ in range(6):
            await do_and_undo(kind, store, eve, status)
        assert await kinds(store, ann) == ["mention"]


async def test_concurrent_actions_leave_no_notification_without_its_subject(
    store: Store, people: People, raw: "redis.Redis"
) -> None:
    ann, *others = await people.users(6)
    status = (await people.status(ann, "mine"))["id"]

    async def fidget(number: int) -> None:
        uid, chance = others[number % 5], random.Random(number)
        for _ in range(10):
            action = chance.choice((store.likes.like, store.likes.unlike))
            await action(uid, status, new_key())
            bond = chance.choice((store.follows.follow, store.follows.unfollow))
            await bond(uid, ann, new_key())

    await asyncio.gather(*(fidget(number) for number in range(20)))
    by_kind: dict[str, list[str]] = {"like": [], "follow": []}
    for one in await notifications(store, ann, count=200):
        by_kind[one["kind"]].append(one["source"]["id"])
    kept: list[Any] = [raw.zrange(key, 0, -1) for key in (f"{{core}}:likes:{status}", f"{{core}}:followers:{ann}")]
    likers, followers = [sorted(uid.decode() for uid in members) for members in kept]
    assert sorted(by_kind["like"]) == likers
    assert sorted(by_kind["follow"]) == followers
