"""Groups: visibility, membership, owners, limits, and log entries."""

import asyncio
import json
import random

import pytest
import redis

from stream_server.errors import BadRequest, NotFound, TooLarge
from stream_server.store.idempotency import IdempotencyKey
from stream_server.store.pagination import PageRequest
from stream_server.store.store import Store
from tests.stream_server.store.people import People, footprint, new_key
from tests.stream_server.store.scenes import group as new_group
from tests.stream_server.store.scenes import ids, logged, post, refusal

ALL = PageRequest(200)
KINDS = ("public", "private", "announcement")

any_kind = pytest.mark.parametrize("kind", KINDS)


@any_kind
async def test_a_group_is_created_changed_and_deleted(
    store: Store, people: People, raw: "redis.Redis", kind: str
) -> None:
    ann = await people.user("ann")
    made = await store.groups.create(ann, 'a "name"', kind, "of it", new_key())
    answer = json.loads(made)
    assert answer == {
        "id": answer["id"], "uid": ann, "name": 'a "name"', "kind": kind, "description": "of it", "members": 1,
        "created": answer["created"],
    }  # fmt: skip
    group = answer["id"]
    assert await store.groups.get(ann, group) == made
    for _ in range(2):
        changed = await store.groups.update(ann, group, {"name": "other"}, new_key())
        assert json.loads(changed) == {**answer, "name": "other"}
    assert await store.groups.get(ann, group) == changed
    assert ids(await store.groups.list_joined(ann, ann, ALL)) == [group]
    assert ids(await store.groups.list_members(ann, group, ALL)) == [ann]
    await store.groups.delete(ann, group, new_key())
    assert await refusal(store.groups.get(ann, group)) == (404, "not_found", "id")
    assert await refusal(store.groups.delete(ann, group, new_key())) == (404, "not_found", "id")
    assert await logged(store) == [
        ("group_create", f"group:{group}", {"group": answer}),
        ("group_update", f"group:{group}", {"group": json.loads(changed)}),
        ("group_delete", f"group:{group}", {"group": {"id": group, "uid": ann, "deleted": True}}),
    ]
    assert [key for key in raw.keys("{core}:*") if group.encode() in key] == []
    assert raw.zcard(f"{{core}}:groups:{ann}") == 0


@pytest.mark.parametrize("kind", ["public", "announcement"])
async def test_users_join_and_leave_an_open_group(store: Store, people: People, raw: "redis.Redis", kind: str) -> None:
    ann, bob, carl = await people.users(3)
    group = await new_group(store, kind, ann)
    for _ in range(2):
        assert json.loads(await store.groups.join(bob, group, new_key()))["members"] == 2
    assert ids(await store.groups.list_members(carl, group, ALL)) == [bob, ann]
    assert ids(await store.groups.list_joined(bob, bob, ALL)) == [group]
    for _ in range(2):
        assert json.loads(await store.groups.leave(bob, group, new_key()))["members"] == 1
    await store.groups.join(bob, group, new_key())
    await store.groups.remove_member(ann, group, bob, new_key())
    await store.groups.join(bob, group, new_key())
    entries = [(kind, audience, wire["user"]["id"]) for kind, audience, wire in (await logged(store))[1:]]
    assert entries == [(f"group_{verb}", f"group:{group}", bob) for verb in ("join", "leave", "join", "leave", "join")]
    before = footprint(raw)
    assert await refusal(store.groups.add_member(ann, group, carl, new_key())) == (400, "invalid_parameter", "uid")
    assert await refusal(store.groups.add_member(bob, group, carl, new_key())) == (403, "not_yours", "id")
    assert await refusal(store.groups.remove_member(bob, group, ann, new_key())) == (403, "not_yours", "id")
    assert footprint(raw) == before


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
        assert ids(await store.groups.list_joined(uid, ann, ALL)) == []

    await check_outside(bob)
    await store.groups.add_member(ann, group, bob, new_key())
    assert json.loads(await store.groups.get(bob, group))["members"] == 2
    assert ids(await store.groups.list_members(bob, group, ALL)) == [bob, ann]
    assert ids(await store.groups.list_joined(bob, ann, ALL)) == [group]
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


@any_kind
async def test_only_the_owner_changes_a_group(store: Store, people: People, kind: str) -> None:
    ann, bob = await people.users(2)
    group = await new_group(store, kind, ann, bob)
    for refused in (
        store.groups.update(bob, group, {"name": "x"}, new_key()),
        store.groups.delete(bob, group, new_key()),
    ):
        assert await refusal(refused) == (403, "not_yours", "id")


async def test_a_group_of_a_blocking_or_suspended_owner_is_unknown(
    store: Store, people: People, raw: "redis.Redis"
) -> None:
    ann, bob = await people.users(2)
    group = await new_group(store, "public", ann)
    await store.blocks.block(ann, bob, new_key())

    async def check() -> None:
        for refused in (
            store.groups.get(bob, group),
            store.groups.list_members(bob, group, ALL),
            store.timelines.read_group(bob, group, ALL),
            store.groups.join(bob, group, new_key()),
        ):
            assert await refusal(refused) == (404, "not_found", "id")
        assert await refusal(post(store, bob, group)) == (404, "not_found", "group")

    await check()
    await store.blocks.unblock(ann, bob, new_key())
    await store.groups.get(bob, group)
    raw.hset(f"{{core}}:user:{ann}", "suspended", "1")
    await check()


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


async def test_a_repeated_request_gives_the_first_answer_after_a_change(
    store: Store, people: People, raw: "redis.Redis"
) -> None:
    ann, bob = await people.users(2)
    request, joining = IdempotencyKey.from_client(ann, "k", b"group"), IdempotencyKey.from_client(bob, "k", b"join")
    made = await store.groups.create(ann, "a", "public", "", request)
    group = json.loads(made)["id"]
    joined = await store.groups.join(bob, group, joining)
    before = footprint(raw)
    assert await store.groups.create(ann, "a", "public", "", request) == made
    assert await store.groups.join(bob, group, joining) == joined
    assert footprint(raw) == before


async def _wander(store: Store, groups: list[tuple[str, str]], users: list[str], source: random.Random) -> None:
    for _ in range(30):
        (owner, group), member = source.choice(groups), source.choice(users)
        try:
            match source.choice(["join", "add", "leave", "remove", "delete"]):
                case "join":
                    await store.groups.join(member, group, new_key())
                case "add":
                    await store.groups.add_member(owner, group, member, new_key())
                case "leave":
                    await store.groups.leave(member, group, new_key())
                case "remove":
                    await store.groups.remove_member(owner, group, member, new_key())
                case "delete" if source.random() < 0.05:
                    await store.groups.delete(groups[-1][0], groups[-1][1], new_key())
        except (NotFound, BadRequest):
            pass


async def test_counters_sets_and_log_agree_after_concurrent_writes(
    store: Store, people: People, raw: "redis.Redis"
) -> None:
    users = await people.users(6)
    groups = [(users[i], await new_group(store, KINDS[i % 3], users[i])) for i in range(4)]
    await asyncio.gather(*(_wander(store, groups, users, random.Random(f"g{i}")) for i in range(20)))
    model: dict[str, set[str]] = {}
    for kind, _, wire in await logged(store):
        group = wire["group"]["id"]
        if kind == "group_create":
            model[group] = {wire["group"]["uid"]}
        elif kind == "group_delete":
            del model[group]
        else:
            assert (wire["user"]["id"] in model[group]) == (kind == "group_leave")
            model[group] ^= {wire["user"]["id"]}
            assert wire["group"]["members"] == len(model[group])
    assert any(len(members) > 1 for members in model.values())
    for owner, group in groups:
        members = model.get(group, set())
        assert raw.zcard(f"{{core}}:joined:{group}") == len(members)
        if group in model:
            assert json.loads(await store.groups.get(owner, group))["members"] == len(members)
            assert set(ids(await store.groups.list_members(owner, group, ALL))) == members
    for user in users:
        assert set(ids(await store.groups.list_joined(user, user, ALL))) == {g for g, m in model.items() if user in m}
        assert raw.zcard(f"{{core}}:groups:{user}") == sum(user in members for members in model.values())
