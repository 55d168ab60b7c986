"""Replies and the threads that they make."""

import json

import pytest
import redis

from stream_server.errors import ApiError, BadRequest, Forbidden, NotFound
from stream_server.store import keys
from stream_server.store.idempotency import IdempotencyKey
from stream_server.store.pagination import ListPosition, PageRequest
from stream_server.store.store import Store
from tests.stream_server.store.people import People
from tests.stream_server.store.scenes import befriend, group, hide, ids, notices, protect, soon_unseen, told, whole


def _mark(name: str) -> str:
    """How a cursor names its list, which is no secret."""
    return ListPosition(0, "0").cursor(name).rpartition("-")[2]


async def thread(store: Store, viewer: str, status: str) -> list[str]:
    """The ids of the conversation in which a status stands, as a viewer sees it."""
    return ids(await store.timelines.read_conversation(viewer, status, PageRequest()))


async def test_a_thread_has_one_id_and_is_read_from_anywhere(store: Store, people: People) -> None:
    """Replies to replies belong to the first one's conversation; it is read oldest first, from each of them."""
    ann, bob = await people.users(2)
    root = await people.status(ann)
    first = await people.status(bob, "yes", in_reply_to=root["id"])
    second = await people.status(ann, "no", in_reply_to=first["id"])
    third = await people.status(bob, "and", in_reply_to=root["id"])
    made = [root, first, second, third]
    assert {one["conversation"] for one in made} == {root["id"]}
    for one in made:
        assert await thread(store, bob, one["id"]) == [each["id"] for each in made]
    assert ids(await store.timelines.read_replies(ann, root["id"], PageRequest())) == [third["id"], first["id"]]
    assert ids(await store.timelines.read_replies(ann, first["id"], PageRequest())) == [second["id"]]
    alone = await people.status(ann)
    assert alone["conversation"] == alone["id"]


async def test_a_cursor_does_not_tell_in_which_thread_a_hidden_reply_stands(store: Store, people: People) -> None:
    """Whatever the cursor, a hidden reply is refused as one is that never was."""
    ann, bob, eve = await people.users(3)
    await protect(store, ann)
    root = (await people.status(bob))["id"]
    await people.status(bob, "and", in_reply_to=root)
    hidden = (await people.status(ann, "yes", in_reply_to=root))["id"]

    async def refused(status: str, cursor: str) -> type[ApiError]:
        with pytest.raises(ApiError) as refusal:
            await store.timelines.read_conversation(eve, status, PageRequest(before=cursor))
        return refusal.type

    cursor = (await store.timelines.read_conversation(eve, root, PageRequest(count=1))).next
    assert cursor is not None
    assert await refused(hidden, cursor) is await refused("1", cursor)
    place = cursor.rpartition("-")[0]
    made_up = {each: f"{place}-{_mark(keys.key_for('thread', each))}" for each in (hidden, "1")}
    assert await refused(hidden, made_up[hidden]) is await refused("1", made_up["1"])


async def test_a_thread_outlives_its_root(store: Store, people: People) -> None:
    """What was said stays, is read as one, and goes on; only the root is gone."""
    ann, bob = await people.users(2)
    root = (await people.status(ann))["id"]
    first = await people.status(bob, "yes", in_reply_to=root)
    await store.statuses.delete(ann, root, IdempotencyKey.generate())
    second = await people.status(ann, "still", in_reply_to=first["id"])
    assert second["conversation"] == root
    assert await thread(store, ann, second["id"]) == [first["id"], second["id"]]
    shown = json.loads(await store.statuses.get(ann, first["id"]))
    assert (shown["in_reply_to"], shown["in_reply_to_uid"]) == (root, ann)
    with pytest.raises(NotFound):
        await thread(store, ann, root)
    await store.statuses.delete(bob, first["id"], IdempotencyKey.generate())
    assert await thread(store, ann, second["id"]) == [second["id"]]


async def test_what_is_not_seen_cannot_be_answered(store: Store, people: People, raw: "redis.Redis") -> None:
    """Unknown, deleted, blocked, protected, suspended, in a private group: 404 of `in_reply_to`; nothing changes."""
    unseen = await soon_unseen(people)
    bob = unseen.users[1]
    await hide(store, unseen)
    before = whole(raw)
    for status in unseen.statuses:
        with pytest.raises(NotFound) as refusal:
            await people.status(bob, "x", in_reply_to=status)
        assert refusal.value.param == "in_reply_to"
    assert whole(raw) == before


async def test_the_author_of_the_answered_is_told_once(store: Store, people: People) -> None:
    """Of a reply, though it mentions them too; the others whom it mentions, of the mention."""
    ann, bob, eve = await people.users(3)
    root = (await people.status(ann))["id"]
    await people.status(bob, "@u0 @u2 yes", in_reply_to=root)
    assert await notices(store, ann) == [("reply", bob)]
    assert await notices(store, eve) == [("mention", bob)]
    await people.status(ann, "myself", in_reply_to=root)
    assert await notices(store, ann) == [("reply", bob)]


async def test_a_thread_shows_to_each_what_they_may_see(store: Store, people: People) -> None:
    """A protected reply is for the followers; one's author it answers is not told, unless a follower too."""
    ann, bob, eve = await people.users(3)
    root = (await people.status(ann))["id"]
    await protect(store, bob)
    reply = (await people.status(bob, "yes", in_reply_to=root))["id"]
    answer = (await people.status(eve, "hm", in_reply_to=root))["id"]
    assert await thread(store, ann, root) == [root, answer]
    assert await notices(store, ann) == [("reply", eve)]
    await befriend(store, ann, bob)
    assert await thread(store, ann, root) == [root, reply, answer]
    await store.mutes.mute(ann, eve, IdempotencyKey.generate())
    assert await thread(store, ann, root) == [root, reply]


async def test_a_reply_stays_in_the_group(store: Store, people: People, raw: "redis.Redis") -> None:
    """It is the group's without being told so, and nowhere else; who may not post there may not answer there."""
    ann, bob, eve = await people.users(3)
    gid = await group(store, "public", ann, bob)
    root = (await people.status(ann, group=gid))["id"]
    reply = await people.status(bob, "yes #tag @u0", in_reply_to=root)
    assert (reply["group"], reply["conversation"]) == (gid, root)
    assert [one.audience for one in await told(store, "post")] == [f"group:{gid}"] * 2
    assert ids(await store.timelines.read_group(eve, gid, PageRequest())) == [reply["id"], root]
    assert ids(await store.timelines.read_profile(bob, bob, PageRequest())) == []
    assert not raw.exists(keys.key_for("tag", "tag"))
    with pytest.raises(BadRequest) as refusal:
        await people.status(bob, "x", in_reply_to=root, group="8")
    assert refusal.value.param == "group"
    with pytest.raises(Forbidden):
        await people.status(eve, "x", in_reply_to=root)
    elsewhere = (await people.status(bob))["id"]
    with pytest.raises(BadRequest):
        await people.status(bob, "x", in_reply_to=elsewhere, group=gid)


async def test_only_the_owner_announces(store: Store, people: People) -> None:
    """In an announcement group members may read, like and comment; posts and replies are its owner's."""
    ann, bob = await people.users(2)
    gid = await group(store, "announcement", ann, bob)
    root = (await people.status(ann, group=gid))["id"]
    for more in ({"group": gid}, {"in_reply_to": root}):
        with pytest.raises(Forbidden) as refusal:
            await people.status(bob, "x", **more)
        assert (refusal.value.error_code, refusal.value.param) == ("not_yours", "group")
    assert (await people.status(ann, "x", in_reply_to=root))["group"] == gid
