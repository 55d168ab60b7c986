"""Mutes: a user wants to hear no more of another, who is not told."""

from stream_server.store import keys
from stream_server.store.idempotency import IdempotencyKey
from stream_server.store.pagination import Page, PageRequest, read_page
from stream_server.store.redis.scripts import Scripts


class Mutes:
    """Who mutes whom in one store."""

    def __init__(self, scripts: Scripts) -> None:
        self._scripts = scripts

    async def mute(self, uid: str, muted_uid: str, idempotency_key: IdempotencyKey) -> None:
        """Mute a user; already so changes nothing. Raises NotFound, and BadRequest for oneself."""
        await self._scripts.write("mute", idempotency_key, uid, muted_uid)

    async def unmute(self, uid: str, muted_uid: str, idempotency_key: IdempotencyKey) -> None:
        """Mute no longer; raises as :meth:`mute` does."""
        await self._scripts.write("unmute", idempotency_key, uid, muted_uid)

    async def list_muted(self, uid: str, page_request: PageRequest) -> Page:
        """Whom a user mutes, as JSON with ``since``, newest first; raises InvalidCursor."""
        return await read_page(self._scripts, "users_page", keys.key_for("mutes", uid), page_request, uid, "", "")
