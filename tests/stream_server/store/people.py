"""Create users and statuses in tests."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import redis

from stream_server.store.idempotency import IdempotencyKey
from stream_server.store.pagination import PageRequest
from stream_server.store.social.statuses import StatusDraft
from stream_server.store.store import Store
from tests.waiting import PATIENCE

new_key = IdempotencyKey.generate

PASSWORD_HASH = "$argon2id$v=19$m=8,t=1,p=1$c2FsdHNhbHQ$aGFzaA"


@asynccontextmanager
async def open_store(url: str, **options: Any) -> AsyncIterator[Store]:
    store = Store(url, timeout_seconds=PATIENCE, **options)
    await store.open()
    try:
        yield store
    finally:
        await store.close()


class People:
    """Creates users and statuses in one store, in one call each."""

    def __init__(self, store: Store) -> None:
        self.store = store

    async def user(self, login: str) -> str:
        """Create a user. Returns the id."""
        made = await self.store.users.create(login, login, f"{login}@example.org", PASSWORD_HASH, new_key())
        return str(json.loads(made)["id"])

    async def users(self, count: int) -> list[str]:
        """Create the users ``u0``, ``u1`` …. Returns their ids."""
        names = [(f"u{i}", f"U {i}") for i in range(count)]
        return [made.id for made in await self.store.users.create_many(names, new_key())]

    async def status(self, uid: str, message: str = "hello", **more: Any) -> dict[str, Any]:
        """Create a status. Returns it decoded."""
        made = await self.store.statuses.create(uid, StatusDraft(message=message, **more), new_key())
        decoded: dict[str, Any] = json.loads(made)
        return decoded

    async def me(self, uid: str) -> dict[str, Any]:
        """The user as the user sees it, decoded."""
        decoded: dict[str, Any] = json.loads(await self.store.users.get_own(uid))
        return decoded


async def unread(store: Store, uid: str) -> int:
    """The number of a user's unread notifications."""
    _, count = await store.notifications.list_with_unread_count(uid, PageRequest())
    return count


def footprint(raw: "redis.Redis") -> tuple[int, int]:
    """The number of keys and of log entries. A refused write changes neither."""
    size, length = raw.dbsize(), raw.xlen("{core}:log")
    assert isinstance(size, int)
    assert isinstance(length, int)
    return size, length
