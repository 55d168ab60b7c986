"""Lists: whose they are, who sees them, who is on them, and what is told of it."""

import asyncio
import json
import random
from typing import Any

import pytest
import redis

from stream_server.errors import ApiError, Forbidden, NotFound, TooLarge
from stream_server.events.position import LOG_START
from stream_server.store.idempotency import IdempotencyKey
from stream_server.store.pagination import PageRequest
from stream_server.store.store import Store
from tests.stream_server.store.people import People, footprint
from tests.stream_server.store.queue import check, drain

ALL = PageRequest(200)


async def make(store: Store, uid: str, name: str = "friends", *, private: bool = False) -> str:
    """The id of a new list."""
    return str(json.loads(await store.lists.create(uid, name, "", private, IdempotencyKey.generate()))["id"])


async def ids(page: Any) -> list[str]:
    """The ids on a page."""
    return [json.loads(item)["id"] for item in (await page).items]


async def heard(store: Store) -> list[tuple[str, str, Any]]:
    """All entries of the log: kind, audience and wire."""
    return [(e.kind, e.audience, json.loads(e.body)["wire"]) for e in await store.log.read(LOG_START, 100_000)]


async def test_a_list_is_made_changed_and_deleted(store: Store, people: People, raw: "redis.Redis") -> None:
    """Each step is told to its owner alone, in the bytes of the answer; a change to what is so already is none."""
    ann = await people.user("ann")
    made = await store.lists.create(ann, 'a "name"', "all\\of it", False, IdempotencyKey.generate())
    told = json.loads(made)
    assert told == {
        "id": told["id"], "uid": ann, "name": 'a "name"', "description": "all\\of it", "private": False, "members": 0,
        "created": told["created"],
    }  # fmt: skip
    assert await store.lists.get(ann, told["id"]) == made
    changes: dict[str, str | bool] = {"name": "other", "private": True}
    for _ in range(2):
        changed = await store.lists.update(ann, told["id"], changes, IdempotencyKey.generate())
        assert json.loads(changed) == {**told, **changes}
    assert await store.lists.update(ann, told["id"], {}, IdempotencyKey.generate()) == changed
    assert await store.lists.get(ann, told["id"]) == changed
    await store.lists.delete(ann, told["id"], IdempotencyKey.generate())
    with pytest.raises(NotFound):
        await store.lists.get(ann, told["id"])
    with pytest.raises(NotFound):
        await store.lists.delete(ann, told["id"], IdempotencyKey.generate())
    assert (await store.lists.list_owned(ann, ann, ALL)).items == []
    assert await heard(store) == [
        ("list_create", f"users:{ann}", {"list": told}),
        ("list_update", f"users:{ann}", {"list": json.loads(changed)}),
        ("list_delete", f"users:{ann}", {"list": {"id": told["id"], "uid": ann, "deleted": True}}),
    ]
    assert raw.zscore("{core}:due", f"drop-list-{told['id']}") is not None
    assert raw.hget(f"{{core}}:job:drop-list-{told['id']}", "owner") == told["id"].encode()


async def test_the_same_request_gives_the_same_bytes(store: Store, people: People, raw: "redis.Redis") -> None:
    """Also after the list was changed, and nothing is made twice."""
    ann, bob = await people.users(2)
    request = IdempotencyKey.from_client(ann, "k", b"list")
    made = await store.lists.create(ann, "a", "", False, request)
    list_id = json.loads(made)["id"]
    adding = IdempotencyKey.from_client(ann, "add", b"list")
    added = await store.lists.add_member(ann, list_id, bob, adding)
    before = footprint(raw)
    assert await store.lists.create(ann, "a", "", False, request) == made
    assert await store.lists.add_member(ann, list_id, bob, adding) == added
    assert footprint(raw) == before


async def test_members_come_and_go_once(store: Store, people: People, raw: "redis.Redis") -> None:
    """Twice is once; owner and member are told, and both sets and the counter agree."""
    ann, bob = await people.users(2)
    list_id = await make(store, ann)
    for _ in range(2):
        assert json.loads(await store.lists.add_member(ann, list_id, bob, IdempotencyKey.generate()))["members"] == 1
    assert await ids(store.lists.list_members(bob, list_id, ALL)) == [bob]
    assert await ids(store.lists.list_containing(bob, bob, ALL)) == [list_id]
    for _ in range(2):
        assert json.loads(await store.lists.remove_member(ann, list_id, bob, IdempotencyKey.generate()))["members"] == 0
    assert (
        await ids(store.lists.list_members(bob, list_id, ALL))
        == await ids(store.lists.list_containing(bob, bob, ALL))
        == []
    )
    _, added, removed = await heard(store)
    assert [(kind, audience) for kind, audience, _ in (added, removed)] == [
        ("list_add", f"users:{ann},{bob}"), ("list_remove", f"users:{ann},{bob}"),
    ]  # fmt: skip
    assert (added[2]["user"]["id"], added[2]["list"]["members"], removed[2]["list"]["members"]) == (bob, 1, 0)
    assert raw.hget(f"{{core}}:user:{bob}", "left") == b"1"


async def test_a_private_list_is_its_owners_secret(store: Store, people: People) -> None:
    """For others it is not there, under every verb; its members are not told, and do not find it on themselves."""
    ann, bob = await people.users(2)
    list_id = await make(store, ann, private=True)
    await store.lists.add_member(ann, list_id, bob, IdempotencyKey.generate())
    assert (await heard(store))[-1][1] == f"users:{ann}"
    assert (
        await ids(store.lists.list_owned(bob, ann, ALL)) == await ids(store.lists.list_containing(bob, bob, ALL)) == []
    )
    assert (
        await ids(store.lists.list_owned(ann, ann, ALL))
        == await ids(store.lists.list_containing(ann, bob, ALL))
        == [list_id]
    )
    before = await heard(store)
    for refused in (
        store.lists.get(bob, list_id),
        store.lists.list_members(bob, list_id, ALL),
        store.lists.update(bob, list_id, {"name": "x"}, IdempotencyKey.generate()),
        store.lists.delete(bob, list_id, IdempotencyKey.generate()),
        store.lists.add_member(bob, list_id, ann, IdempotencyKey.generate()),
        store.lists.remove_member(bob, list_id, bob, IdempotencyKey.generate()),
        store.follows.follow(bob, ann, IdempotencyKey.generate(), list_id),
    ):
        with pytest.raises(NotFound):
            await refused
    assert await heard(store) == before


async def test_a_public_list_is_seen_by_all_and_changed_by_one(store: Store, people: People) -> None:
    """Another's: 403 under every verb that changes."""
    ann, bob = await people.users(2)
    list_id = await make(store, ann)
    assert json.loads(await store.lists.get(bob, list_id))["uid"] == ann
    assert await ids(store.lists.list_owned(bob, ann, ALL)) == [list_id]
    for refused in (
        store.lists.update(bob, list_id, {"name": "x"}, IdempotencyKey.generate()),
        store.lists.delete(bob, list_id, IdempotencyKey.generate()),
        store.lists.add_member(bob, list_id, bob, IdempotencyKey.generate()),
        store.lists.remove_member(bob, list_id, bob, IdempotencyKey.generate()),
        store.follows.follow(bob, ann, IdempotencyKey.generate(), list_id),
    ):
        with pytest.raises(Forbidden) as refusal:
            await refused
        assert refusal.value.error_code == "not_yours"


async def test_a_list_of_who_blocks_or_is_suspended_is_not_there(
    store: Store, people: People, raw: "redis.Redis"
) -> None:
    """Nor is it found on anybody, nor may it be known by trying to change it."""
    ann, bob = await people.users(2)
    list_id = await make(store, ann)
    await store.lists.add_member(ann, list_id, bob, IdempotencyKey.generate())

    async def check() -> None:
        with pytest.raises(NotFound):
            await store.lists.get(bob, list_id)
        with pytest.raises(NotFound):
            await store.lists.list_members(bob, list_id, ALL)
        with pytest.raises(NotFound):
            await store.lists.delete(bob, list_id, IdempotencyKey.generate())
        with pytest.raises(NotFound):
            await store.lists.list_owned(bob, ann, ALL)
        assert await ids(store.lists.list_containing(bob, bob, ALL)) == []

    await store.blocks.block(ann, bob, IdempotencyKey.generate())
    await check()
    await store.blocks.unblock(ann, bob, IdempotencyKey.generate())
    assert await ids(store.lists.list_containing(bob, bob, ALL)) == [list_id]
    raw.hset(f"{{core}}:user:{ann}", "suspended", "1")
    await check()


async def test_whom_one_may_not_know_of_is_put_on_no_list(store: Store, people: People, raw: "redis.Redis") -> None:
    """The unknown, the suspended, and a block either way; who is blocked later can be taken off, and is not told."""
    ann, bob, carl, dora = await people.users(4)
    list_id = await make(store, ann)
    await store.lists.add_member(ann, list_id, dora, IdempotencyKey.generate())
    await store.blocks.block(ann, bob, IdempotencyKey.generate())
    await store.blocks.block(ann, dora, IdempotencyKey.generate())
    await store.blocks.block(carl, ann, IdempotencyKey.generate())
    before = footprint(raw)
    for member in (bob, carl, "1"):
        with pytest.raises(NotFound) as refusal:
            await store.lists.add_member(ann, list_id, member, IdempotencyKey.generate())
        assert refusal.value.param == "uid"
    with pytest.raises(NotFound) as refusal:
        await store.lists.remove_member(ann, list_id, carl, IdempotencyKey.generate())
    assert footprint(raw) == before
    await store.lists.remove_member(ann, list_id, dora, IdempotencyKey.generate())
    assert (await heard(store))[-1][:2] == ("list_remove", f"users:{ann}")


async def test_there_is_no_room_without_end(store: Store, people: People, raw: "redis.Redis") -> None:
    """1,000 lists a user and 5,000 members a list; who is on it stays so, and following onto it is refused as well."""
    ann, bob, carl = await people.users(3)
    list_id = await make(store, ann)
    raw.zadd(f"{{core}}:members:{list_id}", {str(uid): 1 for uid in range(1, 5000)})
    for _ in range(2):
        await store.lists.add_member(ann, list_id, bob, IdempotencyKey.generate())
    for refused in (
        store.lists.add_member(ann, list_id, carl, IdempotencyKey.generate()),
        store.follows.follow(ann, carl, IdempotencyKey.generate(), list_id),
    ):
        with pytest.raises(TooLarge) as refusal:
            await refused
        assert refusal.value.error_code == "too_many"
    raw.zadd(f"{{core}}:lists:{ann}", {str(number): number for number in range(1, 1000)})
    before = footprint(raw)
    with pytest.raises(TooLarge):
        await make(store, ann)
    assert footprint(raw) == before


async def test_follow_and_unfollow_take_a_list(store: Store, people: People) -> None:
    """They do for the list what they do for home, in one call."""
    ann, bob = await people.users(2)
    list_id = await make(store, ann)
    await store.follows.follow(ann, bob, IdempotencyKey.generate(), list_id)
    assert await ids(store.lists.list_members(ann, list_id, ALL)) == [bob]
    await store.follows.unfollow(ann, bob, IdempotencyKey.generate(), list_id)
    assert await ids(store.lists.list_members(ann, list_id, ALL)) == []
    kinds = [kind for kind, _, _ in await heard(store)]
    assert [kind for kind in kinds if kind != "notification"] == [
        "list_create", "follow", "list_add", "unfollow", "list_remove",
    ]  # fmt: skip


async def test_the_timeline_follows_in_the_same_call(store: Store, people: People, raw: "redis.Redis") -> None:
    """Posts are in it when their author has come on the list, and out when they have gone; new ones and deletes too."""
    ann, bob, carl = await people.users(3)
    old, other = (await people.status(bob))["id"], (await people.status(carl))["id"]
    list_id = await make(store, ann)
    for member in (bob, carl):
        await store.lists.add_member(ann, list_id, member, IdempotencyKey.generate())
    assert await ids(store.timelines.read_list(ann, list_id, ALL)) == [other, old]
    new = (await people.status(bob))["id"]
    await drain(store, raw)
    assert await ids(store.timelines.read_list(ann, list_id, ALL)) == [new, other, old]
    await store.statuses.delete(bob, old, IdempotencyKey.generate())
    assert await ids(store.timelines.read_list(ann, list_id, ALL)) == [new, other]
    await store.lists.remove_member(ann, list_id, bob, IdempotencyKey.generate())
    assert await ids(store.timelines.read_list(ann, list_id, ALL)) == [other]
    await drain(store, raw)
    check(raw)


async def test_nothing_is_left_of_a_deleted_list(store: Store, people: People, raw: "redis.Redis") -> None:
    """The job takes away its timeline, its members and what they knew of it, also behind a post on its way."""
    ann, bob, carl = await people.users(3)
    list_id, kept = await make(store, ann), await make(store, ann)
    for member in (bob, carl):
        await store.lists.add_member(ann, list_id, member, IdempotencyKey.generate())
        await store.lists.add_member(ann, kept, member, IdempotencyKey.generate())
        await people.status(member)
    await store.lists.delete(ann, list_id, IdempotencyKey.generate())
    await people.status(bob)
    assert await ids(store.lists.list_containing(bob, bob, ALL)) == [kept]
    with pytest.raises(NotFound):
        await store.timelines.read_list(ann, list_id, ALL)
    await drain(store, raw)
    check(raw)
    named = [key for key in raw.keys("*") if list_id.encode() in key and b":request:" not in key]
    assert named == []
    assert {member for uid in (bob, carl) for member in raw.zrange(f"{{core}}:listed:{uid}", 0, -1)} == {kept.encode()}


async def test_lists_are_paged_newest_first(store: Store, people: People) -> None:
    """In pieces that fit together, though some between them are not to be seen."""
    ann, bob = await people.users(2)
    made = [await make(store, ann, f"l{i}", private=i % 3 == 0) for i in range(9)]
    public = [list_id for i, list_id in enumerate(made) if i % 3][::-1]
    assert await ids(store.lists.list_owned(ann, ann, ALL)) == made[::-1]
    seen: list[str] = []
    cursor: str | None = None
    while True:
        page = await store.lists.list_owned(bob, ann, PageRequest(4, before=cursor))
        seen += [json.loads(item)["id"] for item in page.items]
        cursor = page.next
        if cursor is None:
            break
    assert seen == public


async def test_a_suspended_or_unknown_owner_changes_nothing(store: Store, people: People, raw: "redis.Redis") -> None:
    """A token may outlive its user's good standing."""
    ann = await people.user("ann")
    list_id = await make(store, ann)
    raw.hset(f"{{core}}:user:{ann}", "suspended", "1")
    before = footprint(raw)
    for refused in (
        store.lists.create(ann, "x", "", False, IdempotencyKey.generate()),
        store.lists.create("1", "x", "", False, IdempotencyKey.generate()),
        store.lists.update(ann, list_id, {"name": "x"}, IdempotencyKey.generate()),
        store.lists.delete(ann, list_id, IdempotencyKey.generate()),
        store.lists.add_member(ann, list_id, ann, IdempotencyKey.generate()),
        store.lists.remove_member(ann, list_id, ann, IdempotencyKey.generate()),
    ):
        with pytest.raises(ApiError) as refusal:
            await refused
        assert refusal.value.status in {403, 404}
    assert footprint(raw) == before


async def _wander(store: Store, owner: str, lists: list[str], users: list[str], source: random.Random) -> None:
    for _ in range(25):
        list_id, member = source.choice(lists), source.choice(users)
        try:
            match source.choice(["add", "add", "remove", "follow", "unfollow", "delete"]):
                case "add":
                    await store.lists.add_member(owner, list_id, member, IdempotencyKey.generate())
                case "remove":
                    await store.lists.remove_member(owner, list_id, member, IdempotencyKey.generate())
                case "follow":
                    await store.follows.follow(owner, member, IdempotencyKey.generate(), list_id)
                case "unfollow":
                    await store.follows.unfollow(owner, member, IdempotencyKey.generate(), list_id)
                case "delete" if source.random() < 0.05:
                    await store.lists.delete(owner, lists[-1], IdempotencyKey.generate())
        except ApiError as refusal:
            if refusal.status != 404:
                raise


async def test_counters_sets_and_log_tell_one_story(store: Store, people: People, raw: "redis.Redis") -> None:
    """Twenty tasks at once: the members of a list are those whom the log put there, both ways, and counted so."""
    owner, *users = await people.users(6)
    lists = [await make(store, owner, f"l{i}") for i in range(3)]
    await asyncio.gather(*(_wander(store, owner, lists, users, random.Random(f"l{i}")) for i in range(20)))
    model: dict[str, set[str]] = {}
    for kind, _, wire in await heard(store):
        if kind == "list_create":
            model[wire["list"]["id"]] = set()
        elif kind == "list_delete":
            del model[wire["list"]["id"]]
        elif kind in {"list_add", "list_remove"}:
            members, member = model[wire["list"]["id"]], wire["user"]["id"]
            assert (member in members) == (kind == "list_remove")
            members ^= {member}
            assert wire["list"]["members"] == len(members)
    assert set(await ids(store.lists.list_owned(owner, owner, ALL))) == set(model)
    for list_id, members in model.items():
        assert json.loads(await store.lists.get(owner, list_id))["members"] == len(members)
        assert set(await ids(store.lists.list_members(owner, list_id, ALL))) == members
    for user in users:
        on = {list_id for list_id, members in model.items() if user in members}
        assert set(await ids(store.lists.list_containing(owner, user, ALL))) == on
