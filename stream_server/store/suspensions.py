"""Suspensions: who has lost the good standing that every read and write asks for."""

from stream_server.store import keys
from stream_server.store.page import Page, Piece, walk
from stream_server.store.request import Request
from stream_server.store.scripts import Scripts

SUSPENDED = b'{"suspended":true}'
REINSTATED = b'{"suspended":false}'


class Suspensions:
    """The suspensions of one store. Nothing of a suspended user is deleted: it is hidden, and comes back."""

    def __init__(self, scripts: Scripts) -> None:
        self._scripts = scripts

    async def suspend(self, admin: str, uid: str, request: Request) -> bytes:
        """Suspend a user, as JSON; the entry on the log ends the user's streams everywhere.

        Already so changes nothing. Raises NotFound, BadRequest for oneself.
        """
        await self._scripts.write("suspend", request, admin, uid)
        return SUSPENDED

    async def reinstate(self, admin: str, uid: str, request: Request) -> bytes:
        """Suspend a user no more, as JSON: all that was hidden is back. Raises NotFound."""
        await self._scripts.write("reinstate", request, admin, uid)
        return REINSTATED

    async def page(self, piece: Piece) -> Page:
        """The suspended users as JSON with ``since``, newest first, for an administrator; raises InvalidCursor."""
        return await walk(self._scripts, "suspensions", keys.named("suspended"), piece)
