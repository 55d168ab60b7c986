"""Posts in groups: who may write, who reads them, and what happens to them later."""

import json

import pytest
import redis

from stream_server.store.pagination import PageRequest
from stream_server.store.store import Store
from tests.stream_server.store.people import People, footprint, new_key
from tests.stream_server.store.scenes import group as new_group
from tests.stream_server.store.scenes import ids, logged, post, refusal

ALL = PageRequest(200)
KINDS = ("public", "private", "announcement")

any_kind = pytest.mark.parametrize("kind", KINDS)


@pytest.mark.parametrize(
    ("kind", "author", "expected"),
    [
        ("public", "owner", None),
        ("public", "member", None),
        ("public", "stranger", (403, "not_yours", "group")),
        ("announcement", "owner", None),
        ("announcement", "member", (403, "not_yours", "group")),
        ("announcement", "stranger", (403, "not_yours", "group")),
        ("private", "owner", None),
        ("private", "member", None),
        ("private", "stranger", (404, "not_found", "group")),
    ],
)
async def test_members_post_and_only_the_owner_posts_announcements(
    store: Store, people: People, raw: "redis.Redis", kind: str, author: str, expected: tuple[int, str, str] | None
) -> None:
    names = ("owner", "member", "stranger")
    uids = dict(zip(names, await people.users(3), strict=True))
    group = await new_group(store, kind, uids["owner"], uids["member"])
    before = footprint(raw)
    if expected is not None:
        assert await refusal(post(store, uids[author], group)) == expected
        assert footprint(raw) == before
        return
    status = await post(store, uids[author], group)
    entry = (await logged(store, "post"))[-1]
    assert entry.audience == f"group:{group}"
    assert (entry.wire["status"]["id"], entry.wire["status"]["group"]) == (status, group)
    assert ids(await store.timelines.read_group(uids["member"], group, ALL)) == [status]
    assert (await people.me(uids[author]))["posts"] == 0
    assert raw.zcard(f"{{core}}:profile:{uids[author]}") == 0
    assert ids(await store.timelines.read_home(uids[author], ALL)) == []
    assert ids(await store.timelines.read_tag(uids["member"], "club", ALL)) == []


async def test_public_groups_are_read_by_all_and_private_ones_by_members(store: Store, people: People) -> None:
    ann, bob, carl = await people.users(3)
    public, private = await new_group(store, "public", ann, bob), await new_group(store, "private", ann, bob)
    open_status, closed_status = await post(store, ann, public), await post(store, ann, private)
    own = await post(store, bob, private)
    for viewer, expected in ((ann, True), (bob, True), (carl, False)):
        assert ids(await store.timelines.read_group(viewer, public, ALL)) == [open_status]
        shown = await store.statuses.get_many(viewer, [open_status, closed_status])
        assert [json.loads(status)["id"] for status in shown] == [open_status] + [closed_status] * expected
    for unknown in (private, "1"):
        assert await refusal(store.timelines.read_group(carl, unknown, ALL)) == (404, "not_found", "id")
    assert ids(await store.timelines.read_group(bob, private, ALL)) == [own, closed_status]
    await store.groups.leave(bob, private, new_key())
    assert (await refusal(store.timelines.read_group(bob, private, ALL)))[0] == 404
    assert len(await store.statuses.get_many(bob, [closed_status])) == 0
    assert len(await store.statuses.get_many(bob, [own])) == 1


async def test_replies_and_reposts_stay_in_their_group(store: Store, people: People) -> None:
    ann, bob, carl = await people.users(3)
    group, other = await new_group(store, "private", ann, bob), await new_group(store, "public", ann, bob)
    root = await post(store, ann, group)
    reply = await post(store, bob, None, in_reply_to=root)
    status = json.loads(await store.statuses.get(ann, reply))
    assert (status["group"], status["conversation"]) == (group, root)
    assert ids(await store.timelines.read_group(ann, group, ALL)) == [reply, root]
    assert (await refusal(post(store, carl, None, in_reply_to=root)))[0] == 404
    assert await refusal(post(store, bob, other, in_reply_to=root)) == (400, "invalid_parameter", "group")
    assert (await refusal(post(store, bob, None, origin=root)))[0] == 400
    assert (await refusal(post(store, bob, other, origin=root)))[0] == 400
    repost = await post(store, bob, group, origin=root)
    assert ids(await store.timelines.read_group(ann, group, ALL)) == [repost, reply, root]


async def test_a_status_is_deleted_from_its_group(store: Store, people: People, raw: "redis.Redis") -> None:
    ann, bob = await people.users(2)
    group = await new_group(store, "private", ann, bob)
    first, second = await post(store, bob, group), await post(store, bob, group)
    await store.statuses.delete(bob, first, new_key())
    assert [entry.audience for entry in await logged(store, "delete")] == [f"group:{group}"]
    assert ids(await store.timelines.read_group(ann, group, ALL)) == [second]
    await store.groups.leave(bob, group, new_key())
    await store.statuses.delete(bob, second, new_key())
    assert ids(await store.timelines.read_group(ann, group, ALL)) == []
    assert (await people.me(bob))["posts"] == 0
    assert raw.zcard(f"{{core}}:grouped:{group}") == 0


@any_kind
async def test_posts_of_a_deleted_group_are_their_authors_only(
    store: Store, people: People, raw: "redis.Redis", kind: str
) -> None:
    ann, bob, carl = await people.users(3)
    group = await new_group(store, kind, ann, bob)
    status = await post(store, ann, group)
    await store.groups.delete(ann, group, new_key())
    assert raw.exists(f"{{core}}:grouped:{group}") == 0
    for viewer in (bob, carl):
        assert await store.statuses.get_many(viewer, [status]) == []
        assert ids(await store.groups.list_joined(viewer, viewer, ALL)) == []
        assert (await refusal(store.timelines.read_group(viewer, group, ALL)))[0] == 404
    assert (await refusal(post(store, bob, group)))[0] == 404
    await store.statuses.delete(ann, status, new_key())
    assert await store.statuses.get_many(ann, [status]) == []


async def test_blocks_and_mutes_hide_posts_in_a_group(store: Store, people: People) -> None:
    ann, bob, carl = await people.users(3)
    group = await new_group(store, "public", ann, bob, carl)
    statuses = {uid: await post(store, uid, group) for uid in (ann, bob, carl)}
    await store.blocks.block(bob, carl, new_key())
    await store.mutes.mute(bob, ann, new_key())
    assert ids(await store.timelines.read_group(bob, group, ALL)) == [statuses[bob]]
    assert ids(await store.timelines.read_group(carl, group, ALL)) == [statuses[carl], statuses[ann]]
    assert ids(await store.timelines.read_group(ann, group, ALL)) == [statuses[carl], statuses[bob], statuses[ann]]


async def test_posts_of_a_protected_author_are_read_by_members_only(store: Store, people: People) -> None:
    ann, bob, carl = await people.users(3)
    group = await new_group(store, "public", ann, bob)
    await store.users.update(ann, {"protected": True}, new_key())
    status = await post(store, ann, group)
    assert ids(await store.timelines.read_group(bob, group, ALL)) == [status]
    assert ids(await store.timelines.read_group(carl, group, ALL)) == []
