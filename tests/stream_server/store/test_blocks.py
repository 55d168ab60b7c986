"""Blocks cut follows and sight, both ways; mutes hide without telling."""

import json

import pytest
import redis

from stream_server.errors import BadRequest, NotFound
from stream_server.events.position import LOG_START
from stream_server.store.idempotency import IdempotencyKey
from stream_server.store.pagination import PageRequest
from stream_server.store.store import Store
from stream_server.store.timelines.syndication import TimelineChange
from tests.stream_server.store.people import People, footprint
from tests.stream_server.store.scenes import ids, kept_notices, protect, told


async def test_a_block_cuts_both_follows_in_one_step(store: Store, people: People, raw: "redis.Redis") -> None:
    """Each cut is an entry that all hear; then comes the block, which only its maker hears."""
    ann, bob = await people.users(2)
    await store.follows.follow(ann, bob, IdempotencyKey.generate())
    await store.follows.follow(bob, ann, IdempotencyKey.generate())
    await store.blocks.block(ann, bob, IdempotencyKey.generate())
    entries = (await store.log.read(LOG_START, 20))[-3:]
    assert [(entry.kind, entry.audience) for entry in entries] == [
        ("unfollow", "public"), ("unfollow", "public"), ("block", f"users:{ann}"),
    ]  # fmt: skip
    pairs = [(one.wire["source"]["id"], one.wire["target"]["id"]) for one in await told(store, "unfollow", "block")]
    assert pairs == [(ann, bob), (bob, ann), (ann, bob)]
    assert entries[-1].body == b'{"wire":{"source":%b,"target":%b}}' % tuple(
        await store.users.get_many(ann, [ann, bob])
    )
    for uid in (ann, bob):
        user = await people.me(uid)
        assert (user["following"], user["followers"]) == (0, 0)
        assert kept_notices(raw, uid) == set()


async def test_a_block_ends_requests_of_both(store: Store, people: People, raw: "redis.Redis") -> None:
    """Who is blocked and had asked hears that the request ended, as if it had been refused."""
    ann, bob = await people.users(2)
    for one, other in ((ann, bob), (bob, ann)):
        await protect(store, one)
        await protect(store, other)
        await store.follows.follow(one, other, IdempotencyKey.generate())
    await store.blocks.block(ann, bob, IdempotencyKey.generate())
    ended = await told(store, "unrequest")
    assert [one.audience for one in ended] == [f"users:{ann},{bob}", f"users:{bob},{ann}"]
    assert raw.keys("{core}:ask*") == []


async def test_a_block_empties_both_homes(
    store: Store, people: People, raw: "redis.Redis", monkeypatch: pytest.MonkeyPatch
) -> None:
    """What each had of the other leaves the home timelines under the fences of the jobs that the step left."""
    ann, bob, carl = await people.users(3)
    posts = {uid: (await people.status(uid))["id"].encode() for uid in (ann, bob)}
    await store.follows.follow(ann, bob, IdempotencyKey.generate())
    await store.follows.follow(bob, ann, IdempotencyKey.generate())
    calls: list[TimelineChange] = []

    async def pair(*given: TimelineChange) -> None:
        calls.extend(each for each in given if each.fence)

    monkeypatch.setattr(store.syndication, "apply_changes", pair)
    request = IdempotencyKey.from_client(ann, "k", b"block")
    for _ in range(2):
        await store.blocks.block(ann, bob, request)
    await store.blocks.block(ann, carl, IdempotencyKey.generate())
    fences = [raw.hget(f"{{core}}:job:home-{one}-{other}", "fence") for one, other in ((ann, bob), (bob, ann))]
    assert calls == [
        ("home", ann, bob, "remove", fences[0], [posts[bob]]),
        ("home", bob, ann, "remove", fences[1], [posts[ann]]),
    ]


async def test_the_blocked_meet_nobody(store: Store, people: People) -> None:
    """The blocker's card, lists of people and statuses are to the blocked as if they were not."""
    ann, bob, carl = await people.users(3)
    await store.follows.follow(carl, ann, IdempotencyKey.generate())
    status = (await people.status(ann))["id"]
    await store.blocks.block(ann, bob, IdempotencyKey.generate())
    for asked in (
        store.users.get(bob, ann), store.users.get_by_login(bob, "u0"), store.statuses.get(bob, status),
        store.follows.list_followers(bob, ann, PageRequest()), store.follows.list_following(bob, ann, PageRequest()),
        store.relations.get_relationship(bob, bob, ann), store.relations.get_relationship(bob, ann, carl),
        store.follows.follow(bob, ann, IdempotencyKey.generate()),
        store.blocks.block(bob, ann, IdempotencyKey.generate()),
    ):  # fmt: skip
        with pytest.raises(NotFound):
            await asked
    assert await store.users.get_many(bob, [ann]) == []
    assert await store.statuses.get_many(bob, [status]) == []
    assert ids(await store.follows.list_following(bob, carl, PageRequest())) == []
    assert ids(await store.follows.list_following(ann, carl, PageRequest())) == [ann]


async def test_the_blocker_knows_whom_but_not_their_words(store: Store, people: People) -> None:
    """The blocked one's card is there, to be unblocked by; what they write is not."""
    ann, bob = await people.users(2)
    status = (await people.status(bob))["id"]
    await store.blocks.block(ann, bob, IdempotencyKey.generate())
    assert json.loads(await store.users.get(ann, bob))["id"] == bob
    with pytest.raises(NotFound):
        await store.statuses.get(ann, status)
    await store.blocks.unblock(ann, bob, IdempotencyKey.generate())
    assert json.loads(await store.statuses.get(ann, status))["id"] == status
    assert json.loads(await store.users.get(bob, ann))["id"] == ann


async def test_the_blocked_tell_nobody(store: Store, people: People, raw: "redis.Redis") -> None:
    """A mention by whom one blocks is no notification."""
    ann, bob = await people.users(2)
    await store.blocks.block(ann, bob, IdempotencyKey.generate())
    await people.status(bob, "hi @u0")
    assert kept_notices(raw, ann) == set()


@pytest.mark.parametrize("noun", ["block", "mute"])
async def test_twice_is_once_and_undone_is_as_before(store: Store, people: People, noun: str) -> None:
    """What is so already tells nobody; only the one who does it hears of it at all."""
    ann, bob = await people.users(2)
    verbs = getattr(store, f"{noun}s")
    for verb in (noun, f"un{noun}"):
        for _ in range(3):
            await getattr(verbs, verb)(ann, bob, IdempotencyKey.generate())
    entries = await store.log.read(LOG_START, 10)
    assert [(entry.kind, entry.audience) for entry in entries] == [
        (noun, f"users:{ann}"), (f"un{noun}", f"users:{ann}"),
    ]  # fmt: skip
    source, target = await store.users.get_many(ann, [ann, bob])
    assert {entry.body for entry in entries} == {b'{"wire":{"source":%b,"target":%b}}' % (source, target)}


@pytest.mark.parametrize("verb", ["block", "unblock", "mute", "unmute"])
async def test_refusals_change_nothing(store: Store, people: People, raw: "redis.Redis", verb: str) -> None:
    """Oneself, the unknown, and an unknown oneself are refused by name."""
    ann = await people.user("Ann")
    before = footprint(raw)
    do = getattr(store.blocks if "block" in verb else store.mutes, verb)
    with pytest.raises(BadRequest) as oneself:
        await do(ann, ann, IdempotencyKey.generate())
    with pytest.raises(NotFound) as unknown:
        await do(ann, "1", IdempotencyKey.generate())
    with pytest.raises(NotFound) as nobody:
        await do("1", ann, IdempotencyKey.generate())
    assert [error.value.param for error in (oneself, unknown, nobody)] == ["id", "id", None]
    assert footprint(raw) == before


@pytest.mark.parametrize("noun", ["block", "mute"])
async def test_whom_one_blocks_and_mutes_can_be_read(store: Store, people: People, noun: str) -> None:
    """Newest first, each with since when, in pieces; of the suspended nothing is said."""
    ann, *others = await people.users(6)
    verbs = getattr(store, f"{noun}s")
    for other in others:
        await getattr(verbs, noun)(ann, other, IdempotencyKey.generate())
    read = f"list_{noun.removesuffix('e')}ed"
    first = await getattr(verbs, read)(ann, PageRequest(3))
    rest = await getattr(verbs, read)(ann, PageRequest(3, before=first.next))
    assert ids(first) + ids(rest) == others[::-1]
    assert all(json.loads(item)["since"] for item in first.items)
    assert ids(await getattr(verbs, read)(ann, PageRequest(2, after=rest.prev))) == others[2:4][::-1]
    await store.suspensions.suspend(ann, others[0], IdempotencyKey.generate())
    assert ids(await getattr(verbs, read)(ann, PageRequest())) == others[:0:-1]


async def test_a_mute_cuts_nothing_and_is_not_told(store: Store, people: People, raw: "redis.Redis") -> None:
    """The muted may be looked up and is followed still, but is heard of no more; nothing tells them."""
    ann, bob = await people.users(2)
    await store.follows.follow(ann, bob, IdempotencyKey.generate())
    await store.mutes.mute(ann, bob, IdempotencyKey.generate())
    status = (await people.status(bob, "hi @u0"))["id"]
    assert kept_notices(raw, ann) == set()
    assert json.loads(await store.statuses.get(ann, status))["id"] == status
    assert ids(await store.follows.list_following(ann, ann, PageRequest())) == [bob]
    relation = await store.relations.get_relationship(bob, ann, bob)
    assert (relation.following, relation.blocking, relation.muting) == (True, False, False)
    assert not [one for one in await told(store, "mute") if bob in one.audience]
    await store.mutes.unmute(ann, bob, IdempotencyKey.generate())
    again = (await people.status(bob, "hi again @u0"))["id"]
    assert kept_notices(raw, ann) == {f"mention:{bob}:{again}"}
