"""Blocks end follows and hide statuses in both directions. Mutes hide statuses without a notification."""

import json

import pytest
import redis

from stream_server.errors import NotFound
from stream_server.events.position import LOG_START
from stream_server.store.idempotency import IdempotencyKey
from stream_server.store.pagination import PageRequest
from stream_server.store.store import Store
from stream_server.store.timelines.syndication import TimelineChange
from tests.stream_server.store.people import People, new_key
from tests.stream_server.store.scenes import ids, logged, protect, stored_notifications


async def test_a_block_ends_both_follows_in_one_step(store: Store, people: People, raw: "redis.Redis") -> None:
    ann, bob = await people.users(2)
    await store.follows.follow(ann, bob, new_key())
    await store.follows.follow(bob, ann, new_key())
    await store.blocks.block(ann, bob, new_key())
    entries = (await store.log.read(LOG_START, 20))[-3:]
    assert [(entry.kind, entry.audience) for entry in entries] == [
        ("unfollow", "public"), ("unfollow", "public"), ("block", f"users:{ann}"),
    ]  # fmt: skip
    pairs = [(one.wire["source"]["id"], one.wire["target"]["id"]) for one in await logged(store, "unfollow", "block")]
    assert pairs == [(ann, bob), (bob, ann), (ann, bob)]
    assert entries[-1].body == b'{"wire":{"source":%b,"target":%b}}' % tuple(
        await store.users.get_many(ann, [ann, bob])
    )
    for uid in (ann, bob):
        user = await people.me(uid)
        assert (user["following"], user["followers"]) == (0, 0)
        assert stored_notifications(raw, uid) == set()


async def test_a_block_ends_follow_requests_in_both_directions(
    store: Store, people: People, raw: "redis.Redis"
) -> None:
    ann, bob = await people.users(2)
    for one, other in ((ann, bob), (bob, ann)):
        await protect(store, one)
        await protect(store, other)
        await store.follows.follow(one, other, new_key())
    await store.blocks.block(ann, bob, new_key())
    ended = await logged(store, "unrequest")
    assert [one.audience for one in ended] == [f"users:{ann},{bob}", f"users:{bob},{ann}"]
    assert raw.keys("{core}:ask*") == []


async def test_a_block_removes_statuses_from_both_home_timelines(
    store: Store, people: People, raw: "redis.Redis", monkeypatch: pytest.MonkeyPatch
) -> None:
    ann, bob, carl = await people.users(3)
    posts = {uid: (await people.status(uid))["id"].encode() for uid in (ann, bob)}
    await store.follows.follow(ann, bob, new_key())
    await store.follows.follow(bob, ann, new_key())
    calls: list[TimelineChange] = []

    async def pair(*given: TimelineChange) -> None:
        calls.extend(each for each in given if each.fence)

    monkeypatch.setattr(store.syndication, "apply_changes", pair)
    request = IdempotencyKey.from_client(ann, "k", b"block")
    for _ in range(2):
        await store.blocks.block(ann, bob, request)
    await store.blocks.block(ann, carl, new_key())
    fences = [raw.hget(f"{{core}}:job:home-{one}-{other}", "fence") for one, other in ((ann, bob), (bob, ann))]
    assert calls == [
        ("home", ann, bob, "remove", fences[0], [posts[bob]]),
        ("home", bob, ann, "remove", fences[1], [posts[ann]]),
    ]


async def test_a_blocked_user_does_not_find_the_blocker(store: Store, people: People) -> None:
    ann, bob, carl = await people.users(3)
    await store.follows.follow(carl, ann, new_key())
    status = (await people.status(ann))["id"]
    await store.blocks.block(ann, bob, new_key())
    for asked in (
        store.users.get(bob, ann), store.users.get_by_login(bob, "u0"), store.statuses.get(bob, status),
        store.follows.list_followers(bob, ann, PageRequest()), store.follows.list_following(bob, ann, PageRequest()),
        store.relations.get_relationship(bob, bob, ann), store.relations.get_relationship(bob, ann, carl),
        store.follows.follow(bob, ann, new_key()),
        store.blocks.block(bob, ann, new_key()),
    ):  # fmt: skip
        with pytest.raises(NotFound):
            await asked
    assert await store.users.get_many(bob, [ann]) == []
    assert await store.statuses.get_many(bob, [status]) == []
    assert ids(await store.follows.list_following(bob, carl, PageRequest())) == []
    assert ids(await store.follows.list_following(ann, carl, PageRequest())) == [ann]


async def test_a_blocker_sees_the_blocked_user_and_not_their_statuses(store: Store, people: People) -> None:
    ann, bob = await people.users(2)
    status = (await people.status(bob))["id"]
    await store.blocks.block(ann, bob, new_key())
    assert json.loads(await store.users.get(ann, bob))["id"] == bob
    with pytest.raises(NotFound):
        await store.statuses.get(ann, status)
    await store.blocks.unblock(ann, bob, new_key())
    assert json.loads(await store.statuses.get(ann, status))["id"] == status
    assert json.loads(await store.users.get(bob, ann))["id"] == ann


async def test_a_mention_by_a_blocked_user_is_no_notification(store: Store, people: People, raw: "redis.Redis") -> None:
    ann, bob = await people.users(2)
    await store.blocks.block(ann, bob, new_key())
    await people.status(bob, "hi @u0")
    assert stored_notifications(raw, ann) == set()


@pytest.mark.parametrize("noun", ["block", "mute"])
async def test_blocks_and_mutes_are_logged_once_and_for_their_maker_only(
    store: Store, people: People, noun: str
) -> None:
    ann, bob = await people.users(2)
    verbs = getattr(store, f"{noun}s")
    for verb in (noun, f"un{noun}"):
        for _ in range(3):
            await getattr(verbs, verb)(ann, bob, new_key())
    entries = await store.log.read(LOG_START, 10)
    assert [(entry.kind, entry.audience) for entry in entries] == [
        (noun, f"users:{ann}"), (f"un{noun}", f"users:{ann}"),
    ]  # fmt: skip
    source, target = await store.users.get_many(ann, [ann, bob])
    assert {entry.body for entry in entries} == {b'{"wire":{"source":%b,"target":%b}}' % (source, target)}


@pytest.mark.parametrize("noun", ["block", "mute"])
async def test_blocked_and_muted_users_are_paged_newest_first(store: Store, people: People, noun: str) -> None:
    ann, *others = await people.users(6)
    verbs = getattr(store, f"{noun}s")
    for other in others:
        await getattr(verbs, noun)(ann, other, new_key())
    read = f"list_{noun.removesuffix('e')}ed"
    first = await getattr(verbs, read)(ann, PageRequest(3))
    rest = await getattr(verbs, read)(ann, PageRequest(3, before=first.next))
    assert ids(first) + ids(rest) == others[::-1]
    assert all(json.loads(item)["since"] for item in first.items)
    assert ids(await getattr(verbs, read)(ann, PageRequest(2, after=rest.prev))) == others[2:4][::-1]
    await store.suspensions.suspend(ann, others[0], new_key())
    assert ids(await getattr(verbs, read)(ann, PageRequest())) == others[:0:-1]


async def test_a_mute_only_stops_notifications(store: Store, people: People, raw: "redis.Redis") -> None:
    ann, bob = await people.users(2)
    await store.follows.follow(ann, bob, new_key())
    await store.mutes.mute(ann, bob, new_key())
    status = (await people.status(bob, "hi @u0"))["id"]
    assert stored_notifications(raw, ann) == set()
    assert json.loads(await store.statuses.get(ann, status))["id"] == status
    assert ids(await store.follows.list_following(ann, ann, PageRequest())) == [bob]
    relation = await store.relations.get_relationship(bob, ann, bob)
    assert (relation.following, relation.blocking, relation.muting) == (True, False, False)
    assert not [one for one in await logged(store, "mute") if bob in one.audience]
    await store.mutes.unmute(ann, bob, new_key())
    again = (await people.status(bob, "hi again @u0"))["id"]
    assert stored_notifications(raw, ann) == {f"mention:{bob}:{again}"}
