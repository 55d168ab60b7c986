"""Suspensions: everything of a suspended user is hidden, and comes back when the user is reinstated."""

import json
from typing import Any

import pytest
import redis

from stream_server.errors import ApiError, BadRequest, Forbidden, InvalidCursor, NotFound
from stream_server.events.position import LOG_START
from stream_server.store.pagination import PageRequest
from stream_server.store.social.sessions import TokenId
from stream_server.store.store import Store
from tests.stream_server.store.people import People, footprint, new_key
from tests.stream_server.store.scenes import items_of, read_pages


async def suspend(store: Store, admin: str, uid: str) -> None:
    assert await store.suspensions.suspend(admin, uid, new_key()) == b'{"suspended":true}'


async def reinstate(store: Store, admin: str, uid: str) -> None:
    assert await store.suspensions.reinstate(admin, uid, new_key()) == b'{"suspended":false}'


async def test_a_suspension_is_an_internal_log_entry(store: Store, people: People, raw: "redis.Redis") -> None:
    root, ann = await people.users(2)
    await suspend(store, root, ann)
    await reinstate(store, root, ann)
    entries = await store.log.read(LOG_START, 10)
    assert [(entry.kind, entry.audience) for entry in entries] == [("suspend", "-"), ("reinstate", "-")]
    assert all(json.loads(entry.body) == {"wire": {"uid": ann}} for entry in entries)
    assert raw.exists("{core}:suspended") == 0
    assert raw.hget(f"{{core}}:user:{ann}", "suspended") == b"0"


async def test_refusals_change_nothing(store: Store, people: People, raw: "redis.Redis") -> None:
    root, ann, bob = await people.users(3)
    await suspend(store, root, bob)
    before = footprint(raw)
    refusals: list[tuple[Any, type[ApiError], str | None]] = [
        (store.suspensions.suspend(root, root, new_key()), BadRequest, "id"),
        (store.suspensions.suspend(root, "1", new_key()), NotFound, "id"),
        (store.suspensions.reinstate(root, "1", new_key()), NotFound, "id"),
        (store.suspensions.suspend(bob, ann, new_key()), Forbidden, None),
        (store.suspensions.reinstate(bob, bob, new_key()), Forbidden, None),
    ]
    for refused, kind, param in refusals:
        with pytest.raises(kind) as refusal:
            await refused
        assert refusal.value.param == param
    assert footprint(raw) == before


async def test_tokens_of_a_suspended_user_are_invalid(store: Store, people: People) -> None:
    root, ann = await people.users(2)
    await suspend(store, root, ann)
    assert (await store.sessions.get_token_status(TokenId(ann, "j"))).suspended
    await reinstate(store, root, ann)
    assert (await store.sessions.get_token_status(TokenId(ann, "j")))[:3] == (True, False, False)


async def test_suspended_users_are_paged_newest_first(store: Store, people: People) -> None:
    root, *others = await people.users(6)
    for uid in others:
        await suspend(store, root, uid)
    pages = await read_pages(store.suspensions.list_suspended, 2)
    seen = [json.loads(item) for page in pages for item in items_of(page)]
    assert [one["id"] for one in seen] == others[::-1]
    assert all(one["since"] > one["signup"][:10] for one in seen)
    await reinstate(store, root, others[0])
    assert len(items_of(await store.suspensions.list_suspended(PageRequest()))) == 4
    with pytest.raises(InvalidCursor):
        await store.suspensions.list_suspended(PageRequest(before="1-2-00000000"))
