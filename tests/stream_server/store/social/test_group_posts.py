"""Posts in groups: who may write, who reads them, and what happens to them later."""

import pytest
import redis

from stream_server.store.pagination import PageRequest
from stream_server.store.store import Store
from tests.stream_server.store.people import People, footprint, new_key
from tests.stream_server.store.scenes import group as new_group
from tests.stream_server.store.scenes import ids, logged, notified, post, refusal

ALL = PageRequest(200)


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


async def test_only_members_like_and_comment_on_what_all_may_read(
    store: Store, people: People, raw: "redis.Redis"
) -> None:
    owner, stranger = await people.users(2)
    status = await post(store, owner, await new_group(store, "public", owner))
    before = footprint(raw)
    refused = (403, "not_yours", None)
    assert await refusal(store.likes.like(stranger, status, new_key())) == refused
    assert await refusal(store.comments.create(stranger, status, "well", new_key())) == refused
    assert footprint(raw) == before


async def test_only_members_are_told_that_a_private_group_mentions_or_answers_them(
    store: Store, people: People
) -> None:
    ann, bob, eve = await people.users(3)
    group = await new_group(store, "private", ann, bob)
    status = await post(store, bob, group)
    await people.status(ann, "@u1 @u2", group=group)
    await store.groups.remove_member(ann, group, bob, new_key())
    await people.status(ann, "gone", in_reply_to=status)
    assert [await notified(store, uid) for uid in (bob, eve)] == [[("mention", ann)], []]


async def test_a_deleted_group_keeps_no_set_of_its_posts(store: Store, people: People, raw: "redis.Redis") -> None:
    (ann,) = await people.users(1)
    group = await new_group(store, "public", ann)
    await people.status(ann, group=group)
    await store.groups.delete(ann, group, new_key())
    assert not raw.exists(f"{{core}}:grouped:{group}", f"{{core}}:joined:{group}")
