"""Suspensions: who has lost the good standing that every read and write asks for."""

from stream_server.store import keys
from stream_server.store.idempotency import IdempotencyKey
from stream_server.store.pagination import Page, PageRequest, read_page
from stream_server.store.redis.scripts import Scripts

SUSPENDED_JSON = b'{"suspended":true}'
REINSTATED_JSON = b'{"suspended":false}'


class Suspensions:
    """The suspensions of one store. Nothing of a suspended user is deleted: it is hidden, and comes back."""

    def __init__(self, scripts: Scripts) -> None:
        self._scripts = scripts

    async def suspend(self, admin: str, uid: str, idempotency_key: IdempotencyKey) -> bytes:
        """Suspend a user, as JSON; the entry on the log ends the user's streams everywhere.

        Already so changes nothing. Raises NotFound, BadRequest for oneself.
        """
        await self._scripts.write("suspend", idempotency_key, admin, uid)
        return SUSPENDED_JSON

    async def reinstate(self, admin: str, uid: str, idempotency_key: IdempotencyKey) -> bytes:
        """Suspend a user no more, as JSON: all that was hidden is back. Raises NotFound."""
        await self._scripts.write("reinstate", idempotency_key, admin, uid)
        return REINSTATED_JSON

    async def list_suspended(self, page_request: PageRequest) -> Page:
        """The suspended users as JSON with ``since``, newest first, for an administrator; raises InvalidCursor."""
        return await read_page(self._scripts, "suspended_users_page", keys.key_for("suspended"), page_request)
