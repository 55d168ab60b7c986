"""Groups: visibility, membership, owners, limits, and log entries."""

import json

import pytest
import redis

from stream_server.errors import TooLarge
from stream_server.store.pagination import PageRequest
from stream_server.store.store import Store
from tests.stream_server.store.people import People, footprint, new_key
from tests.stream_server.store.scenes import group as new_group
from tests.stream_server.store.scenes import ids, post, refusal

ALL = PageRequest(200)
KINDS = ("public", "private", "announcement")

any_kind = pytest.mark.parametrize("kind", KINDS)


async def test_a_private_group_is_unknown_to_others(store: Store, people: People, raw: "redis.Redis") -> None:
    ann, bob, carl = await people.users(3)
    group = await new_group(store, "private", ann)
    missing = (404, "not_found", "id")

    async def check_outside(uid: str) -> None:
        before = footprint(raw)
        for refused in (
            store.groups.get(uid, group),
            store.groups.list_members(uid, group, ALL),
            store.timelines.read_group(uid, group, ALL),
            store.groups.update(uid, group, {"name": "x"}, new_key()),
            store.groups.delete(uid, group, new_key()),
            store.groups.join(uid, group, new_key()),
            store.groups.leave(uid, group, new_key()),
            store.groups.add_member(uid, group, carl, new_key()),
            store.groups.remove_member(uid, group, ann, new_key()),
        ):
            assert await refusal(refused) == missing
        assert (await refusal(post(store, uid, group)))[0] == 404
        assert footprint(raw) == before
        assert ids(await store.groups.list_joined(uid, ALL)) == []

    await check_outside(bob)
    await store.groups.add_member(ann, group, bob, new_key())
    assert json.loads(await store.groups.get(bob, group))["members"] == 2
    assert ids(await store.groups.list_members(bob, group, ALL)) == [bob, ann]
    assert ids(await store.groups.list_joined(bob, ALL)) == [group]
    assert await refusal(store.groups.add_member(bob, group, carl, new_key())) == (403, "not_yours", "id")
    await store.groups.leave(bob, group, new_key())
    await check_outside(bob)
    await store.groups.add_member(ann, group, bob, new_key())
    await store.groups.remove_member(ann, group, bob, new_key())
    await check_outside(bob)


@any_kind
async def test_the_owner_cannot_leave(store: Store, people: People, raw: "redis.Redis", kind: str) -> None:
    ann = await people.user("ann")
    group = await new_group(store, kind, ann)
    before = footprint(raw)
    assert await refusal(store.groups.leave(ann, group, new_key())) == (400, "invalid_parameter", "uid")
    assert await refusal(store.groups.remove_member(ann, group, ann, new_key())) == (400, "invalid_parameter", "uid")
    assert footprint(raw) == before


async def test_unknown_and_blocked_users_cannot_be_added(store: Store, people: People, raw: "redis.Redis") -> None:
    ann, bob, carl = await people.users(3)
    group = await new_group(store, "private", ann)
    await store.blocks.block(ann, bob, new_key())
    await store.blocks.block(carl, ann, new_key())
    before = footprint(raw)
    for member in (bob, carl, "1"):
        assert await refusal(store.groups.add_member(ann, group, member, new_key())) == (404, "not_found", "uid")
    assert await refusal(store.groups.remove_member(ann, group, carl, new_key())) == (404, "not_found", "uid")
    assert footprint(raw) == before


async def test_members_and_groups_are_limited(store: Store, people: People, raw: "redis.Redis") -> None:
    ann, bob, carl = await people.users(3)
    group, other = await new_group(store, "public", ann), await new_group(store, "private", ann)
    raw.zadd(f"{{core}}:joined:{group}", {str(uid): 1 for uid in range(1, 4999)})
    for _ in range(2):
        await store.groups.join(bob, group, new_key())
    raw.zadd(f"{{core}}:groups:{bob}", {str(number): 1 for number in range(1, 1000)})
    before = footprint(raw)
    for refused in (
        store.groups.join(carl, group, new_key()),
        store.groups.add_member(ann, other, bob, new_key()),
        store.groups.create(bob, "x", "public", "", new_key()),
    ):
        with pytest.raises(TooLarge) as caught:
            await refused
        assert caught.value.error_code == "too_many"
    assert footprint(raw) == before


async def test_a_large_group_is_deleted_in_one_step(store: Store, people: People, raw: "redis.Redis") -> None:
    ann = await people.user("ann")
    group = await new_group(store, "public", ann)
    members = [str(uid) for uid in range(1, 5000)]
    raw.zadd(f"{{core}}:joined:{group}", dict.fromkeys(members, 1))
    pipeline = raw.pipeline(transaction=False)
    for member in members:
        pipeline.zadd(f"{{core}}:groups:{member}", {group: 1})
    pipeline.execute()
    await store.groups.delete(ann, group, new_key())
    assert raw.keys("{core}:groups:*") == raw.keys("{core}:joined:*") == []
