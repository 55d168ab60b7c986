"""Groups: who sees them, who comes in and how, who posts, and what is told of it."""

import asyncio
import json
import random
from typing import Any

import pytest
import redis

from stream_server.errors import BadRequest, Forbidden, NotFound, TooLarge
from stream_server.events.position import LOG_START
from stream_server.store.idempotency import IdempotencyKey
from stream_server.store.pagination import PageRequest
from stream_server.store.store import Store
from tests.stream_server.store.people import People, footprint
from tests.stream_server.store.scenes import group as new_group
from tests.stream_server.store.scenes import ids, post, refusal

ALL = PageRequest(200)
KINDS = ("public", "private", "announcement")

any_kind = pytest.mark.parametrize("kind", KINDS)


async def heard(store: Store) -> list[tuple[str, str, Any]]:
    """All entries of the log: kind, audience and wire."""
    return [(e.kind, e.audience, json.loads(e.body)["wire"]) for e in await store.log.read(LOG_START, 100_000)]


@any_kind
async def test_a_group_is_made_changed_and_deleted(store: Store, people: People, raw: "redis.Redis", kind: str) -> None:
    """Its owner is in it; each step is told to the group once; nothing is left of it but its request keys."""
    ann = await people.user("ann")
    made = await store.groups.create(ann, 'a "name"', kind, "of it", IdempotencyKey.generate())
    told = json.loads(made)
    assert told == {
        "id": told["id"], "uid": ann, "name": 'a "name"', "kind": kind, "description": "of it", "members": 1,
        "created": told["created"],
    }  # fmt: skip
    group = told["id"]
    assert await store.groups.get(ann, group) == made
    for _ in range(2):
        changed = await store.groups.update(ann, group, {"name": "other"}, IdempotencyKey.generate())
        assert json.loads(changed) == {**told, "name": "other"}
    assert await store.groups.get(ann, group) == changed
    assert ids(await store.groups.list_joined(ann, ann, ALL)) == [group]
    assert ids(await store.groups.list_members(ann, group, ALL)) == [ann]
    await store.groups.delete(ann, group, IdempotencyKey.generate())
    assert await refusal(store.groups.get(ann, group)) == (404, "not_found", "id")
    assert await refusal(store.groups.delete(ann, group, IdempotencyKey.generate())) == (404, "not_found", "id")
    assert await heard(store) == [
        ("group_create", f"group:{group}", {"group": told}),
        ("group_update", f"group:{group}", {"group": json.loads(changed)}),
        ("group_delete", f"group:{group}", {"group": {"id": group, "uid": ann, "deleted": True}}),
    ]
    assert [key for key in raw.keys("{core}:*") if group.encode() in key] == []
    assert raw.zcard(f"{{core}}:groups:{ann}") == 0


@pytest.mark.parametrize("kind", ["public", "announcement"])
async def test_people_join_and_leave_an_open_group(store: Store, people: People, raw: "redis.Redis", kind: str) -> None:
    """Twice is once; the group is told; who was taken out may come again; nobody else puts people in."""
    ann, bob, carl = await people.users(3)
    group = await new_group(store, kind, ann)
    for _ in range(2):
        assert json.loads(await store.groups.join(bob, group, IdempotencyKey.generate()))["members"] == 2
    assert ids(await store.groups.list_members(carl, group, ALL)) == [bob, ann]
    assert ids(await store.groups.list_joined(bob, bob, ALL)) == [group]
    for _ in range(2):
        assert json.loads(await store.groups.leave(bob, group, IdempotencyKey.generate()))["members"] == 1
    await store.groups.join(bob, group, IdempotencyKey.generate())
    await store.groups.remove_member(ann, group, bob, IdempotencyKey.generate())
    await store.groups.join(bob, group, IdempotencyKey.generate())
    entries = [(kind, audience, wire["user"]["id"]) for kind, audience, wire in (await heard(store))[1:]]
    assert entries == [(f"group_{verb}", f"group:{group}", bob) for verb in ("join", "leave", "join", "leave", "join")]
    before = footprint(raw)
    assert await refusal(store.groups.add_member(ann, group, carl, IdempotencyKey.generate())) == (
        400,
        "invalid_parameter",
        "uid",
    )
    assert await refusal(store.groups.add_member(bob, group, carl, IdempotencyKey.generate())) == (
        403,
        "not_yours",
        "id",
    )
    assert await refusal(store.groups.remove_member(bob, group, ann, IdempotencyKey.generate())) == (
        403,
        "not_yours",
        "id",
    )
    assert footprint(raw) == before


async def test_a_private_group_is_known_to_its_members_alone(store: Store, people: People, raw: "redis.Redis") -> None:
    """For others it is not there, under every verb; the owner puts people in; after leaving it is not there again."""
    ann, bob, carl = await people.users(3)
    group = await new_group(store, "private", ann)
    missing = (404, "not_found", "id")

    async def check_outside(uid: str) -> None:
        before = footprint(raw)
        for refused in (
            store.groups.get(uid, group),
            store.groups.list_members(uid, group, ALL),
            store.timelines.read_group(uid, group, ALL),
            store.groups.update(uid, group, {"name": "x"}, IdempotencyKey.generate()),
            store.groups.delete(uid, group, IdempotencyKey.generate()),
            store.groups.join(uid, group, IdempotencyKey.generate()),
            store.groups.leave(uid, group, IdempotencyKey.generate()),
            store.groups.add_member(uid, group, carl, IdempotencyKey.generate()),
            store.groups.remove_member(uid, group, ann, IdempotencyKey.generate()),
        ):
            assert await refusal(refused) == missing
        assert (await refusal(post(store, uid, group)))[0] == 404
        assert footprint(raw) == before
        assert ids(await store.groups.list_joined(uid, ann, ALL)) == []

    await check_outside(bob)
    await store.groups.add_member(ann, group, bob, IdempotencyKey.generate())
    assert json.loads(await store.groups.get(bob, group))["members"] == 2
    assert ids(await store.groups.list_members(bob, group, ALL)) == [bob, ann]
    assert ids(await store.groups.list_joined(bob, ann, ALL)) == [group]
    assert await refusal(store.groups.add_member(bob, group, carl, IdempotencyKey.generate())) == (
        403,
        "not_yours",
        "id",
    )
    await store.groups.leave(bob, group, IdempotencyKey.generate())
    await check_outside(bob)
    await store.groups.add_member(ann, group, bob, IdempotencyKey.generate())
    await store.groups.remove_member(ann, group, bob, IdempotencyKey.generate())
    await check_outside(bob)


@any_kind
async def test_the_owner_stays(store: Store, people: People, raw: "redis.Redis", kind: str) -> None:
    """An owner who wants out deletes the group; by both doors 400."""
    ann = await people.user("ann")
    group = await new_group(store, kind, ann)
    before = footprint(raw)
    assert await refusal(store.groups.leave(ann, group, IdempotencyKey.generate())) == (400, "invalid_parameter", "uid")
    assert await refusal(store.groups.remove_member(ann, group, ann, IdempotencyKey.generate())) == (
        400,
        "invalid_parameter",
        "uid",
    )
    assert footprint(raw) == before


@any_kind
async def test_only_the_owner_changes_it(store: Store, people: People, kind: str) -> None:
    """Another member: 403."""
    ann, bob = await people.users(2)
    group = await new_group(store, kind, ann, bob)
    for refused in (
        store.groups.update(bob, group, {"name": "x"}, IdempotencyKey.generate()),
        store.groups.delete(bob, group, IdempotencyKey.generate()),
    ):
        assert await refusal(refused) == (403, "not_yours", "id")


async def test_a_group_of_a_blocker_or_suspended_owner_is_not_there(
    store: Store, people: People, raw: "redis.Redis"
) -> None:
    """Whoever is no member can neither see nor join it; a member still can leave."""
    ann, bob, carl = await people.users(3)
    group = await new_group(store, "public", ann, carl)
    await store.blocks.block(ann, bob, IdempotencyKey.generate())
    await store.blocks.block(ann, carl, IdempotencyKey.generate())

    async def check() -> None:
        for refused in (
            store.groups.get(bob, group),
            store.groups.list_members(bob, group, ALL),
            store.timelines.read_group(bob, group, ALL),
            store.groups.join(bob, group, IdempotencyKey.generate()),
        ):
            assert await refusal(refused) == (404, "not_found", "id")
        assert await refusal(post(store, bob, group)) == (404, "not_found", "group")

    await check()
    await store.groups.leave(carl, group, IdempotencyKey.generate())
    await store.blocks.unblock(ann, bob, IdempotencyKey.generate())
    await store.groups.get(bob, group)
    raw.hset(f"{{core}}:user:{ann}", "suspended", "1")
    await check()


async def test_whom_one_may_not_know_of_is_put_into_no_group(store: Store, people: People, raw: "redis.Redis") -> None:
    """The unknown and a block either way; a member who blocks the owner later can still be taken out."""
    ann, bob, carl, dora = await people.users(4)
    group = await new_group(store, "private", ann, dora)
    await store.blocks.block(ann, bob, IdempotencyKey.generate())
    await store.blocks.block(carl, ann, IdempotencyKey.generate())
    await store.blocks.block(dora, ann, IdempotencyKey.generate())
    before = footprint(raw)
    for member in (bob, carl, "1"):
        assert await refusal(store.groups.add_member(ann, group, member, IdempotencyKey.generate())) == (
            404,
            "not_found",
            "uid",
        )
    assert await refusal(store.groups.remove_member(ann, group, carl, IdempotencyKey.generate())) == (
        404,
        "not_found",
        "uid",
    )
    assert footprint(raw) == before
    assert json.loads(await store.groups.remove_member(ann, group, dora, IdempotencyKey.generate()))["members"] == 1


async def test_there_is_no_room_without_end(store: Store, people: People, raw: "redis.Redis") -> None:
    """5,000 members a group and 1,000 groups a user, joined or made."""
    ann, bob, carl = await people.users(3)
    group, other = await new_group(store, "public", ann), await new_group(store, "private", ann)
    raw.zadd(f"{{core}}:joined:{group}", {str(uid): 1 for uid in range(1, 4999)})
    for _ in range(2):
        await store.groups.join(bob, group, IdempotencyKey.generate())
    raw.zadd(f"{{core}}:groups:{bob}", {str(number): 1 for number in range(1, 1000)})
    before = footprint(raw)
    for refused in (
        store.groups.join(carl, group, IdempotencyKey.generate()),
        store.groups.add_member(ann, other, bob, IdempotencyKey.generate()),
        store.groups.create(bob, "x", "public", "", IdempotencyKey.generate()),
    ):
        with pytest.raises(TooLarge) as caught:
            await refused
        assert caught.value.error_code == "too_many"
    assert footprint(raw) == before


async def test_a_large_group_is_deleted_in_one_step(store: Store, people: People, raw: "redis.Redis") -> None:
    """Nobody keeps an entry that leads nowhere."""
    ann = await people.user("ann")
    group = await new_group(store, "public", ann)
    members = [str(uid) for uid in range(1, 5000)]
    raw.zadd(f"{{core}}:joined:{group}", dict.fromkeys(members, 1))
    pipeline = raw.pipeline(transaction=False)
    for member in members:
        pipeline.zadd(f"{{core}}:groups:{member}", {group: 1})
    pipeline.execute()
    await store.groups.delete(ann, group, IdempotencyKey.generate())
    assert raw.keys("{core}:groups:*") == raw.keys("{core}:joined:*") == []


async def test_the_same_request_gives_the_same_bytes(store: Store, people: People, raw: "redis.Redis") -> None:
    """Also after more people came, and nothing is made twice."""
    ann, bob = await people.users(2)
    request, joining = IdempotencyKey.from_client(ann, "k", b"group"), IdempotencyKey.from_client(bob, "k", b"join")
    made = await store.groups.create(ann, "a", "public", "", request)
    group = json.loads(made)["id"]
    joined = await store.groups.join(bob, group, joining)
    before = footprint(raw)
    assert await store.groups.create(ann, "a", "public", "", request) == made
    assert await store.groups.join(bob, group, joining) == joined
    assert footprint(raw) == before


async def test_a_suspended_user_changes_nothing(store: Store, people: People, raw: "redis.Redis") -> None:
    """A token may outlive its user's good standing."""
    ann, bob = await people.users(2)
    group = await new_group(store, "public", ann, bob)
    raw.hset(f"{{core}}:user:{bob}", "suspended", "1")
    before = footprint(raw)
    for refused in (
        store.groups.create(bob, "x", "public", "", IdempotencyKey.generate()),
        store.groups.update(bob, group, {"name": "x"}, IdempotencyKey.generate()),
        store.groups.delete(bob, group, IdempotencyKey.generate()),
        store.groups.join(bob, group, IdempotencyKey.generate()),
        store.groups.leave(bob, group, IdempotencyKey.generate()),
    ):
        with pytest.raises(Forbidden) as caught:
            await refused
        assert caught.value.error_code == "suspended"
    with pytest.raises(NotFound):
        await store.groups.create("1", "x", "public", "", IdempotencyKey.generate())
    assert footprint(raw) == before


async def _wander(store: Store, groups: list[tuple[str, str]], users: list[str], source: random.Random) -> None:
    for _ in range(30):
        (owner, group), member = source.choice(groups), source.choice(users)
        try:
            match source.choice(["join", "add", "leave", "remove", "delete"]):
                case "join":
                    await store.groups.join(member, group, IdempotencyKey.generate())
                case "add":
                    await store.groups.add_member(owner, group, member, IdempotencyKey.generate())
                case "leave":
                    await store.groups.leave(member, group, IdempotencyKey.generate())
                case "remove":
                    await store.groups.remove_member(owner, group, member, IdempotencyKey.generate())
                case "delete" if source.random() < 0.05:
                    await store.groups.delete(groups[-1][0], groups[-1][1], IdempotencyKey.generate())
        except (NotFound, BadRequest):
            pass


async def test_counters_sets_and_log_tell_one_story(store: Store, people: People, raw: "redis.Redis") -> None:
    """Twenty tasks at once: the members are those whom the log put there, both ways, and counted so."""
    users = await people.users(6)
    groups = [(users[i], await new_group(store, KINDS[i % 3], users[i])) for i in range(4)]
    await asyncio.gather(*(_wander(store, groups, users, random.Random(f"g{i}")) for i in range(20)))
    model: dict[str, set[str]] = {}
    for kind, _, wire in await heard(store):
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
