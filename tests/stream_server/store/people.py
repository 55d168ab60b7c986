"""Users and statuses for tests, with little ado."""

import json
from typing import Any

import redis

from stream_server.store.idempotency import IdempotencyKey
from stream_server.store.social.statuses import StatusDraft
from stream_server.store.store import Store

PASSWORD_HASH = "$argon2id$v=19$m=8,t=1,p=1$c2FsdHNhbHQ$aGFzaA"


class People:
    """Makes users and statuses in one store."""

    def __init__(self, store: Store) -> None:
        self.store = store

    async def user(self, login: str) -> str:
        """The id of a new user."""
        made = await self.store.users.create(
            login, login, f"{login}@example.org", PASSWORD_HASH, IdempotencyKey.generate()
        )
        return str(json.loads(made)["id"])

    async def users(self, count: int) -> list[str]:
        """The ids of new users ``u0``, ``u1`` …."""
        names = [(f"u{i}", f"U {i}") for i in range(count)]
        return [made.id for made in await self.store.users.create_many(names, IdempotencyKey.generate())]

    async def status(self, uid: str, message: str = "hello", **more: Any) -> dict[str, Any]:
        """A new status, decoded."""
        made = await self.store.statuses.create(uid, StatusDraft(message=message, **more), IdempotencyKey.generate())
        decoded: dict[str, Any] = json.loads(made)
        return decoded

    async def me(self, uid: str) -> dict[str, Any]:
        """A user as the user sees it, decoded."""
        decoded: dict[str, Any] = json.loads(await self.store.users.get_own(uid))
        return decoded


def footprint(raw: "redis.Redis") -> tuple[int, int]:
    """How many keys there are, and how many entries on the log: a refusal changes neither."""
    size, length = raw.dbsize(), raw.xlen("{core}:log")
    assert isinstance(size, int)
    assert isinstance(length, int)
    return size, length
