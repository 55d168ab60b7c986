"""Requests to follow protected users: asked, withdrawn, answered."""

import json

import pytest
import redis

from stream_server.errors import InvalidCursor, NotFound
from stream_server.events.position import LOG_START
from stream_server.store.idempotency import IdempotencyKey
from stream_server.store.pagination import PageRequest
from stream_server.store.store import Store
from stream_server.store.timelines.syndication import TimelineChange
from tests.stream_server.store.people import People, footprint
from tests.stream_server.store.scenes import ids, kept_notices, protect, told


async def test_to_follow_a_protected_user_is_to_ask(store: Store, people: People, raw: "redis.Redis") -> None:
    """Nobody but the two is told; asking again changes nothing; no counter moves."""
    ann, bob = await people.users(2)
    await protect(store, bob)
    for _ in range(2):
        answer = await store.follows.follow(ann, bob, IdempotencyKey.generate())
        assert json.loads(answer) == {"following": False, "requested": True}
    (asked,) = await told(store, "request")
    assert asked.audience == f"users:{ann},{bob}"
    assert (asked.wire["source"]["id"], asked.wire["target"]["id"]) == (ann, bob)
    assert kept_notices(raw, bob) == {f"request:{ann}:"}
    assert ((await people.me(ann))["following"], (await people.me(bob))["followers"]) == (0, 0)


async def test_approved_is_followed(store: Store, people: People, raw: "redis.Redis") -> None:
    """An ordinary follow, heard by all; the asker is told who let them; the request is gone on both sides."""
    ann, bob = await people.users(2)
    await protect(store, bob)
    await store.follows.follow(ann, bob, IdempotencyKey.generate())
    await store.follow_requests.approve(bob, ann, IdempotencyKey.generate())
    follow, notice = (await store.log.read(LOG_START, 10))[-2:]
    assert (follow.kind, follow.audience) == ("follow", "public")
    source, target = await store.users.get_many(ann, [ann, bob])
    assert follow.body == b'{"wire":{"source":%b,"target":%b}}' % (source, target)
    assert (notice.kind, notice.audience) == ("notification", f"users:{ann}")
    assert (kept_notices(raw, ann), kept_notices(raw, bob)) == ({f"approve:{bob}:"}, set())
    assert not raw.exists(f"{{core}}:asks:{bob}", f"{{core}}:asked:{ann}")
    assert ((await people.me(ann))["following"], (await people.me(bob))["followers"]) == (1, 1)


async def test_let_in_twice_is_told_twice(store: Store, people: People, raw: "redis.Redis") -> None:
    """Who left and asks again hears again that they were let in."""
    ann, bob = await people.users(2)
    await protect(store, bob)
    for _ in range(2):
        await store.follows.follow(ann, bob, IdempotencyKey.generate())
        await store.follow_requests.approve(bob, ann, IdempotencyKey.generate())
        assert kept_notices(raw, ann) == {f"approve:{bob}:"}
        await store.follows.unfollow(ann, bob, IdempotencyKey.generate())
        assert kept_notices(raw, ann) == set()
    assert [one.wire["notification"]["kind"] for one in await told(store, "notification")] == ["request", "approve"] * 2


@pytest.mark.parametrize("how", ["withdrawn", "refused"])
async def test_a_request_ends(store: Store, people: People, raw: "redis.Redis", how: str) -> None:
    """Withdrawn or refused it sounds the same to both, takes its notification back, and may be made again."""
    ann, bob = await people.users(2)
    await protect(store, bob)
    await store.follows.follow(ann, bob, IdempotencyKey.generate())
    if how == "withdrawn":
        answer = await store.follows.unfollow(ann, bob, IdempotencyKey.generate())
        assert json.loads(answer) == {"following": False, "requested": False}
    else:
        await store.follow_requests.refuse(bob, ann, IdempotencyKey.generate())
    (ended,) = await told(store, "unrequest")
    assert ended.audience == f"users:{ann},{bob}"
    assert not raw.exists(f"{{core}}:asks:{bob}", f"{{core}}:asked:{ann}", f"{{core}}:notices:{bob}")
    assert json.loads(await store.follows.follow(ann, bob, IdempotencyKey.generate()))["requested"]


async def test_only_what_was_asked_is_answered(store: Store, people: People, raw: "redis.Redis") -> None:
    """Nobody asked, asked by another, answered before, no such user: 404, and nothing changes."""
    ann, bob, carl = await people.users(3)
    await protect(store, bob)
    for uid in (ann, carl):
        await store.follows.follow(uid, bob, IdempotencyKey.generate())
    await store.follow_requests.approve(bob, ann, IdempotencyKey.generate())
    await store.follow_requests.refuse(bob, carl, IdempotencyKey.generate())
    before = footprint(raw)
    for answer in (store.follow_requests.approve, store.follow_requests.refuse):
        for uid, source in ((bob, ann), (bob, carl), (carl, ann), (ann, bob), (bob, "1")):
            with pytest.raises(NotFound) as refusal:
                await answer(uid, source, IdempotencyKey.generate())
            assert refusal.value.param == "id"
    assert footprint(raw) == before


async def test_requests_outlive_protection(store: Store, people: People) -> None:
    """Who protects no more is asked still, and may answer; or who asked follows without an answer."""
    ann, bob, carl = await people.users(3)
    await protect(store, bob)
    for uid in (ann, carl):
        await store.follows.follow(uid, bob, IdempotencyKey.generate())
    await protect(store, bob, on=False)
    assert ids(await store.follow_requests.list_received(bob, PageRequest())) == [carl, ann]
    await store.follow_requests.approve(bob, ann, IdempotencyKey.generate())
    assert json.loads(await store.follows.follow(carl, bob, IdempotencyKey.generate())) == {
        "following": True,
        "requested": False,
    }
    assert ids(await store.follow_requests.list_received(bob, PageRequest())) == []
    assert ids(await store.follows.list_followers(bob, bob, PageRequest())) == [carl, ann]


async def test_both_sides_can_be_read(store: Store, people: People) -> None:
    """Received and sent, newest first, each with since when, in pieces that fit together."""
    ann, *others = await people.users(6)
    for other in others:
        await protect(store, other)
        await store.follows.follow(ann, other, IdempotencyKey.generate())
    await protect(store, ann)
    for other in others:
        await store.follows.follow(other, ann, IdempotencyKey.generate())
    for read in (store.follow_requests.list_received, store.follow_requests.list_sent):
        first = await read(ann, PageRequest(3))
        rest = await read(ann, PageRequest(3, before=first.next))
        assert ids(first) + ids(rest) == others[::-1]
        assert rest.next is None
        assert all(json.loads(item)["since"] for item in first.items)
    sent = await store.follow_requests.list_sent(ann, PageRequest(1))
    with pytest.raises(InvalidCursor):
        await store.follow_requests.list_received(ann, PageRequest(1, before=sent.next))


async def test_a_suspended_asker_waits(store: Store, people: People, raw: "redis.Redis") -> None:
    """Whoever lost their standing is not shown as asking, and cannot be let in meanwhile."""
    ann, bob = await people.users(2)
    await protect(store, bob)
    await store.follows.follow(ann, bob, IdempotencyKey.generate())
    await store.suspensions.suspend(bob, ann, IdempotencyKey.generate())
    assert ids(await store.follow_requests.list_received(bob, PageRequest())) == []
    with pytest.raises(NotFound):
        await store.follow_requests.approve(bob, ann, IdempotencyKey.generate())
    await store.suspensions.reinstate(bob, ann, IdempotencyKey.generate())
    await store.follow_requests.approve(bob, ann, IdempotencyKey.generate())
    assert raw.zscore(f"{{core}}:followers:{bob}", ann)


async def test_approval_fills_the_askers_home(
    store: Store, people: People, raw: "redis.Redis", monkeypatch: pytest.MonkeyPatch
) -> None:
    """The newest posts of who let them are merged under the fence of the job that the step left."""
    ann, bob = await people.users(2)
    post = await people.status(bob)
    await protect(store, bob)
    await store.follows.follow(ann, bob, IdempotencyKey.generate())
    calls: list[TimelineChange] = []

    async def pair(*given: TimelineChange) -> None:
        calls.extend(given)

    monkeypatch.setattr(store.syndication, "apply_changes", pair)
    request = IdempotencyKey.from_client(bob, "k", b"approve")
    for _ in range(2):
        await store.follow_requests.approve(bob, ann, request)
    fence = raw.hget(f"{{core}}:job:home-{ann}-{bob}", "fence")
    assert calls == [("home", ann, bob, "merge", fence, [post["id"].encode()])]
