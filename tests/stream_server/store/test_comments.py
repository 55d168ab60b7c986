"""Comments: in order, counted, told to those concerned, and seen like what their authors write."""

import json
from typing import Any

import pytest
import redis

from stream_server.errors import Forbidden, NotFound
from stream_server.events.position import format_iso_time
from stream_server.store import keys
from stream_server.store.idempotency import IdempotencyKey
from stream_server.store.pagination import PageRequest
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


async def comment(store: Store, uid: str, status: str, message: str = "well") -> dict[str, Any]:
    """A new comment, decoded."""
    made: dict[str, Any] = json.loads(await store.comments.create(uid, status, message, IdempotencyKey.generate()))
    return made


async def page(store: Store, viewer: str, status: str) -> list[str]:
    """The ids of the comments that a viewer sees."""
    return ids(await store.comments.list_comments(viewer, status, PageRequest()))


async def test_a_comment_is_kept_counted_and_told(store: Store, people: People, raw: "redis.Redis") -> None:
    """The same JSON as answer, entry, by id and on the page; the count is in the entry and on the status."""
    ann, bob = await people.users(2)
    status = await people.status(ann)
    message = 'Hé, @U0 "quoted" \\ #tag\n\t👩‍👩‍👧 \u2028 https://example.org/x @nobody'
    made = await store.comments.create(bob, status["id"], message, IdempotencyKey.generate())
    told_as = json.loads(made)
    assert told_as | {"posted": "", "entities": {}} == {
        "id": told_as["id"], "uid": bob, "login": "u1", "status": status["id"], "message": message, "posted": "",
        "entities": {},
    }  # fmt: skip
    first, second = told_as["entities"]["mentions"]
    assert (first["login"], first["id"], message[slice(*first["indices"])]) == ("U0", ann, "@U0")
    assert (second["login"], "id" in second) == ("nobody", False)
    assert [tag["text"] for tag in told_as["entities"]["hashtags"]] == ["tag"]
    (entry,) = await told(store, "comment")
    assert (entry.audience, entry.wire) == ("public", {"comment": told_as, "status": status | {"comments": 1}})
    assert await store.comments.get(ann, told_as["id"]) == made
    assert (await store.comments.list_comments(ann, status["id"], PageRequest())).items == [made]
    assert json.loads(await store.statuses.get(ann, status["id"]))["comments"] == 1
    assert await notices(store, ann) == [("comment", bob)]
    kept: Any = raw.hgetall(keys.key_for("comment", told_as["id"]))
    assert kept[b"message"] == message.encode()
    assert format_iso_time(int(kept[b"posted"])) == told_as["posted"]


async def test_comments_come_oldest_first_in_pieces(store: Store, people: People) -> None:
    """Forwards and backwards the pieces fit together."""
    ann, bob = await people.users(2)
    status = (await people.status(ann))["id"]
    made = [(await comment(store, uid, status))["id"] for uid in (ann, bob, ann, bob, ann)]
    first = await store.comments.list_comments(bob, status, PageRequest(2))
    second = await store.comments.list_comments(bob, status, PageRequest(2, before=first.next))
    third = await store.comments.list_comments(bob, status, PageRequest(2, before=second.next))
    assert [ids(one) for one in (first, second, third)] == [made[:2], made[2:4], made[4:]]
    assert (first.prev, third.next) == (None, None)
    assert ids(await store.comments.list_comments(bob, status, PageRequest(2, after=third.prev))) == made[2:4]


async def test_deleting_takes_everything_back(store: Store, people: People, raw: "redis.Redis") -> None:
    """Hash, place in the order, counter and notifications; the wire says ids only, the facts match it as it was."""
    ann, bob, eve = await people.users(3)
    status = await people.status(ann)
    other = await comment(store, eve, status["id"])
    made = await comment(store, bob, status["id"], "look @u2")
    assert await notices(store, eve) == [("mention", bob)]
    assert kept_notices(raw, eve) == {f"mention:{bob}:c{made['id']}"}
    await store.comments.delete(bob, made["id"], IdempotencyKey.generate())
    (entry,) = await told(store, "uncomment")
    gone = {"id": made["id"], "uid": bob, "status": status["id"], "deleted": True}
    assert entry.wire == {"comment": gone, "status": status | {"comments": 1}}
    last: Any = raw.xrevrange(keys.LOG, count=1)
    assert json.loads(last[0][1][b"e"])["facts"] == {"comment": made}
    assert await page(store, ann, status["id"]) == [other["id"]]
    assert not raw.exists(keys.key_for("comment", made["id"]))
    assert kept_notices(raw, eve) == set()
    assert kept_notices(raw, ann) == {f"comment:{eve}:{other['id']}"}
    for asked in (
        store.comments.get(ann, made["id"]),
        store.comments.delete(bob, made["id"], IdempotencyKey.generate()),
        store.comments.delete(bob, "1", IdempotencyKey.generate()),
    ):
        with pytest.raises(NotFound):
            await asked


async def test_only_its_author_and_that_of_the_status_delete(store: Store, people: People, raw: "redis.Redis") -> None:
    """Anyone else is refused, and nothing changes."""
    ann, bob, eve = await people.users(3)
    status = (await people.status(ann))["id"]
    made = [(await comment(store, bob, status))["id"] for _ in range(2)]
    before = whole(raw)
    with pytest.raises(Forbidden) as refusal:
        await store.comments.delete(eve, made[0], IdempotencyKey.generate())
    assert refusal.value.error_code == "not_yours"
    assert whole(raw) == before
    await store.comments.delete(ann, made[0], IdempotencyKey.generate())
    await store.comments.delete(bob, made[1], IdempotencyKey.generate())
    assert await page(store, ann, status) == []


async def test_ones_own_words_can_always_be_taken_back(store: Store, people: People) -> None:
    """Also from under a status that one does not see any more."""
    ann, bob = await people.users(2)
    status = (await people.status(ann))["id"]
    made = (await comment(store, bob, status))["id"]
    await store.blocks.block(ann, bob, IdempotencyKey.generate())
    with pytest.raises(NotFound):
        await store.comments.get(bob, made)
    await store.comments.delete(bob, made, IdempotencyKey.generate())
    assert json.loads(await store.statuses.get(ann, status))["comments"] == 0


async def test_what_is_not_seen_cannot_be_commented_on(store: Store, people: People, raw: "redis.Redis") -> None:
    """Unknown, deleted, blocked, protected, suspended, in a private group: the same 404, and nothing changes."""
    unseen = await soon_unseen(people)
    bob = unseen.users[1]
    under = [(await comment(store, bob, status))["id"] for status in unseen.statuses[1:5]]
    await hide(store, unseen)
    before = whole(raw)
    for status in unseen.statuses:
        for refused in (
            store.comments.create(bob, status, "x", IdempotencyKey.generate()),
            store.comments.list_comments(bob, status, PageRequest()),
        ):
            with pytest.raises(NotFound) as told_so:
                await refused
            assert told_so.value.message == "unknown status"
    for made in under:
        with pytest.raises(NotFound):
            await store.comments.get(bob, made)
    assert whole(raw) == before


async def test_whose_comments_one_sees(store: Store, people: People) -> None:
    """Of the muted by id only; not of the blocked, the suspended, nor of the protected whom one does not follow."""
    ann, viewer, blocked, blocking, sue, shy, friend, muted, plain = await people.users(9)
    status = (await people.status(ann))["id"]
    writers = (viewer, blocked, blocking, sue, shy, friend, muted, plain)
    made = {uid: (await comment(store, uid, status))["id"] for uid in writers}
    await befriend(store, viewer, friend)
    await store.blocks.block(viewer, blocked, IdempotencyKey.generate())
    await store.blocks.block(blocking, viewer, IdempotencyKey.generate())
    await store.mutes.mute(viewer, muted, IdempotencyKey.generate())
    await suspend(store, ann, sue)
    for uid in (shy, friend):
        await protect(store, uid)
    assert await page(store, viewer, status) == [made[uid] for uid in (viewer, friend, plain)]
    assert json.loads(await store.comments.get(viewer, made[muted]))["uid"] == muted
    for uid in (blocked, blocking, sue, shy):
        with pytest.raises(NotFound):
            await store.comments.get(viewer, made[uid])
        with pytest.raises(NotFound):
            await store.comments.delete(viewer, made[uid], IdempotencyKey.generate())
    assert await page(store, shy, status) == [made[uid] for uid in (viewer, blocked, blocking, shy, muted, plain)]


async def test_a_page_is_full_whoever_is_left_out(store: Store, people: People) -> None:
    """A hundred of the muted between do not make it short."""
    ann, bob, muted = await people.users(3)
    status = (await people.status(ann))["id"]
    await store.mutes.mute(ann, muted, IdempotencyKey.generate())
    first = await comment(store, bob, status)
    for _ in range(100):
        await comment(store, muted, status)
    last = await comment(store, bob, status)
    found = await store.comments.list_comments(ann, status, PageRequest(2))
    assert (ids(found), found.next) == ([first["id"], last["id"]], None)


async def test_who_is_told_of_a_comment(store: Store, people: People) -> None:
    """The author once, those mentioned once; nobody who may not see it, or does not want to."""
    ann, bob, eve, shy, muting, outsider = await people.users(6)
    status = (await people.status(ann))["id"]
    await store.mutes.mute(muting, bob, IdempotencyKey.generate())
    await comment(store, bob, status, "@u0 @u1 @u2 @U2 @u4 @nobody")
    assert await notices(store, ann) == [("comment", bob)]
    assert await notices(store, bob) == []
    assert await notices(store, eve) == [("mention", bob)]
    assert await notices(store, muting) == []
    await protect(store, shy)
    await befriend(store, eve, shy)
    await comment(store, shy, status, "@u2 @u5")
    assert await notices(store, ann) == [("comment", bob)]
    assert await notices(store, eve) == [("mention", bob), ("approve", shy), ("mention", shy)]
    assert await notices(store, outsider) == []
    (one,) = [t for t in await told(store, "comment") if t.wire["comment"]["uid"] == shy]
    assert one.audience == f"followers:{shy}"


@pytest.mark.parametrize("kind", ["public", "announcement", "private"])
async def test_in_a_group_only_members_comment(store: Store, people: People, raw: "redis.Redis", kind: str) -> None:
    """Also where only the owner posts; the protected are seen by the other members, and mentions stay inside."""
    ann, bob, eve, out = await people.users(4)
    gid = await group(store, kind, ann, bob, eve)
    status = (await people.status(ann, group=gid))["id"]
    await protect(store, bob)
    made = (await comment(store, bob, status, "@u2 @u3"))["id"]
    assert [one.audience for one in await told(store, "comment")] == [f"group:{gid}"]
    assert await notices(store, ann) == [("comment", bob)]
    assert await notices(store, eve) == [("mention", bob)]
    assert await notices(store, out) == []
    assert await page(store, eve, status) == [made]
    before = whole(raw)
    with pytest.raises(NotFound if kind == "private" else Forbidden):
        await store.comments.create(out, status, "x", IdempotencyKey.generate())
    assert whole(raw) == before
    with pytest.raises(NotFound):
        await store.comments.get(out, made)


async def test_the_same_key_gets_the_same_bytes(store: Store, people: People, raw: "redis.Redis") -> None:
    """Also after the comment was deleted, while the log has it; and where the log was trimmed, while there is one."""
    ann, bob = await people.users(2)
    status = (await people.status(ann))["id"]
    request, later = (IdempotencyKey.from_client(bob, name, b"p") for name in "ab")
    made = await store.comments.create(bob, status, 'é "x"', request)
    assert await store.comments.create(bob, status, 'é "x"', request) == made
    await store.comments.delete(bob, json.loads(made)["id"], IdempotencyKey.generate())
    assert await store.comments.create(bob, status, 'é "x"', request) == made
    again = await store.comments.create(bob, status, "y", later)
    raw.xtrim(keys.LOG, maxlen=0, approximate=False)
    assert await store.comments.create(bob, status, "y", later) == again


async def test_a_comment_ends_for_those_to_whom_it_was_told(store: Store, people: People) -> None:
    """Whatever has become protected since, and whatever has ceased to be."""
    ann, bob = await people.users(2)
    status = (await people.status(ann))["id"]
    openly = await comment(store, bob, status)
    await protect(store, bob)
    closed = await comment(store, bob, status)
    await store.comments.delete(bob, openly["id"], IdempotencyKey.generate())
    await protect(store, bob, on=False)
    await store.comments.delete(bob, closed["id"], IdempotencyKey.generate())
    assert [entry.audience for entry in await told(store, "comment")] == ["public", f"followers:{bob}"]
    assert [entry.audience for entry in await told(store, "uncomment")] == ["public", f"followers:{bob}"]
