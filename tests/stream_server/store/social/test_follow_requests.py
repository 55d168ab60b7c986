"""Requests to follow protected users: made, withdrawn, approved, refused."""

import json
from collections.abc import AsyncIterator

import pytest
import redis

from stream_server.errors import InvalidCursor, NotFound
from stream_server.events.position import LOG_START
from stream_server.store.idempotency import IdempotencyKey
from stream_server.store.pagination import PageRequest
from stream_server.store.store import Store
from stream_server.store.timelines.syndication import TimelineChange
from tests.stream_server.store.job_queue import BY_JOBS, home
from tests.stream_server.store.people import People, footprint, new_key, open_store
from tests.stream_server.store.scenes import ids, logged, protect, stored_notifications


async def test_following_a_protected_user_makes_a_request(store: Store, people: People, raw: "redis.Redis") -> None:
    ann, bob = await people.users(2)
    await protect(store, bob)
    for _ in range(2):
        answer = await store.follows.follow(ann, bob, new_key())
        assert json.loads(answer) == {"following": False, "requested": True}
    (asked,) = await logged(store, "request")
    assert asked.audience == f"users:{ann},{bob}"
    assert (asked.wire["source"]["id"], asked.wire["target"]["id"]) == (ann, bob)
    assert stored_notifications(raw, bob) == {f"request:{ann}:"}
    assert ((await people.me(ann))["following"], (await people.me(bob))["followers"]) == (0, 0)


async def test_approving_a_request_makes_a_follow_and_a_notification(
    store: Store, people: People, raw: "redis.Redis"
) -> None:
    ann, bob = await people.users(2)
    await protect(store, bob)
    await store.follows.follow(ann, bob, new_key())
    await store.follow_requests.approve(bob, ann, new_key())
    follow, notice = (await store.log.read(LOG_START, 10))[-2:]
    assert (follow.kind, follow.audience) == ("follow", "public")
    source, target = await store.users.get_many(ann, [ann, bob])
    assert follow.body == b'{"wire":{"source":%b,"target":%b}}' % (source, target)
    assert (notice.kind, notice.audience) == ("notification", f"users:{ann}")
    assert (stored_notifications(raw, ann), stored_notifications(raw, bob)) == ({f"approve:{bob}:"}, set())
    assert not raw.exists(f"{{core}}:asks:{bob}", f"{{core}}:asked:{ann}")
    assert ((await people.me(ann))["following"], (await people.me(bob))["followers"]) == (1, 1)


async def test_a_second_approval_notifies_again(store: Store, people: People, raw: "redis.Redis") -> None:
    ann, bob = await people.users(2)
    await protect(store, bob)
    for _ in range(2):
        await store.follows.follow(ann, bob, new_key())
        await store.follow_requests.approve(bob, ann, new_key())
        assert stored_notifications(raw, ann) == {f"approve:{bob}:"}
        await store.follows.unfollow(ann, bob, new_key())
        assert stored_notifications(raw, ann) == set()
    assert [one.wire["notification"]["kind"] for one in await logged(store, "notification")] == [
        "request",
        "approve",
    ] * 2


@pytest.mark.parametrize("how", ["withdrawn", "refused"])
async def test_a_withdrawn_or_refused_request_takes_its_notification_back(
    store: Store, people: People, raw: "redis.Redis", how: str
) -> None:
    ann, bob = await people.users(2)
    await protect(store, bob)
    await store.follows.follow(ann, bob, new_key())
    if how == "withdrawn":
        answer = await store.follows.unfollow(ann, bob, new_key())
        assert json.loads(answer) == {"following": False, "requested": False}
    else:
        await store.follow_requests.refuse(bob, ann, new_key())
    (ended,) = await logged(store, "unrequest")
    assert ended.audience == f"users:{ann},{bob}"
    assert not raw.exists(f"{{core}}:asks:{bob}", f"{{core}}:asked:{ann}", f"{{core}}:notices:{bob}")
    assert json.loads(await store.follows.follow(ann, bob, new_key()))["requested"]


async def test_only_an_open_request_is_answered(store: Store, people: People, raw: "redis.Redis") -> None:
    ann, bob, carl = await people.users(3)
    await protect(store, bob)
    for uid in (ann, carl):
        await store.follows.follow(uid, bob, new_key())
    await store.follow_requests.approve(bob, ann, new_key())
    await store.follow_requests.refuse(bob, carl, new_key())
    before = footprint(raw)
    for answer in (store.follow_requests.approve, store.follow_requests.refuse):
        for uid, source in ((bob, ann), (bob, carl), (carl, ann), (ann, bob), (bob, "1")):
            with pytest.raises(NotFound) as refusal:
                await answer(uid, source, new_key())
            assert refusal.value.param == "id"
    assert footprint(raw) == before


async def test_requests_outlive_protection(store: Store, people: People) -> None:
    ann, bob, carl = await people.users(3)
    await protect(store, bob)
    for uid in (ann, carl):
        await store.follows.follow(uid, bob, new_key())
    await protect(store, bob, on=False)
    assert ids(await store.follow_requests.list_received(bob, PageRequest())) == [carl, ann]
    await store.follow_requests.approve(bob, ann, new_key())
    assert json.loads(await store.follows.follow(carl, bob, new_key())) == {"following": True, "requested": False}
    assert ids(await store.follow_requests.list_received(bob, PageRequest())) == []
    assert ids(await store.follows.list_followers(bob, bob, PageRequest())) == [carl, ann]


async def test_received_and_sent_requests_are_paged_newest_first(store: Store, people: People) -> None:
    ann, *others = await people.users(6)
    for other in others:
        await protect(store, other)
        await store.follows.follow(ann, other, new_key())
    await protect(store, ann)
    for other in others:
        await store.follows.follow(other, ann, new_key())
    for read in (store.follow_requests.list_received, store.follow_requests.list_sent):
        first = await read(ann, PageRequest(3))
        rest = await read(ann, PageRequest(3, before=first.next))
        assert ids(first) + ids(rest) == others[::-1]
        assert rest.next is None
        assert all(json.loads(item)["since"] for item in first.items)
    sent = await store.follow_requests.list_sent(ann, PageRequest(1))
    with pytest.raises(InvalidCursor):
        await store.follow_requests.list_received(ann, PageRequest(1, before=sent.next))


async def test_a_request_of_a_suspended_user_waits(store: Store, people: People, raw: "redis.Redis") -> None:
    ann, bob = await people.users(2)
    await protect(store, bob)
    await store.follows.follow(ann, bob, new_key())
    await store.suspensions.suspend(bob, ann, new_key())
    assert ids(await store.follow_requests.list_received(bob, PageRequest())) == []
    with pytest.raises(NotFound):
        await store.follow_requests.approve(bob, ann, new_key())
    await store.suspensions.reinstate(bob, ann, new_key())
    await store.follow_requests.approve(bob, ann, new_key())
    assert raw.zscore(f"{{core}}:followers:{bob}", ann)


@pytest.fixture
async def job_store(redis_url: str) -> AsyncIterator[Store]:
    async with open_store(redis_url, size_limits=BY_JOBS) as made:
        yield made


async def test_approval_merges_statuses_into_the_followers_home(
    store: Store, people: People, raw: "redis.Redis"
) -> None:
    ann, bob = await people.users(2)
    post = await people.status(bob)
    await protect(store, bob)
    await store.follows.follow(ann, bob, new_key())
    await store.follow_requests.approve(bob, ann, new_key())
    assert home(raw, ann) == {post["id"]}


async def test_approval_leaves_a_job_and_the_request_does_it_once(
    job_store: Store, people: People, raw: "redis.Redis", monkeypatch: pytest.MonkeyPatch
) -> None:
    store = job_store
    ann, bob = await people.users(2)
    post = await people.status(bob)
    await protect(store, bob)
    await store.follows.follow(ann, bob, new_key())
    calls: list[TimelineChange] = []

    async def pair(*given: TimelineChange) -> None:
        calls.extend(given)

    monkeypatch.setattr(store.syndication, "apply_changes", pair)
    request = IdempotencyKey.from_client(bob, "k", b"approve")
    for _ in range(2):
        await store.follow_requests.approve(bob, ann, request)
    fence = raw.hget(f"{{core}}:job:home-{ann}-{bob}", "fence")
    assert calls == [("home", ann, bob, "merge", fence, [post["id"].encode()])]
