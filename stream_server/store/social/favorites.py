"""Favorites: what users keep for themselves. Nobody is told, and nothing is counted; see ``timelines`` for the list."""

from stream_server.store import keys
from stream_server.store.idempotency import IdempotencyKey
from stream_server.store.redis.scripts import Scripts


class Favorites:
    """The favorites of one store."""

    def __init__(self, scripts: Scripts) -> None:
        self._scripts = scripts

    async def add(self, uid: str, status: str, idempotency_key: IdempotencyKey) -> None:
        """Keep a status; twice is once. Raises NotFound for what is not there or not to be seen."""
        await self._scripts.write("favorite", idempotency_key, uid, status)

    async def remove(self, uid: str, status: str, idempotency_key: IdempotencyKey) -> None:
        """Keep it no longer; what is kept can be dropped also when it is gone. Raises NotFound as :meth:`add` does."""
        await self._scripts.write("unfavorite", idempotency_key, uid, status)

    async def is_favorite(self, uid: str, status: str) -> bool:
        """Whether a user keeps a status; raises NotFound where it is not to be seen, though it may be kept."""
        return bool(await self._scripts.call("status_has_reaction", keys.META, uid, status, uid, "favorites"))
