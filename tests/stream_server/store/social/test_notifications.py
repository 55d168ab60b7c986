"""Notifications: their sources, who gets none, and what removes them."""

import asyncio
import json
import random
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import redis

from stream_server.events.position import LOG_START
from stream_server.store import keys
from stream_server.store.pagination import PageRequest
from stream_server.store.redis.scripts import SizeLimits
from stream_server.store.store import Store
from tests.stream_server.store.job_queue import drain
from tests.stream_server.store.people import People, new_key, open_store, unread
from tests.stream_server.store.scenes import notifications


async def kinds(store: Store, uid: str) -> list[str]:
    return [one["kind"] for one in await notifications(store, uid)]


async def live(store: Store, uid: str) -> list[bytes]:
    """The JSON of a user's notification entries on the log, oldest first."""
    entries = await store.log.read(LOG_START, 1000)
    begin, end = b'{"wire":{"notification":', b"}}"
    bodies = [entry.body for entry in entries if (entry.kind, entry.audience) == ("notification", f"users:{uid}")]
    assert all(body.startswith(begin) and body.endswith(end) for body in bodies)
    return [body[len(begin) : -len(end)] for body in bodies]


async def follow(store: Store, source: str, target: str) -> None:
    await store.follows.follow(source, target, new_key())


async def protect(store: Store, *uids: str) -> None:
    for uid in uids:
        await store.users.update(uid, {"protected": True}, new_key())


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
    assert await notifications(store, bob) == []


async def test_requests_and_approvals_are_notified(store: Store, people: People) -> None:
    ann, bob = [await people.user(login) for login in ("ann", "bob")]
    await protect(store, ann)
    await follow(store, bob, ann)
    assert await kinds(store, ann) == ["request"]
    await store.follow_requests.approve(ann, bob, new_key())
    assert "request" not in await kinds(store, ann)
    assert await kinds(store, bob) == ["approve"]


async def test_a_mention_in_a_comment_is_notified_with_the_comment(store: Store, people: People) -> None:
    ann, bob, cyd = [await people.user(login) for login in ("ann", "bob", "cyd")]
    status = (await people.status(ann, "mine"))["id"]
    await store.comments.create(bob, status, "@cyd look", new_key())
    (mention,) = await notifications(store, cyd)
    assert (mention["kind"], mention["comment"]["message"]) == ("mention", "@cyd look")
    assert await kinds(store, ann) == ["comment"]


async def test_the_page_has_the_bytes_of_the_live_entry(store: Store, people: People, raw: "redis.Redis") -> None:
    ann, bob = [await people.user(login) for login in ("ann", "bob")]
    status = (await people.status(ann, "mine"))["id"]
    comment = store.comments.create
    actions: list[Callable[[], Awaitable[object]]] = [
        lambda: people.status(bob, "hi @ann"),
        lambda: people.status(bob, "indeed", in_reply_to=status),
        lambda: people.status(bob, "", origin=status),
        lambda: people.status(bob, "look", origin=status),
        lambda: follow(store, bob, ann),
        lambda: store.likes.like(bob, status, new_key()),
        lambda: comment(bob, status, "well", new_key()),
        lambda: comment(bob, status, "@ann!", new_key()),
    ]
    for number, action in enumerate(actions, 1):
        await action()
        entries = await live(store, ann)
        assert len(entries) == number
        page = await store.notifications.list_notifications(ann, PageRequest(count=1))
        assert page.items[0] == entries[-1]


async def test_a_hidden_original_is_neither_on_the_page_nor_in_the_entry(
    store: Store, people: People, raw: "redis.Redis"
) -> None:
    ann, bob, cyd = [await people.user(login) for login in ("ann", "bob", "cyd")]
    block(raw, cyd, ann)
    secret = (await people.status(cyd, "not for ann"))["id"]
    await people.status(bob, "@ann see", origin=secret)
    (entry,) = await live(store, ann)
    assert json.loads(entry)["status"]["original"] is None
    assert (await store.notifications.list_notifications(ann, PageRequest())).items == [entry]


async def test_a_repeated_action_is_notified_once(store: Store, people: People) -> None:
    ann, bob = [await people.user(login) for login in ("ann", "bob")]
    status = (await people.status(ann, "mine"))["id"]
    for _ in range(3):
        await follow(store, bob, ann)
        await store.likes.like(bob, status, new_key())
    await people.status(bob, "@ann @Ann @ANN")
    await people.status(bob, "@ann yes", in_reply_to=status)
    assert (await kinds(store, ann))[::-1] == ["follow", "like", "mention", "reply"]
    assert len(await live(store, ann)) == 4


async def test_an_undone_action_removes_its_notification(store: Store, people: People, raw: "redis.Redis") -> None:
    ann, bob = [await people.user(login) for login in ("ann", "bob")]
    status = (await people.status(ann, "mine"))["id"]
    posts = [await people.status(bob, "@ann"), await people.status(bob, "", origin=status)]
    posts.append(await people.status(bob, "so", in_reply_to=status))
    await follow(store, bob, ann)
    await store.likes.like(bob, status, new_key())
    comment = json.loads(await store.comments.create(bob, status, "@ann", new_key()))["id"]
    assert await unread(store, ann) == len(await notifications(store, ann)) == 6
    await store.follows.unfollow(bob, ann, new_key())
    await store.likes.unlike(bob, status, new_key())
    await store.comments.delete(bob, comment, new_key())
    for post in posts:
        await store.statuses.delete(bob, post["id"], new_key())
    assert await notifications(store, ann) == []
    assert await unread(store, ann) == 0
    assert raw.zrange(keys.key_for("notices", ann), 0, -1) == []
    await protect(store, ann)
    undoing: list[Callable[[], Awaitable[object]]] = [
        lambda: store.follows.unfollow(bob, ann, new_key()),
        lambda: store.follow_requests.refuse(ann, bob, new_key()),
    ]
    for undo in undoing:
        await follow(store, bob, ann)
        assert await kinds(store, ann) == ["request"]
        await undo()
        assert await notifications(store, ann) == []


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


async def test_deleted_mentions_do_not_push_others_out(redis_url: str) -> None:
    async with open_store(redis_url, size_limits=SizeLimits(timeline_max=4)) as store:
        people = People(store)
        ann, bob, eve = [await people.user(login) for login in ("ann", "bob", "eve")]
        await people.status(bob, "hi @ann")
        for _ in range(6):
            await store.statuses.delete(eve, (await people.status(eve, "@ann"))["id"], new_key())
        assert await kinds(store, ann) == ["mention"]


@pytest.mark.parametrize("hide", [mute, block])
@pytest.mark.parametrize("when", ["before", "since"])
async def test_actions_of_muted_and_blocked_users_are_hidden(
    store: Store, people: People, raw: "redis.Redis", hide: Any, when: str
) -> None:
    ann, bob = [await people.user(login) for login in ("ann", "bob")]
    if when == "before":
        hide(raw, ann, bob)
        await people.status(bob, "@ann")
        assert await live(store, ann) == []
    else:
        await one_of_each(store, people, ann, bob)
        hide(raw, ann, bob)
    assert await notifications(store, ann) == []
    assert await unread(store, ann) == 0
    raw.delete(f"{{core}}:mutes:{ann}", f"{{core}}:blocks:{ann}", f"{{core}}:blockers:{bob}")
    assert len(await notifications(store, ann)) == (7 if when == "since" else 0)


async def test_no_action_of_a_muted_user_is_notified(store: Store, people: People, raw: "redis.Redis") -> None:
    ann, bob = [await people.user(login) for login in ("ann", "bob")]
    mute(raw, ann, bob)
    await one_of_each(store, people, ann, bob)
    assert await live(store, ann) == []
    raw.delete(f"{{core}}:mutes:{ann}")
    assert await notifications(store, ann) == []


async def test_notifications_by_a_suspended_user_are_hidden_until_reinstated(store: Store, people: People) -> None:
    ann, bob, root = [await people.user(login) for login in ("ann", "bob", "root")]
    expected = await one_of_each(store, people, ann, bob)
    await store.suspensions.suspend(root, bob, new_key())
    assert await notifications(store, ann) == []
    await store.suspensions.reinstate(root, bob, new_key())
    assert (await kinds(store, ann))[::-1] == expected


async def test_own_actions_are_not_notified(store: Store, people: People) -> None:
    ann = await people.user("ann")
    status = (await people.status(ann, "mine, @ann"))["id"]
    await people.status(ann, "@ann and so", in_reply_to=status)
    await people.status(ann, "", origin=status)
    await store.likes.like(ann, status, new_key())
    await store.comments.create(ann, status, "@ann", new_key())
    assert await notifications(store, ann) == []
    assert await live(store, ann) == []


async def test_mentions_by_a_protected_user_notify_followers_only(store: Store, people: People) -> None:
    ann, bob, cyd = [await people.user(login) for login in ("ann", "bob", "cyd")]
    await follow(store, ann, bob)
    await protect(store, bob)
    await people.status(bob, "@ann and @cyd")
    open_status = (await people.status(cyd, "open"))["id"]
    await store.comments.create(bob, open_status, "@ann see", new_key())
    assert await kinds(store, ann) == ["mention", "mention"]
    assert await notifications(store, cyd) == []
    assert await live(store, cyd) == []


async def test_actions_in_a_private_group_notify_members_only(store: Store, people: People) -> None:
    ann, bob, cyd = [await people.user(login) for login in ("ann", "bob", "cyd")]
    group = json.loads(await store.groups.create(ann, "g", "private", "", new_key()))["id"]
    await store.groups.add_member(ann, group, bob, new_key())
    await protect(store, bob)
    status = (await people.status(ann, "inside", group=group))["id"]
    await people.status(bob, "@ann @cyd hello", group=group)
    await store.comments.create(bob, status, "@cyd hm", new_key())
    await store.likes.like(bob, status, new_key())
    assert (await kinds(store, ann))[::-1] == ["mention", "comment", "like"]
    assert await notifications(store, cyd) == []
    await people.status(ann, "@bob see", group=group)
    assert await kinds(store, bob) == ["mention"]
    await store.groups.remove_member(ann, group, bob, new_key())
    assert await notifications(store, bob) == []


async def test_a_mention_under_a_muted_users_status_is_notified(
    store: Store, people: People, raw: "redis.Redis"
) -> None:
    ann, bob, cyd = [await people.user(login) for login in ("ann", "bob", "cyd")]
    mute(raw, ann, cyd)
    status = (await people.status(cyd, "boring"))["id"]
    await store.comments.create(bob, status, "@ann not at all", new_key())
    (mention,) = await notifications(store, ann)
    assert (mention["source"]["id"], mention["status"]["id"]) == (bob, status)


async def test_the_page_shows_what_is_visible_now(store: Store, people: People) -> None:
    ann, bob = [await people.user(login) for login in ("ann", "bob")]
    await people.status(bob, "@ann")
    await protect(store, bob)
    assert await notifications(store, ann) == []


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
