"""Requests to follow protected users: made, withdrawn, approved, refused."""

import pytest
import redis

from stream_server.errors import NotFound
from stream_server.store.store import Store
from tests.stream_server.store.people import People, footprint, new_key
from tests.stream_server.store.scenes import befriend, notifications, protect


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


async def test_an_approval_is_told_again_after_an_unfollow(store: Store, people: People) -> None:
    ann, bob = await people.users(2)
    await protect(store, bob)
    for _ in range(2):
        await befriend(store, ann, bob)
        assert [one["kind"] for one in await notifications(store, ann)] == ["approve"]
        await store.follows.unfollow(ann, bob, new_key())
        assert await notifications(store, ann) == []
