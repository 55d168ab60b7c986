"""Requests to follow protected users: made, withdrawn, approved, refused."""

import json

import pytest
import redis

from stream_server.errors import InvalidCursor, NotFound
from stream_server.store.pagination import PageRequest
from stream_server.store.store import Store
from tests.stream_server.store.people import People, footprint, new_key
from tests.stream_server.store.scenes import ids, items_of, protect


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
        assert all(json.loads(item)["since"] for item in items_of(first))
    sent = await store.follow_requests.list_sent(ann, PageRequest(1))
    with pytest.raises(InvalidCursor):
        await store.follow_requests.list_received(ann, PageRequest(1, before=sent.next))
