"""Replies and conversations."""

import json
from typing import Any

import pytest
import redis

from stream_server.errors import ApiError, BadRequest, Forbidden, NotFound
from stream_server.store import keys
from stream_server.store.pagination import ListPosition, PageRequest
from stream_server.store.store import Store
from tests.stream_server.store.people import People, new_key
from tests.stream_server.store.scenes import befriend, group, ids, logged, notified, protect, read_pages


def _mark(name: str) -> str:
    """The part of a cursor that names its list. It is no secret."""
    return ListPosition(0, "0").cursor(name).rpartition("-")[2]


async def thread(store: Store, viewer: str, status: str) -> list[str]:
    return ids(await store.timelines.read_conversation(viewer, status, PageRequest()))


async def test_a_conversation_has_one_id_and_is_read_from_each_status(store: Store, people: People) -> None:
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


async def test_a_cursor_does_not_reveal_the_conversation_of_a_hidden_reply(store: Store, people: People) -> None:
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


async def test_a_conversation_outlives_its_root(store: Store, people: People) -> None:
    ann, bob = await people.users(2)
    root = (await people.status(ann))["id"]
    first = await people.status(bob, "yes", in_reply_to=root)
    await store.statuses.delete(ann, root, new_key())
    second = await people.status(ann, "still", in_reply_to=first["id"])
    assert second["conversation"] == root
    assert await thread(store, ann, second["id"]) == [first["id"], second["id"]]
    shown = json.loads(await store.statuses.get(ann, first["id"]))
    assert (shown["in_reply_to"], shown["in_reply_to_uid"]) == (root, ann)
    with pytest.raises(NotFound):
        await thread(store, ann, root)
    await store.statuses.delete(bob, first["id"], new_key())
    assert await thread(store, ann, second["id"]) == [second["id"]]


async def test_a_reply_notifies_the_author_once_and_mentioned_users(store: Store, people: People) -> None:
    ann, bob, eve = await people.users(3)
    root = (await people.status(ann))["id"]
    await people.status(bob, "@u0 @u2 yes", in_reply_to=root)
    assert await notified(store, ann) == [("reply", bob)]
    assert await notified(store, eve) == [("mention", bob)]
    await people.status(ann, "myself", in_reply_to=root)
    assert await notified(store, ann) == [("reply", bob)]


async def test_a_conversation_omits_replies_hidden_from_the_viewer(store: Store, people: People) -> None:
    ann, bob, eve = await people.users(3)
    root = (await people.status(ann))["id"]
    await protect(store, bob)
    reply = (await people.status(bob, "yes", in_reply_to=root))["id"]
    answer = (await people.status(eve, "hm", in_reply_to=root))["id"]
    assert await thread(store, ann, root) == [root, answer]
    assert await notified(store, ann) == [("reply", eve)]
    await befriend(store, ann, bob)
    assert await thread(store, ann, root) == [root, reply, answer]
    await store.mutes.mute(ann, eve, new_key())
    assert await thread(store, ann, root) == [root, reply]


async def test_a_reply_stays_in_the_group(store: Store, people: People, raw: "redis.Redis") -> None:
    ann, bob, eve = await people.users(3)
    gid = await group(store, "public", ann, bob)
    root = (await people.status(ann, group=gid))["id"]
    reply = await people.status(bob, "yes #tag @u0", in_reply_to=root)
    assert (reply["group"], reply["conversation"]) == (gid, root)
    assert [one.audience for one in await logged(store, "post")] == [f"group:{gid}"] * 2
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


async def test_only_the_owner_posts_in_an_announcement_group(store: Store, people: People) -> None:
    ann, bob = await people.users(2)
    gid = await group(store, "announcement", ann, bob)
    root = (await people.status(ann, group=gid))["id"]
    for more in ({"group": gid}, {"in_reply_to": root}):
        with pytest.raises(Forbidden) as refusal:
            await people.status(bob, "x", **more)
        assert (refusal.value.error_code, refusal.value.param) == ("not_yours", "group")
    assert (await people.status(ann, "x", in_reply_to=root))["group"] == gid


async def test_a_status_without_answers_is_a_conversation_without_a_set(store: Store, people: People, raw: Any) -> None:
    ann = await people.user("ann")
    root = (await people.status(ann))["id"]
    assert await thread(store, ann, root) == [root]
    assert raw.keys(keys.key_for("thread", "*")) == []
    answer = (await people.status(ann, "yes", in_reply_to=root))["id"]
    assert set(raw.zrange(keys.key_for("thread", root), 0, -1)) == {root.encode(), answer.encode()}
    deeper = (await people.status(ann, "no", in_reply_to=answer))["id"]
    await store.statuses.delete(ann, root, new_key())
    assert await thread(store, ann, deeper) == [answer, deeper]
    for status in (answer, deeper):
        await store.statuses.delete(ann, status, new_key())
    assert raw.keys(keys.key_for("thread", "*")) == []


@pytest.mark.parametrize("answers", [0, 3, 70])
async def test_pages_of_a_conversation_have_its_root_if_the_version_before_answered_it(
    store: Store, people: People, raw: Any, answers: int
) -> None:
    ann = await people.user("ann")
    root = (await people.status(ann))["id"]
    expected = [root, *[(await people.status(ann, "yes", in_reply_to=root))["id"] for _ in range(answers)]]
    raw.zrem(keys.key_for("thread", root), root)  # it adds only its answer
    count = 2 if answers < 70 else 30
    pages = await read_pages(lambda wanted: store.timelines.read_conversation(ann, expected[-1], wanted), count)
    assert [status for page in pages for status in ids(page)] == expected
    for page, previous in zip(pages[1:], pages, strict=False):
        back = await store.timelines.read_conversation(ann, expected[-1], PageRequest(count=count, after=page.prev))
        assert ids(back) == ids(previous)
    by_number = await store.timelines.read_conversation(ann, root, PageRequest(count=1, page=2))
    assert ids(by_number) == expected[1:2]
