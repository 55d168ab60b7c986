"""Suspensions: everything of a suspended user is hidden and stops, and comes back with the good standing."""

import json
from typing import Any

import pytest
import redis

from stream_server.errors import ApiError, BadRequest, Forbidden, InvalidCursor, NotFound
from stream_server.events.position import LOG_START
from stream_server.store.idempotency import IdempotencyKey
from stream_server.store.pagination import PageRequest
from stream_server.store.store import Store
from tests.stream_server.store.people import People, footprint


async def suspend(store: Store, admin: str, uid: str) -> None:
    """Suspend a user."""
    assert await store.suspensions.suspend(admin, uid, IdempotencyKey.generate()) == b'{"suspended":true}'


async def reinstate(store: Store, admin: str, uid: str) -> None:
    """Suspend them no more."""
    assert await store.suspensions.reinstate(admin, uid, IdempotencyKey.generate()) == b'{"suspended":false}'


async def test_it_is_an_entry_that_no_client_is_told_of(store: Store, people: People, raw: "redis.Redis") -> None:
    """Internal, with the id only, so that streams end; where it is kept agrees with it."""
    root, ann = await people.users(2)
    await suspend(store, root, ann)
    await reinstate(store, root, ann)
    entries = await store.log.read(LOG_START, 10)
    assert [(entry.kind, entry.audience) for entry in entries] == [("suspend", "-"), ("reinstate", "-")]
    assert all(json.loads(entry.body) == {"wire": {"uid": ann}} for entry in entries)
    assert raw.exists("{core}:suspended") == 0
    assert raw.hget(f"{{core}}:user:{ann}", "suspended") is None


async def test_twice_is_once(store: Store, people: People, raw: "redis.Redis") -> None:
    """What is so already changes nothing and tells nobody, by the same request or by another."""
    root, ann = await people.users(2)
    request = IdempotencyKey.generate()
    for _ in range(2):
        await store.suspensions.suspend(root, ann, request)
        await suspend(store, root, ann)
    assert raw.xlen("{core}:log") == 1
    for _ in range(2):
        await reinstate(store, root, ann)
    assert raw.xlen("{core}:log") == 2


async def test_refusals_change_nothing(store: Store, people: People, raw: "redis.Redis") -> None:
    """Oneself, the unknown, and an administrator who is suspended."""
    root, ann, bob = await people.users(3)
    await suspend(store, root, bob)
    before = footprint(raw)
    refusals: list[tuple[Any, type[ApiError], str | None]] = [
        (store.suspensions.suspend(root, root, IdempotencyKey.generate()), BadRequest, "id"),
        (store.suspensions.suspend(root, "1", IdempotencyKey.generate()), NotFound, "id"),
        (store.suspensions.reinstate(root, "1", IdempotencyKey.generate()), NotFound, "id"),
        (store.suspensions.suspend(bob, ann, IdempotencyKey.generate()), Forbidden, None),
        (store.suspensions.reinstate(bob, bob, IdempotencyKey.generate()), Forbidden, None),
    ]
    for refused, kind, param in refusals:
        with pytest.raises(kind) as refusal:
            await refused
        assert refusal.value.param == param
    assert footprint(raw) == before


async def test_the_tokens_of_the_suspended_do_not_stand(store: Store, people: People) -> None:
    """And do again afterwards."""
    root, ann = await people.users(2)
    await suspend(store, root, ann)
    assert (await store.sessions.get_token_status(ann, "j")).suspended
    await reinstate(store, root, ann)
    assert await store.sessions.get_token_status(ann, "j") == (True, False, False)


async def test_the_suspended_write_nothing(store: Store, people: People, raw: "redis.Redis") -> None:
    """Also where a request came past the check of its token before the suspension: each script looks again."""
    root, ann, bob = await people.users(3)
    status = (await people.status(bob))["id"]
    await suspend(store, root, ann)
    before = footprint(raw)
    for refused in (
        people.status(ann),
        store.follows.follow(ann, bob, IdempotencyKey.generate()),
        store.follows.unfollow(ann, bob, IdempotencyKey.generate()),
        store.likes.like(ann, status, IdempotencyKey.generate()),
        store.comments.create(ann, status, "x", IdempotencyKey.generate()),
        store.reports.create(ann, user=bob, reason="spam", note="", idempotency_key=IdempotencyKey.generate()),
        store.notifications.mark_read(ann, "1", IdempotencyKey.generate()),
    ):
        with pytest.raises(Forbidden) as refusal:
            await refused
        assert refusal.value.error_code == "suspended"
    assert footprint(raw) == before


async def views(store: Store, viewer: str, other: str, ids: list[str]) -> list[int]:
    """How much a viewer finds of another: card, statuses by id, among followers, likers and commenters."""
    mine, theirs, quote = ids
    lists = [
        await store.follows.list_followers(viewer, viewer, PageRequest()),
        await store.follows.list_following(viewer, viewer, PageRequest()),
        await store.likes.list_likers(viewer, mine, PageRequest()),
        await store.comments.list_comments(viewer, mine, PageRequest()),
    ]
    found = [json.loads(one) for one in await store.statuses.get_many(viewer, [quote])]
    return [
        len(await store.users.get_many(viewer, [other])),
        len(await store.statuses.get_many(viewer, [theirs])),
        *(len(page.items) for page in lists),
        sum(one["original"] is not None for one in found),
    ]


async def test_all_that_is_theirs_is_hidden_and_comes_back(store: Store, people: People) -> None:
    """Card, statuses, followers, likes, comments, and the original inside another's quote."""
    root, ann, bob = await people.users(3)
    mine, theirs = [(await people.status(uid))["id"] for uid in (ann, bob)]
    quote = (await people.status(ann, "look", origin=theirs))["id"]
    await store.follows.follow(ann, bob, IdempotencyKey.generate())
    await store.follows.follow(bob, ann, IdempotencyKey.generate())
    await store.likes.like(bob, mine, IdempotencyKey.generate())
    await store.comments.create(bob, mine, "well", IdempotencyKey.generate())
    ids = [mine, theirs, quote]
    assert await views(store, ann, bob, ids) == [1] * 7
    await suspend(store, root, bob)
    assert await views(store, ann, bob, ids) == [0] * 7
    for deed in (
        store.statuses.get(ann, theirs),
        store.users.get(ann, bob),
        store.follows.list_followers(ann, bob, PageRequest()),
        store.likes.like(ann, theirs, IdempotencyKey.generate()),
        store.follows.unfollow(ann, bob, IdempotencyKey.generate()),
        people.status(ann, "x", in_reply_to=theirs),
    ):
        with pytest.raises(NotFound):
            await deed
    await reinstate(store, root, bob)
    assert await views(store, ann, bob, ids) == [1] * 7


async def test_the_list_of_the_suspended(store: Store, people: People) -> None:
    """Newest first, each with since when, in pieces that fit together; a cursor of another list is refused."""
    root, *others = await people.users(6)
    for uid in others:
        await suspend(store, root, uid)
    seen: list[dict[str, Any]] = []
    before = None
    while True:
        page = await store.suspensions.list_suspended(PageRequest(count=2, before=before))
        seen += [json.loads(item) for item in page.items]
        before = page.next
        if before is None:
            break
    assert [one["id"] for one in seen] == others[::-1]
    assert all(one["since"] > one["signup"][:10] for one in seen)
    await reinstate(store, root, others[0])
    assert len((await store.suspensions.list_suspended(PageRequest())).items) == 4
    with pytest.raises(InvalidCursor):
        await store.suspensions.list_suspended(PageRequest(before="1-2-00000000"))
