"""Lists: owners, visibility, members, timelines, limits, and log entries."""

import json

import pytest
import redis

from stream_server.errors import NotFound, TooLarge
from stream_server.store.pagination import PageRequest
from stream_server.store.store import Store
from tests.stream_server.store.job_queue import check_timelines, drain
from tests.stream_server.store.people import People, footprint, new_key
from tests.stream_server.store.scenes import ids, items_of, logged

ALL = PageRequest(200)


async def make(store: Store, uid: str, name: str = "friends", *, private: bool = False) -> str:
    return str(json.loads(await store.lists.create(uid, name, "", private, new_key()))["id"])


async def test_a_list_is_created_changed_and_deleted(store: Store, people: People, raw: "redis.Redis") -> None:
    ann = await people.user("ann")
    made = await store.lists.create(ann, 'a "name"', "all\\of it", False, new_key())
    answer = json.loads(made)
    assert answer == {
        "id": answer["id"], "uid": ann, "name": 'a "name"', "description": "all\\of it", "private": False, "members": 0,
        "created": answer["created"],
    }  # fmt: skip
    assert await store.lists.get(ann, answer["id"]) == made
    changes: dict[str, str | bool] = {"name": "other", "private": True}
    for _ in range(2):
        changed = await store.lists.update(ann, answer["id"], changes, new_key())
        assert json.loads(changed) == {**answer, **changes}
    assert await store.lists.update(ann, answer["id"], {}, new_key()) == changed
    assert await store.lists.get(ann, answer["id"]) == changed
    await store.lists.delete(ann, answer["id"], new_key())
    with pytest.raises(NotFound):
        await store.lists.get(ann, answer["id"])
    with pytest.raises(NotFound):
        await store.lists.delete(ann, answer["id"], new_key())
    assert items_of(await store.lists.list_owned(ann, ann, ALL)) == []
    assert await logged(store) == [
        ("list_create", f"users:{ann}", {"list": answer}),
        ("list_update", f"users:{ann}", {"list": json.loads(changed)}),
        ("list_delete", f"users:{ann}", {"list": {"id": answer["id"], "uid": ann, "deleted": True}}),
    ]
    assert raw.zscore("{core}:due", f"drop-list-{answer['id']}") is not None
    assert raw.hget(f"{{core}}:job:drop-list-{answer['id']}", "owner") == answer["id"].encode()


async def test_unknown_and_blocked_users_cannot_be_added(store: Store, people: People, raw: "redis.Redis") -> None:
    ann, bob, carl, dora = await people.users(4)
    list_id = await make(store, ann)
    await store.lists.add_member(ann, list_id, dora, new_key())
    await store.blocks.block(ann, bob, new_key())
    await store.blocks.block(ann, dora, new_key())
    await store.blocks.block(carl, ann, new_key())
    before = footprint(raw)
    for member in (bob, carl, "1"):
        with pytest.raises(NotFound) as refusal:
            await store.lists.add_member(ann, list_id, member, new_key())
        assert refusal.value.param == "uid"
    with pytest.raises(NotFound) as refusal:
        await store.lists.remove_member(ann, list_id, carl, new_key())
    assert footprint(raw) == before
    await store.lists.remove_member(ann, list_id, dora, new_key())
    assert (await logged(store))[-1][:2] == ("list_remove", f"users:{ann}")


@pytest.mark.parametrize("private", [False, True])
async def test_a_member_hears_of_a_public_list_only(store: Store, people: People, *, private: bool) -> None:
    ann, bob = await people.users(2)
    list_id = await make(store, ann, private=private)
    for member in (bob, ann):
        await store.lists.add_member(ann, list_id, member, new_key())
        await store.lists.remove_member(ann, list_id, member, new_key())
    audiences = [entry.audience for entry in await logged(store, "list_add", "list_remove")]
    assert audiences == [f"users:{ann}" if private else f"users:{ann},{bob}"] * 2 + [f"users:{ann}"] * 2


async def test_members_and_lists_are_limited(store: Store, people: People, raw: "redis.Redis") -> None:
    ann, bob, carl = await people.users(3)
    list_id = await make(store, ann)
    raw.zadd(f"{{core}}:members:{list_id}", {str(uid): 1 for uid in range(1, 5000)})
    for _ in range(2):
        await store.lists.add_member(ann, list_id, bob, new_key())
    for refused in (
        store.lists.add_member(ann, list_id, carl, new_key()),
        store.follows.follow(ann, carl, new_key(), list_id),
    ):
        with pytest.raises(TooLarge) as refusal:
            await refused
        assert refusal.value.error_code == "too_many"
    raw.zadd(f"{{core}}:lists:{ann}", {str(number): number for number in range(1, 100)})
    before = footprint(raw)
    with pytest.raises(TooLarge):
        await make(store, ann)
    assert footprint(raw) == before


async def test_the_timeline_changes_in_the_same_call(store: Store, people: People, raw: "redis.Redis") -> None:
    ann, bob, carl = await people.users(3)
    old, other = (await people.status(bob))["id"], (await people.status(carl))["id"]
    list_id = await make(store, ann)
    for member in (bob, carl):
        await store.lists.add_member(ann, list_id, member, new_key())
    assert ids(await store.timelines.read_list(ann, list_id, ALL)) == [other, old]
    new = (await people.status(bob))["id"]
    await drain(store, raw)
    assert ids(await store.timelines.read_list(ann, list_id, ALL)) == [new, other, old]
    await store.statuses.delete(bob, old, new_key())
    assert ids(await store.timelines.read_list(ann, list_id, ALL)) == [new, other]
    await store.lists.remove_member(ann, list_id, bob, new_key())
    assert ids(await store.timelines.read_list(ann, list_id, ALL)) == [other]
    await drain(store, raw)
    check_timelines(raw)
