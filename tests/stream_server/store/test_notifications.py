"""Notifications: each source of them, who is not told, what is taken back, and the page and its read mark."""

import asyncio
import json
import random
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import redis

from stream_server.errors import InvalidCursor
from stream_server.events.position import LOG_START
from stream_server.store import keys
from stream_server.store.idempotency import IdempotencyKey
from stream_server.store.pagination import PageRequest
from stream_server.store.redis.scripts import SizeLimits
from stream_server.store.store import Store
from tests.stream_server.store.people import People
from tests.stream_server.store.queue import drain
from tests.waiting import PATIENCE


async def told(store: Store, uid: str, **piece: Any) -> list[dict[str, Any]]:
    """A user's notifications, decoded."""
    return [
        json.loads(item) for item in (await store.notifications.list_notifications(uid, PageRequest(**piece))).items
    ]


async def kinds(store: Store, uid: str) -> list[str]:
    """Their kinds, newest first."""
    return [one["kind"] for one in await told(store, uid)]


async def live(store: Store, uid: str) -> list[bytes]:
    """The notifications of a user as streams are told of them, oldest first."""
    entries = await store.log.read(LOG_START, 1000)
    begin, end = b'{"wire":{"notification":', b"}}"
    bodies = [entry.body for entry in entries if (entry.kind, entry.audience) == ("notification", f"users:{uid}")]
    assert all(body.startswith(begin) and body.endswith(end) for body in bodies)
    return [body[len(begin) : -len(end)] for body in bodies]


async def follow(store: Store, source: str, target: str) -> None:
    """Follow, or ask to."""
    await store.follows.follow(source, target, IdempotencyKey.generate())


async def protect(store: Store, *uids: str) -> None:
    """Make users protected."""
    for uid in uids:
        await store.users.update(uid, {"protected": True}, IdempotencyKey.generate())


def mute(raw: "redis.Redis", who: str, whom: str) -> None:
    """As if it had been asked for: this room does not test mutes."""
    raw.zadd(f"{{core}}:mutes:{who}", {whom: 1})


def block(raw: "redis.Redis", who: str, whom: str) -> None:
    """As :func:`mute`."""
    raw.zadd(f"{{core}}:blocks:{who}", {whom: 1})
    raw.zadd(f"{{core}}:blockers:{whom}", {who: 1})


async def one_of_each(store: Store, people: People, ann: str, bob: str) -> list[str]:
    """All that Bob can do to Ann in public; the kinds in their order."""
    status = (await people.status(ann, "mine"))["id"]
    await people.status(bob, "hi @ann")
    await people.status(bob, "indeed", in_reply_to=status)
    await people.status(bob, "", origin=status)
    await people.status(bob, "look", origin=status)
    await follow(store, bob, ann)
    await store.likes.like(bob, status, IdempotencyKey.generate())
    await store.comments.create(bob, status, "well", IdempotencyKey.generate())
    return ["mention", "reply", "repost", "quote", "follow", "like", "comment"]


async def test_each_deed_tells_whom_it_concerns(store: Store, people: People) -> None:
    """Each kind once, with who did it, the status or comment that it is about, and its time; not read yet."""
    ann, bob = [await people.user(login) for login in ("ann", "bob")]
    expected = await one_of_each(store, people, ann, bob)
    found = await told(store, ann)
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
    assert await told(store, bob) == []


async def test_requests_and_approvals_are_told(store: Store, people: People) -> None:
    """Who is protected hears of who asks, who asked hears of the approval; what was answered is no request any more."""
    ann, bob = [await people.user(login) for login in ("ann", "bob")]
    await protect(store, ann)
    await follow(store, bob, ann)
    assert await kinds(store, ann) == ["request"]
    await store.follow_requests.approve(ann, bob, IdempotencyKey.generate())
    assert "request" not in await kinds(store, ann)
    assert await kinds(store, bob) == ["approve"]


async def test_a_mention_in_a_comment_is_told(store: Store, people: People) -> None:
    """With the comment; the author of the status is told of the comment, and of it only once."""
    ann, bob, cyd = [await people.user(login) for login in ("ann", "bob", "cyd")]
    status = (await people.status(ann, "mine"))["id"]
    await store.comments.create(bob, status, "@cyd look", IdempotencyKey.generate())
    (mention,) = await told(store, cyd)
    assert (mention["kind"], mention["comment"]["message"]) == ("mention", "@cyd look")
    assert await kinds(store, ann) == ["comment"]


async def test_the_page_has_the_bytes_of_the_live_entry(store: Store, people: People, raw: "redis.Redis") -> None:
    """But for the counters that later deeds have changed: so each kind is compared right after its deed."""
    ann, bob = [await people.user(login) for login in ("ann", "bob")]
    status = (await people.status(ann, "mine"))["id"]
    comment = store.comments.create
    deeds: list[Callable[[], Awaitable[object]]] = [
        lambda: people.status(bob, "hi @ann"),
        lambda: people.status(bob, "indeed", in_reply_to=status),
        lambda: people.status(bob, "", origin=status),
        lambda: people.status(bob, "look", origin=status),
        lambda: follow(store, bob, ann),
        lambda: store.likes.like(bob, status, IdempotencyKey.generate()),
        lambda: comment(bob, status, "well", IdempotencyKey.generate()),
        lambda: comment(bob, status, "@ann!", IdempotencyKey.generate()),
    ]
    for number, deed in enumerate(deeds, 1):
        await deed()
        entries = await live(store, ann)
        assert len(entries) == number
        page = await store.notifications.list_notifications(ann, PageRequest(count=1))
        assert page.items[0] == entries[-1]


async def test_an_original_that_the_receiver_may_not_see_is_in_neither(
    store: Store, people: People, raw: "redis.Redis"
) -> None:
    """A quote of somebody who blocks the receiver is told of without what it quotes."""
    ann, bob, cyd = [await people.user(login) for login in ("ann", "bob", "cyd")]
    block(raw, cyd, ann)
    secret = (await people.status(cyd, "not for ann"))["id"]
    await people.status(bob, "@ann see", origin=secret)
    (entry,) = await live(store, ann)
    assert json.loads(entry)["status"]["original"] is None
    assert (await store.notifications.list_notifications(ann, PageRequest())).items == [entry]


async def test_twice_is_once(store: Store, people: People) -> None:
    """What is done again, or said twice in one status, is told once."""
    ann, bob = [await people.user(login) for login in ("ann", "bob")]
    status = (await people.status(ann, "mine"))["id"]
    for _ in range(3):
        await follow(store, bob, ann)
        await store.likes.like(bob, status, IdempotencyKey.generate())
    await people.status(bob, "@ann @Ann @ANN")
    await people.status(bob, "@ann yes", in_reply_to=status)
    assert (await kinds(store, ann))[::-1] == ["follow", "like", "mention", "reply"]
    assert len(await live(store, ann)) == 4


async def test_what_is_undone_is_taken_back(store: Store, people: People, raw: "redis.Redis") -> None:
    """Unfollowed, unliked, deleted, withdrawn, refused: it is not told of any more, and not unread."""
    ann, bob = [await people.user(login) for login in ("ann", "bob")]
    status = (await people.status(ann, "mine"))["id"]
    posts = [await people.status(bob, "@ann"), await people.status(bob, "", origin=status)]
    posts.append(await people.status(bob, "so", in_reply_to=status))
    await follow(store, bob, ann)
    await store.likes.like(bob, status, IdempotencyKey.generate())
    comment = json.loads(await store.comments.create(bob, status, "@ann", IdempotencyKey.generate()))["id"]
    assert await store.notifications.count_unread(ann) == len(await told(store, ann)) == 6
    await store.follows.unfollow(bob, ann, IdempotencyKey.generate())
    await store.likes.unlike(bob, status, IdempotencyKey.generate())
    await store.comments.delete(bob, comment, IdempotencyKey.generate())
    for post in posts:
        await store.statuses.delete(bob, post["id"], IdempotencyKey.generate())
    assert await told(store, ann) == []
    assert await store.notifications.count_unread(ann) == 0
    assert raw.zrange(keys.key_for("notices", ann), 0, -1) == []
    await protect(store, ann)
    undoing: list[Callable[[], Awaitable[object]]] = [
        lambda: store.follows.unfollow(bob, ann, IdempotencyKey.generate()),
        lambda: store.follow_requests.refuse(ann, bob, IdempotencyKey.generate()),
    ]
    for undo in undoing:
        await follow(store, bob, ann)
        assert await kinds(store, ann) == ["request"]
        await undo()
        assert await told(store, ann) == []


async def test_a_deleted_status_takes_what_was_done_to_it_along(
    store: Store, people: People, raw: "redis.Redis"
) -> None:
    """Its likes, comments and reposts are told of no more; replies are statuses of their own."""
    ann, bob, eve = [await people.user(login) for login in ("ann", "bob", "eve")]
    status = (await people.status(ann, "mine"))["id"]
    await store.likes.like(bob, status, IdempotencyKey.generate())
    await store.comments.create(bob, status, "well @eve", IdempotencyKey.generate())
    await people.status(bob, "indeed", in_reply_to=status)
    await store.statuses.delete(ann, status, IdempotencyKey.generate())
    assert await kinds(store, ann) == ["reply"]
    await drain(store, raw)
    assert [raw.zcard(keys.key_for("notices", uid)) for uid in (ann, bob, eve)] == [1, 0, 0]


async def test_deleted_mentions_crowd_nothing_out(redis_url: str) -> None:
    """Whoever mentions somebody and deletes it, over and over, takes none of their notifications away."""
    store = Store(redis_url, size_limits=SizeLimits(timeline_max=4), timeout_seconds=PATIENCE)
    await store.open()
    people = People(store)
    ann, bob, eve = [await people.user(login) for login in ("ann", "bob", "eve")]
    await people.status(bob, "hi @ann")
    for _ in range(6):
        await store.statuses.delete(eve, (await people.status(eve, "@ann"))["id"], IdempotencyKey.generate())
    assert await kinds(store, ann) == ["mention"]
    await store.close()


@pytest.mark.parametrize("hide", [mute, block])
@pytest.mark.parametrize("when", ["before", "since"])
async def test_of_the_muted_and_the_blocked_nothing_is_heard(
    store: Store, people: People, raw: "redis.Redis", hide: Any, when: str
) -> None:
    """Neither live, if it was so before, nor on the page, also if it is so since; both are back when it ends."""
    ann, bob = [await people.user(login) for login in ("ann", "bob")]
    if when == "before":
        hide(raw, ann, bob)
        await people.status(bob, "@ann")
        assert await live(store, ann) == []
    else:
        await one_of_each(store, people, ann, bob)
        hide(raw, ann, bob)
    assert await told(store, ann) == []
    assert await store.notifications.count_unread(ann) == 0
    raw.delete(f"{{core}}:mutes:{ann}", f"{{core}}:blocks:{ann}", f"{{core}}:blockers:{bob}")
    assert len(await told(store, ann)) == (7 if when == "since" else 0)


async def test_of_the_muted_no_deed_is_told_live(store: Store, people: People, raw: "redis.Redis") -> None:
    """Whatever it is about, also a follow, which is about nothing; nor does it wait for the end of the mute."""
    ann, bob = [await people.user(login) for login in ("ann", "bob")]
    mute(raw, ann, bob)
    await one_of_each(store, people, ann, bob)
    assert await live(store, ann) == []
    raw.delete(f"{{core}}:mutes:{ann}")
    assert await told(store, ann) == []


async def test_the_suspended_are_not_heard_of(store: Store, people: People) -> None:
    """Until they are reinstated."""
    ann, bob, root = [await people.user(login) for login in ("ann", "bob", "root")]
    expected = await one_of_each(store, people, ann, bob)
    await store.suspensions.suspend(root, bob, IdempotencyKey.generate())
    assert await told(store, ann) == []
    await store.suspensions.reinstate(root, bob, IdempotencyKey.generate())
    assert (await kinds(store, ann))[::-1] == expected


async def test_oneself_is_told_nothing(store: Store, people: People) -> None:
    """Who answers, likes, repeats and mentions oneself knows of it."""
    ann = await people.user("ann")
    status = (await people.status(ann, "mine, @ann"))["id"]
    await people.status(ann, "@ann and so", in_reply_to=status)
    await people.status(ann, "", origin=status)
    await store.likes.like(ann, status, IdempotencyKey.generate())
    await store.comments.create(ann, status, "@ann", IdempotencyKey.generate())
    assert await told(store, ann) == []
    assert await live(store, ann) == []


async def test_the_protected_reach_their_followers_only(store: Store, people: People) -> None:
    """A mention by a protected author is told to an approved follower, to nobody else, also not by a comment."""
    ann, bob, cyd = [await people.user(login) for login in ("ann", "bob", "cyd")]
    await follow(store, ann, bob)
    await protect(store, bob)
    await people.status(bob, "@ann and @cyd")
    open_status = (await people.status(cyd, "open"))["id"]
    await store.comments.create(bob, open_status, "@ann see", IdempotencyKey.generate())
    assert await kinds(store, ann) == ["mention", "mention"]
    assert await told(store, cyd) == []
    assert await live(store, cyd) == []


async def test_in_a_group_its_members_are_heard_and_nobody_outside(store: Store, people: People) -> None:
    """Also the protected ones among them; who leaves is told of nothing that was said inside."""
    ann, bob, cyd = [await people.user(login) for login in ("ann", "bob", "cyd")]
    group = json.loads(await store.groups.create(ann, "g", "private", "", IdempotencyKey.generate()))["id"]
    await store.groups.add_member(ann, group, bob, IdempotencyKey.generate())
    await protect(store, bob)
    status = (await people.status(ann, "inside", group=group))["id"]
    await people.status(bob, "@ann @cyd hello", group=group)
    await store.comments.create(bob, status, "@cyd hm", IdempotencyKey.generate())
    await store.likes.like(bob, status, IdempotencyKey.generate())
    assert (await kinds(store, ann))[::-1] == ["mention", "comment", "like"]
    assert await told(store, cyd) == []
    await people.status(ann, "@bob see", group=group)
    assert await kinds(store, bob) == ["mention"]
    await store.groups.remove_member(ann, group, bob, IdempotencyKey.generate())
    assert await told(store, bob) == []


async def test_it_is_the_source_who_must_not_be_muted(store: Store, people: People, raw: "redis.Redis") -> None:
    """A mention in a comment is told, also where it stands under a status of somebody muted."""
    ann, bob, cyd = [await people.user(login) for login in ("ann", "bob", "cyd")]
    mute(raw, ann, cyd)
    status = (await people.status(cyd, "boring"))["id"]
    await store.comments.create(bob, status, "@ann not at all", IdempotencyKey.generate())
    (mention,) = await told(store, ann)
    assert (mention["source"]["id"], mention["status"]["id"]) == (bob, status)


async def test_what_became_protected_since_is_not_shown(store: Store, people: People) -> None:
    """The page goes by what may be seen now."""
    ann, bob = [await people.user(login) for login in ("ann", "bob")]
    await people.status(bob, "@ann")
    await protect(store, bob)
    assert await told(store, ann) == []


async def test_pages_are_full_and_fit_together(store: Store, people: People) -> None:
    """Though most of what is kept may not be shown; forth and back, each once."""
    ann, bob = [await people.user(login) for login in ("ann", "bob")]
    posts = [await people.status(bob, f"@ann {number}") for number in range(300)]
    for number, post in enumerate(posts):
        if number % 20:
            await store.statuses.delete(bob, post["id"], IdempotencyKey.generate())
    expected = [post["id"] for number, post in enumerate(posts) if not number % 20][::-1]
    seen: list[str] = []
    page = await store.notifications.list_notifications(ann, PageRequest(count=4))
    while True:
        seen += [json.loads(item)["status"]["id"] for item in page.items]
        if page.next is None:
            break
        assert len(page.items) == 4
        page = await store.notifications.list_notifications(ann, PageRequest(count=4, before=page.next))
    assert seen == expected
    back = await store.notifications.list_notifications(ann, PageRequest(count=200, after=page.prev))
    assert [json.loads(item)["status"]["id"] for item in back.items] == expected[: -len(page.items)]


async def test_a_cursor_belongs_to_its_list(store: Store, people: People) -> None:
    """Another's cursor, and what is none, are refused."""
    ann, bob = [await people.user(login) for login in ("ann", "bob")]
    for _ in range(2):
        await people.status(bob, "@ann")
        await people.status(ann, "@bob")
    theirs = (await store.notifications.list_notifications(bob, PageRequest(count=1))).next
    for cursor in (theirs, "x", "1-2"):
        with pytest.raises(InvalidCursor):
            await store.notifications.list_notifications(ann, PageRequest(before=cursor))


async def test_only_the_newest_are_kept(redis_url: str) -> None:
    """As many as a timeline is long."""
    store = Store(redis_url, size_limits=SizeLimits(timeline_max=5), timeout_seconds=PATIENCE)
    await store.open()
    people = People(store)
    ann, bob = [await people.user(login) for login in ("ann", "bob")]
    posts = [await people.status(bob, f"@ann {number}") for number in range(8)]
    found = await told(store, ann, count=200)
    assert [one["status"]["id"] for one in found] == [post["id"] for post in posts[:2:-1]]
    assert await store.notifications.count_unread(ann) == 5
    await store.close()


async def test_races_leave_no_notification_without_its_deed(store: Store, people: People, raw: "redis.Redis") -> None:
    """Twenty tasks that do and undo: who is told of at the end is who likes and follows, and nobody twice."""
    ann, *others = await people.users(6)
    status = (await people.status(ann, "mine"))["id"]

    async def fidget(number: int) -> None:
        uid, chance = others[number % 5], random.Random(number)
        for _ in range(10):
            deed = chance.choice((store.likes.like, store.likes.unlike))
            await deed(uid, status, IdempotencyKey.generate())
            bond = chance.choice((store.follows.follow, store.follows.unfollow))
            await bond(uid, ann, IdempotencyKey.generate())

    await asyncio.gather(*(fidget(number) for number in range(20)))
    by_kind: dict[str, list[str]] = {"like": [], "follow": []}
    for one in await told(store, ann, count=200):
        by_kind[one["kind"]].append(one["source"]["id"])
    kept: list[Any] = [raw.zrange(key, 0, -1) for key in (f"{{core}}:likes:{status}", f"{{core}}:followers:{ann}")]
    likers, followers = [sorted(uid.decode() for uid in members) for members in kept]
    assert sorted(by_kind["like"]) == likers
    assert sorted(by_kind["follow"]) == followers
