"""Suspensions: everything of a suspended user is hidden, and comes back when the user is reinstated."""

import json

import pytest

from stream_server.errors import InvalidCursor
from stream_server.store.pagination import PageRequest
from stream_server.store.store import Store
from tests.stream_server.store.people import People, new_key
from tests.stream_server.store.scenes import items_of, read_pages


async def suspend(store: Store, admin: str, uid: str) -> None:
    assert await store.suspensions.suspend(admin, uid, new_key()) == b'{"suspended":true}'


async def reinstate(store: Store, admin: str, uid: str) -> None:
    assert await store.suspensions.reinstate(admin, uid, new_key()) == b'{"suspended":false}'


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
