"""The read mark of notifications, and how many are above it."""

import json
from collections.abc import Sequence
from typing import Any

import pytest
import redis

from stream_server.errors import NotFound
from stream_server.store.idempotency import IdempotencyKey
from stream_server.store.pagination import PageRequest
from stream_server.store.store import Store
from tests.stream_server.store.people import People, footprint


async def told(store: Store, uid: str) -> list[dict[str, Any]]:
    """A user's notifications, decoded."""
    return [json.loads(item) for item in (await store.notifications.list_notifications(uid, PageRequest())).items]


async def marks(store: Store, uid: str) -> Sequence[bool]:
    """Which are read, newest first."""
    return [one["read"] for one in await told(store, uid)]


async def test_the_read_mark_only_rises(store: Store, people: People) -> None:
    """Up to it all is read; a smaller id, and the same request again, change nothing; news are unread."""
    ann, bob = [await people.user(login) for login in ("ann", "bob")]
    for number in range(4):
        await people.status(bob, f"@ann {number}")
    ids = [one["id"] for one in await told(store, ann)][::-1]
    assert await store.notifications.count_unread(ann) == 4
    request = IdempotencyKey.generate()
    assert await store.notifications.mark_read(ann, ids[2], request) == 1
    assert await store.notifications.mark_read(ann, ids[2], request) == 1
    assert await store.notifications.mark_read(ann, ids[0], IdempotencyKey.generate()) == 1
    assert await marks(store, ann) == [False, True, True, True]
    assert await store.notifications.mark_read(ann, ids[3], IdempotencyKey.generate()) == 0
    await people.status(bob, "@ann again")
    assert await marks(store, ann) == [False, True, True, True, True]
    assert await store.notifications.count_unread(ann) == 1


async def test_a_mark_cannot_stand_in_the_future(store: Store, people: People, raw: "redis.Redis") -> None:
    """An id that nothing can have is refused, and nothing is written; one that is gone by now will do."""
    ann, bob = [await people.user(login) for login in ("ann", "bob")]
    gone = await people.status(bob, "@ann")
    (notice,) = await told(store, ann)
    await store.statuses.delete(bob, gone["id"], IdempotencyKey.generate())
    before = footprint(raw)
    for future in (str(int(notice["id"]) + 2**40), "9" * 20):
        with pytest.raises(NotFound) as refusal:
            await store.notifications.mark_read(ann, future, IdempotencyKey.generate())
        assert refusal.value.param == "id"
    assert footprint(raw) == before
    assert await store.notifications.mark_read(ann, notice["id"], IdempotencyKey.generate()) == 0


async def test_hidden_ones_leave_no_number_behind(store: Store, people: People) -> None:
    """Where the newest cannot be seen, reading the newest that can leaves nothing unread."""
    ann, bob = [await people.user(login) for login in ("ann", "bob")]
    await people.status(bob, "@ann stays")
    await store.statuses.delete(bob, (await people.status(bob, "@ann goes"))["id"], IdempotencyKey.generate())
    (seen,) = await told(store, ann)
    assert await store.notifications.mark_read(ann, seen["id"], IdempotencyKey.generate()) == 0


async def test_beyond_a_hundred_all_that_is_kept_is_counted(store: Store, people: People) -> None:
    """As the docs say: exact up to a hundred; behind them also those count that are not shown."""
    ann, bob, eve = [await people.user(login) for login in ("ann", "bob", "eve")]
    for author in (eve, *[bob] * 128, eve):
        await people.status(author, "@ann")
    assert await store.notifications.count_unread(ann) == 130
    await store.mutes.mute(ann, eve, IdempotencyKey.generate())
    assert await store.notifications.count_unread(ann) == 129
