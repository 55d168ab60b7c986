"""Groups: who sees them, who comes in and how, who posts, and what is told of it."""

import asyncio
import json
import random
from typing import Any

import pytest
import redis

from stream_server.errors import BadRequest, Forbidden, NotFound, TooLarge
from stream_server.events import START
from stream_server.store.page import Piece
from stream_server.store.request import Request
from stream_server.store.store import Store
from tests.stream_server.store.people import People, footprint
from tests.stream_server.store.scenes import group as new_group
from tests.stream_server.store.scenes import ids, post, refusal

ALL = Piece(200)
KINDS = ("public", "private", "announcement")

any_kind = pytest.mark.parametrize("kind", KINDS)


async def heard(store: Store) -> list[tuple[str, str, Any]]:
    """All entries of the log: kind, audience and wire."""
    return [(e.kind, e.audience, json.loads(e.body)["wire"]) for e in await store.log.read(START, 100_000)]


@any_kind
async def test_a_group_is_made_changed_and_deleted(store: Store, people: People, raw: "redis.Redis", kind: str) -> None:
    """Its owner is in it; each step is told to the group once; nothing is left of it but its request keys."""
    ann = await people.user("ann")
    made = await store.groups.create(ann, 'a "name"', kind, "of it", Request.fresh())
    told = json.loads(made)
    assert told == {
        "id": told["id"], "uid": ann, "name": 'a "name"', "kind": kind, "description": "of it", "members": 1,
        "created": told["created"],
    }  # fmt: skip
    group = told["id"]
    assert await store.groups.get(ann, group) == made
    for _ in range(2):
        changed = await store.groups.update(ann, group, {"name": "other"}, Request.fresh())
        assert json.loads(changed) == {**told, "name": "other"}
    assert await store.groups.get(ann, group) == changed
    assert ids(await store.groups.of(ann, ann, ALL)) == [group]
    assert ids(await store.groups.members(ann, group, ALL)) == [ann]
    await store.groups.delete(ann, group, Request.fresh())
    assert await refusal(store.groups.get(ann, group)) == (404, "not_found", "id")
    assert await refusal(store.groups.delete(ann, group, Request.fresh())) == (404, "not_found", "id")
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
        assert json.loads(await store.groups.join(bob, group, Request.fresh()))["members"] == 2
    assert ids(await store.groups.members(carl, group, ALL)) == [bob, ann]
    assert ids(await store.groups.of(bob, bob, ALL)) == [group]
    for _ in range(2):
        assert json.loads(await store.groups.leave(bob, group, Request.fresh()))["members"] == 1
    await store.groups.join(bob, group, Request.fresh())
    await store.groups.remove(ann, group, bob, Request.fresh())
    await store.groups.join(bob, group, Request.fresh())
    entries = [(kind, audience, wire["user"]["id"]) for kind, audience, wire in (await heard(store))[1:]]
    assert entries == [(f"group_{verb}", f"group:{group}", bob) for verb in ("join", "leave", "join", "leave", "join")]
    before = footprint(raw)
    assert await refusal(store.groups.add(ann, group, carl, Request.fresh())) == (400, "invalid_parameter", "uid")
    assert await refusal(store.groups.add(bob, group, carl, Request.fresh())) == (403, "not_yours", "id")
    assert await refusal(store.groups.remove(bob, group, ann, Request.fresh())) == (403, "not_yours", "id")
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
            store.groups.members(uid, group, ALL),
            store.timelines.group(uid, group, ALL),
            store.groups.update(uid, group, {"name": "x"}, Request.fresh()),
            store.groups.delete(uid, group, Request.fresh()),
            store.groups.join(uid, group, Request.fresh()),
            store.groups.leave(uid, group, Request.fresh()),
            store.groups.add(uid, group, carl, Request.fresh()),
            store.groups.remove(uid, group, ann, Request.fresh()),
        ):
            assert await refusal(refused) == missing
        assert (await refusal(post(store, uid, group)))[0] == 404
        assert footprint(raw) == before
        assert ids(await store.groups.of(uid, ann, ALL)) == []

    await check_outside(bob)
    await store.groups.add(ann, group, bob, Request.fresh())
    assert json.loads(await store.groups.get(bob, group))["members"] == 2
    assert ids(await store.groups.members(bob, group, ALL)) == [bob, ann]
    assert ids(await store.groups.of(bob, ann, ALL)) == [group]
    assert await refusal(store.groups.add(bob, group, carl, Request.fresh())) == (403, "not_yours", "id")
    await store.groups.leave(bob, group, Request.fresh())
    await check_outside(bob)
    await store.groups.add(ann, group, bob, Request.fresh())
    await store.groups.remove(ann, group, bob, Request.fresh())
    await check_outside(bob)


@any_kind
async def test_the_owner_stays(store: Store, people: People, raw: "redis.Redis", kind: str) -> None:
    """An owner who wants out deletes the group; by both doors 400."""
    ann = await people.user("ann")
    group = await new_group(store, kind, ann)
    before = footprint(raw)
    assert await refusal(store.groups.leave(ann, group, Request.fresh())) == (400, "invalid_parameter", "uid")
    assert await refusal(store.groups.remove(ann, group, ann, Request.fresh())) == (400, "invalid_parameter", "uid")
    assert footprint(raw) == before


@any_kind
async def test_only_the_owner_changes_it(store: Store, people: People, kind: str) -> None:
    """Another member: 403."""
    ann, bob = await people.users(2)
    group = await new_group(store, kind, ann, bob)
    for refused in (
        store.groups.update(bob, group, {"name": "x"}, Request.fresh()),
        store.groups.delete(bob, group, Request.fresh()),
    ):
        assert await refusal(refused) == (403, "not_yours", "id")


async def test_a_group_of_a_blocker_or_suspended_owner_is_not_there(
    store: Store, people: People, raw: "redis.Redis"
) -> None:
    """Whoever is no member can neither see nor join it; a member still can leave."""
    ann, bob, carl = await people.users(3)
    group = await new_group(store, "public", ann, carl)
    await store.blocks.block(ann, bob, Request.fresh())
    await store.blocks.block(ann, carl, Request.fresh())

    async def check() -> None:
        for refused in (
            store.groups.get(bob, group),
            store.groups.members(bob, group, ALL),
            store.timelines.group(bob, group, ALL),
            store.groups.join(bob, group, Request.fresh()),
        ):
            assert await refusal(refused) == (404, "not_found", "id")
        assert await refusal(post(store, bob, group)) == (404, "not_found", "group")

    await check()
    await store.groups.leave(carl, group, Request.fresh())
    await store.blocks.unblock(ann, bob, Request.fresh())
    await store.groups.get(bob, group)
    raw.hset(f"{{core}}:user:{ann}", "suspended", "1")
    await check()


async def test_whom_one_may_not_know_of_is_put_into_no_group(store: Store, people: People, raw: "redis.Redis") -> None:
    """The unknown and a block either way; a member who blocks the owner later can still be taken out."""
    ann, bob, carl, dora = await people.users(4)
    group = await new_group(store, "private", ann, dora)
    await store.blocks.block(ann, bob, Request.fresh())
    await store.blocks.block(carl, ann, Request.fresh())
    await store.blocks.block(dora, ann, Request.fresh())
    before = footprint(raw)
    for member in (bob, carl, "1"):
        assert await refusal(store.groups.add(ann, group, member, Request.fresh())) == (404, "not_found", "uid")
    assert await refusal(store.groups.remove(ann, group, carl, Request.fresh())) == (404, "not_found", "uid")
    assert footprint(raw) == before
    assert json.loads(await store.groups.remove(ann, group, dora, Request.fresh()))["members"] == 1


async def test_there_is_no_room_without_end(store: Store, people: People, raw: "redis.Redis") -> None:
    """5,000 members a group and 1,000 groups a user, joined or made."""
    ann, bob, carl = await people.users(3)
    group, other = await new_group(store, "public", ann), await new_group(store, "private", ann)
    raw.zadd(f"{{core}}:joined:{group}", {str(uid): 1 for uid in range(1, 4999)})
    for _ in range(2):
        await store.groups.join(bob, group, Request.fresh())
    raw.zadd(f"{{core}}:groups:{bob}", {str(number): 1 for number in range(1, 1000)})
    before = footprint(raw)
    for refused in (
        store.groups.join(carl, group, Request.fresh()),
        store.groups.add(ann, other, bob, Request.fresh()),
        store.groups.create(bob, "x", "public", "", Request.fresh()),
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
    await store.groups.delete(ann, group, Request.fresh())
    assert raw.keys("{core}:groups:*") == raw.keys("{core}:joined:*") == []


async def test_the_same_request_gives_the_same_bytes(store: Store, people: People, raw: "redis.Redis") -> None:
    """Also after more people came, and nothing is made twice."""
    ann, bob = await people.users(2)
    request, joining = Request.of_client(ann, "k", b"group"), Request.of_client(bob, "k", b"join")
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
        store.groups.create(bob, "x", "public", "", Request.fresh()),
        store.groups.update(bob, group, {"name": "x"}, Request.fresh()),
        store.groups.delete(bob, group, Request.fresh()),
        store.groups.join(bob, group, Request.fresh()),
        store.groups.leave(bob, group, Request.fresh()),
    ):
        with pytest.raises(Forbidden) as caught:
            await refused
        assert caught.value.error_code == "suspended"
    with pytest.raises(NotFound):
        await store.groups.create("1", "x", "public", "", Request.fresh())
    assert footprint(raw) == before


async def _wander(store: Store, groups: list[tuple[str, str]], users: list[str], source: random.Random) -> None:
    for _ in range(30):
        (owner, group), member = source.choice(groups), source.choice(users)
        try:
            match source.choice(["join", "add", "leave", "remove", "delete"]):
                case "join":
                    await store.groups.join(member, group, Request.fresh())
                case "add":
                    await store.groups.add(owner, group, member, Request.fresh())
                case "leave":
                    await store.groups.leave(member, group, Request.fresh())
                case "remove":
                    await store.groups.remove(owner, group, member, Request.fresh())
                case "delete" if source.random() < 0.05:
                    await store.groups.delete(groups[-1][0], groups[-1][1], Request.fresh())
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
            assert set(ids(await store.groups.members(owner, group, ALL))) == members
    for user in users:
        assert set(ids(await store.groups.of(user, user, ALL))) == {g for g, m in model.items() if user in m}
        assert raw.zcard(f"{{core}}:groups:{user}") == sum(user in members for members in model.values())
